# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs packed for guests: which files, where, and what is refused."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.guest import environment, follow, packing, shell
from kdelta.guest.rootfs import Tree
from kdelta.spec.program import Program


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    packing.pack.cache_clear()
    return tmp_path / "cache"


def _packed(cwd: Path, *argv: str, **options: object) -> tuple[dict[str, bytes], dict[str, list[str]]]:
    """Names with the start of their cpio header's mode field, and the description."""
    kept = packing.of_case(packing.pack(Program(argv=argv, **options), cwd))  # type: ignore[arg-type]
    assert kept.tree is not None
    nodes, data, at = {}, kept.tree.read_bytes(), 0
    while at < len(data):
        mode, size, length = (int(data[at + i : at + i + 8], 16) for i in (14, 54, 94))
        name = data[at + 110 : at + 109 + length].decode()
        body = (at + 110 + length + 3) & ~3
        nodes[name.removeprefix("program/")] = data[body : body + size] if stat.S_ISLNK(mode) else b""
        at = (body + size + 3) & ~3
    spec: dict[str, list[str]] = {}
    for row in kept.spec.read_bytes().decode().split("\0")[:-1]:
        key, _, value = row.partition("=")
        spec.setdefault(key, []).append(value)
    return nodes, spec


def test_a_tree_has_links_as_links_with_all_on_their_way(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "up").symlink_to("../link/file")
    tree = Tree()
    tree.add(tmp_path / "link" / "up")
    here = str(tmp_path).lstrip("/")
    assert {f"{here}/link", f"{here}/real", f"{here}/real/up", f"{here}/real/file", here} <= set(tree.nodes)
    assert tree.nodes[f"{here}/link"].source == b"real"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match=r"too many symbolic links|not there"):
        tree.add(tmp_path / "loop")
    with pytest.raises(UserError, match="nowhere is not there"):
        tree.add(tmp_path / "nowhere")


def test_a_command_is_packed_with_its_files_and_described(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("x")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "deep.txt").write_text("y")
    nodes, spec = _packed(
        tmp_path, "cat", "input.txt", trees=("more",), files=("input.txt:/etc/other",), setup="ls -l 'a b'", cold=True
    )
    here = str(tmp_path).lstrip("/")
    assert {f"{here}/input.txt", f"{here}/more/deep.txt", "etc/other", "proc", "dev"} <= set(nodes)
    assert nodes["TRAILER!!!"] == b""
    assert spec["arg"] == [str(Path(shutil.which("cat") or "")), "input.txt"]
    assert spec["setup"][1:] == ["-l", "a b"]
    assert (spec["cwd"], spec["root"], spec["cold"], spec["expect"]) == ([str(tmp_path)], ["/program"], ["1"], ["0"])
    assert "PYTHONHASHSEED=0" in spec["env"]
    assert not any(name.startswith(spec["scratch"][0].lstrip("/") + "/") for name in nodes)


def test_a_python_brings_the_libraries_that_modules_of_its_own_need(tmp_path: Path) -> None:
    modules, libraries = tmp_path / "lib" / "python3.99" / "lib-dynload", tmp_path / "libraries"
    for folder in (modules, libraries, tmp_path / "bin"):
        folder.mkdir(parents=True)
    shutil.copy(shutil.which("cat") or "", tmp_path / "bin" / "python3.99")
    gcc = ["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null"]
    for name in ("deep", "gone", "wide"):
        subprocess.run([*gcc, "-o", libraries / f"lib{name}.so"], check=True)
    for module, name in (("zlib", "deep"), ("lost", "gone"), ("_tkinter", "wide")):
        needs = ("-Wl,--no-as-needed", f"-L{libraries}", f"-l{name}", f"-Wl,-rpath,{libraries}")
        subprocess.run([*gcc, "-o", modules / f"{module}.so", *needs], check=True)
    (libraries / "libgone.so").unlink()
    nodes, _ = _packed(tmp_path, "./bin/python3.99")
    here = str(tmp_path).lstrip("/")
    assert f"{here}/libraries/libdeep.so" in nodes and f"{here}/lib/python3.99/lib-dynload/lost.so" in nodes
    assert f"{here}/libraries/libwide.so" not in nodes, "a window cannot be opened anyway"
    assert "etc/hosts" in nodes, "localhost is known by name"


def test_of_a_standard_library_what_no_run_reads_stays_here(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "python3.99"
    here = str(library).lstrip("/")
    read = ("os.py", "__pycache__/os.cpython-399.pyc", "json/tool.py", "lib-dynload/math.so")
    optimized = ("__pycache__/os.cpython-399.opt-1.pyc", "__pycache__/os.cpython-399.opt-2.pyc")
    unread = ("config-3.99-x/libpython3.99.a", "config-3.99-x/Makefile", "test/x.py", "lib-dynload/_testcapi.so")
    for name in (*read, *optimized, *unread):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text("x")
    (tmp_path / "bin").mkdir()
    shutil.copy(shutil.which("cat") or "", tmp_path / "bin" / "python3.99")

    def packed(*argv: str, **options: object) -> set[str]:
        names = _packed(tmp_path, "./bin/python3.99", *argv, **options)[0].keys()
        return {name for name in (*read, *optimized, *unread) if f"{here}/{name}" in names}

    assert packed() == set(read)
    assert packed("-O", "a.py") == packed(env=("PYTHONOPTIMIZE=1",)) == {*read, *optimized}


def test_what_a_shell_names_is_packed_with_it(tmp_path: Path) -> None:
    def tool(word: str) -> str:
        return str(Path(shutil.which(word, path="/usr/bin:/bin") or "")).lstrip("/")

    (tmp_path / "run.sh").write_text("#!/bin/sh\ntac <in.txt | $(command -v rev)\n")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "plain.txt").write_text("tac")
    nodes, _ = _packed(tmp_path, "sh", "-ec", "cat 'a'|sort>out; /usr/bin/env -i x=1 head; nonsense-of-mine")
    assert {tool("cat"), tool("sort"), tool("head"), tool("env")} <= nodes.keys() and tool("tac") not in nodes
    for argv in (("./run.sh",), ("sh", "run.sh")):
        assert {tool("tac"), tool("rev")} <= _packed(tmp_path, *argv)[0].keys()
    assert tool("tac") not in _packed(tmp_path, "cat", "plain.txt", "-c", "tac")[0]
    assert tool("tac") in _packed(tmp_path, "cat", setup="sh -c 'tac /etc/passwd'")[0]


@pytest.mark.parametrize(
    "words",
    [
        "timeout 9 nice tac", "env A=1 sh -c 'echo|tac'", "strace -c ./run.sh", "xargs tac", "perf stat tac",
        "fish -c 'tac x'",
    ],
)  # fmt: skip
def test_what_a_program_starts_by_its_words_is_packed_with_it(tmp_path: Path, words: str) -> None:
    """``script -qc 'stty -a' /dev/null`` had no /bin/sh, ended well, and was "the same" on two kernels."""
    argv = shlex.split(words)
    if not all(map(shutil.which, (argv[0], "tac"))):
        pytest.skip(f"no {argv[0]} or tac here")
    (tmp_path / "run.sh").write_text("#!/bin/sh\ntac <in.txt\n")
    (tmp_path / "run.sh").chmod(0o755)
    nodes, _ = _packed(tmp_path, *argv)
    assert {str(Path(shutil.which(name) or "")).lstrip("/") for name in ("tac", "sh")} <= set(nodes)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")
def test_what_is_loaded_first_is_packed_with_what_it_needs(tmp_path: Path) -> None:
    """``--env LD_PRELOAD=libjemalloc.so.2`` measured the malloc of glibc: "cannot be preloaded", and all went well."""
    for name, more in (("inner", ()), ("outer", ("-L.", "-linner", "-Wl,--no-as-needed,-rpath,$ORIGIN"))):
        source = f"int {name}(void) {{ return {'inner()' if more else '0'}; }}\n"
        (tmp_path / f"{name}.c").write_text(("int inner(void); " if more else "") + source)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", f"lib{name}.so", f"{name}.c", *more], cwd=tmp_path, check=True)
    names = {f"{tmp_path}/lib{name}.so".lstrip("/") for name in ("inner", "outer")}
    (elsewhere := tmp_path / "elsewhere").mkdir()
    for env in (f"LD_PRELOAD={tmp_path}/libouter.so:", "LD_AUDIT=../libouter.so"):
        assert names <= _packed(elsewhere, "cat", env=(env,))[0].keys()
    assert names <= _packed(elsewhere, "env", f"LD_PRELOAD={tmp_path}/libouter.so", "cat")[0].keys()
    by_name = ("LD_PRELOAD=libouter.so", f"LD_LIBRARY_PATH={tmp_path}")
    assert names <= _packed(elsewhere, "cat", env=by_name)[0].keys()
    for missing in ("LD_PRELOAD=libnowhere-of-mine.so", "LD_PRELOAD=/no/such.so"):
        with pytest.raises(UserError, match="to be loaded first, is not where the loader looks"):
            _packed(elsewhere, "cat", env=(missing,))
        assert _packed(elsewhere, "sh", "-c", f"{missing} nothing")  # a shell's line, of which nobody knows the words
        assert _packed(elsewhere, "printf", missing)


def test_a_file_that_the_environment_names_is_packed(tmp_path: Path) -> None:
    (tmp_path / "my.conf").write_text("x")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    assert f"{tmp_path}/my.conf".lstrip("/") in _packed(elsewhere, "cat", env=(f"CONF={tmp_path}/my.conf",))[0]


def test_a_program_runs_where_there_is_something(tmp_path: Path) -> None:
    """``--cwd`` with a letter too few ran in an empty directory, which ``find .`` and ``ls -lR`` do not mind."""
    (tmp_path / "words").write_text("x")
    for place, files in (("no-such", ()), ("words", ()), ("/no/such", ("words:/no/other",))):
        with pytest.raises(UserError, match=rf"--cwd {place}: there is no such directory"):
            packing.pack(Program(argv=("cat",), cwd=place, files=files), tmp_path)
    packing.pack(Program(argv=("cat",), cwd="/no/such", files=("words:/no/such/in/it",)), tmp_path)


def test_a_file_may_have_a_colon_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "a:b").write_text("x")
    (tmp_path / "c").write_text("x")
    nodes, _ = _packed(tmp_path, "cat", files=("a:b", "c:/etc/d"))
    assert {f"{tmp_path}/a:b".lstrip("/"), "etc/d"} <= nodes.keys()


def test_a_program_that_names_no_shell_has_one(tmp_path: Path) -> None:
    """What asks system(3), popen(3) or make for a command had none, and mostly ended well: so did ``script -qc``."""
    nodes, _ = _packed(tmp_path, "cat")
    assert os.path.realpath("/bin/sh").lstrip("/") in nodes
    assert "bin" in nodes  # by this name, also where /bin is a link


def test_what_a_command_in_quotes_names_is_named(tmp_path: Path) -> None:
    """``sh -c 'tar c /etc/apt | xz | wc -c'`` packed nothing of that, and ended well: the pipeline's status is wc's."""
    (tmp_path / "in").mkdir()
    (file := tmp_path / "in" / "words.txt").write_text("x")
    line = f"tar c {tmp_path}/in | cat {file} - >/tmp; ls / /proc/self /dev /var/tmp/ /no/such"
    assert shell.typed(("/bin/sh", "-c", line)) == (f"{tmp_path}/in", str(file))
    assert shell.typed(("timeout", "9", "sh", "-c", line)) == (f"{tmp_path}/in", str(file))
    assert shell.typed(("echo", line)) == ()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    assert str(file).lstrip("/") in _packed(elsewhere, "sh", "-c", line)[0]


def test_a_file_that_is_read_need_not_run_here(tmp_path: Path) -> None:
    """``sha256sum ./for-another-machine`` was refused, as if that should be started."""
    other = bytearray(Path("/bin/sh").resolve().read_bytes())
    other[18:20] = (243).to_bytes(2, "little")  # EM_RISCV
    (tmp_path / "other").write_bytes(other)
    (tmp_path / "other").chmod(0o755)
    assert f"{tmp_path}/other".lstrip("/") in _packed(tmp_path, "cat", "other")[0]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")
@pytest.mark.parametrize("by", ["option", "env"])
def test_libraries_are_found_in_the_environment_that_the_program_gets(tmp_path: Path, by: str) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "far.c").write_text("int far(void) { return 0; }\n")
    (tmp_path / "user.c").write_text("int far(void); int main(void) { return far(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "odd/libfar.so", "far.c"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-o", "user", "user.c", "-Lodd", "-lfar"], cwd=tmp_path, check=True)
    (tmp_path / "elsewhere").mkdir()
    given = "LD_LIBRARY_PATH=../odd"
    argv, env = (("../user",), (given,)) if by == "option" else (("env", given, "../user"), ())
    nodes, _ = _packed(tmp_path / "elsewhere", *argv, env=env)
    assert f"{tmp_path}/odd/libfar.so".lstrip("/") in nodes


def test_a_word_may_be_longer_than_a_name_of_a_file(tmp_path: Path) -> None:
    code = "import os\n" * 40
    assert _packed(tmp_path, "python3", "-c", code)[1]["arg"][1:] == ["-c", code]
    assert _packed(tmp_path, "sh", code)[1]["arg"][1:] == [code]


def test_a_damaged_program_that_a_shell_may_name_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd").write_bytes(b"\x7fELF damaged")
    (tmp_path / "odd").chmod(0o755)
    monkeypatch.setattr(environment, "SEARCHED", f"{tmp_path}:/usr/bin:/bin")
    nodes, _ = _packed(tmp_path, "sh", "-c", "odd; cat")
    assert not any(name.endswith("/odd") for name in nodes) and any(name.endswith("bin/cat") for name in nodes)


def test_the_case_is_called_as_the_command_and_differs_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("x")
    first = packing.pack(Program(argv=("cat", "input.txt")), tmp_path)
    assert first.name == "cat input.txt"
    (tmp_path / "input.txt").write_text("y")
    packing.pack.cache_clear()
    assert packing.pack(Program(argv=("cat", "input.txt")), tmp_path).params != first.params


@pytest.mark.parametrize("name", ["./x", "../here/x", "sub/../x", "/x", "x"])
def test_a_script_is_started_as_a_shell_starts_it(tmp_path: Path, name: str) -> None:
    """Its $0 was absolute. From another directory a relative path would lead elsewhere."""
    (here := tmp_path / "here").mkdir()
    (here / "sub").mkdir()
    for place in (here / "x", here / "sub" / "x"):
        place.write_text("#!/bin/sh\necho $0\n")
        place.chmod(0o755)
    typed = f"{here}/x" if name == "/x" else "./x" if name == "x" else name
    kept = name in ("./x", "../here/x")
    program = Program(argv=(typed,), cwd="sub" if name == "x" else "")
    spec = packing.of_case(packing.pack(program, here)).spec.read_bytes().decode()
    first = next(row.removeprefix("arg=") for row in spec.split("\0") if row.startswith("arg="))
    assert first == (name if kept else f"{here}/x")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"files": ("missing",)}, "--file missing: .* is not there"),
        ({"files": ("a:relative",)}, "the absolute path that it has in the guest"),
        ({"trees": ("missing",)}, "--tree missing: there is no such directory"),
        ({"trees": ("/",)}, "--tree /: no guest takes all of it; .* --follow"),
        ({"trees": ("/sys",)}, "--tree /sys: a guest has a /sys of its own"),
        ({"files": ("a:/proc/a",)}, "--file a:/proc/a: a guest has a /proc of its own"),
        ({"stdin": "missing"}, "--stdin missing: there is no such file"),
        ({"env": ("NOVALUE",)}, "--env 'NOVALUE' is not NAME=VALUE"),
        ({"env": ("A=\udcffb",)}, r"A=\\xffb is not UTF-8"),
        ({"setup": "echo 'x"}, "--setup .*: No closing quotation"),
        ({"between": "no-such-program"}, "no-such-program: it is not on this machine's PATH"),
    ],
)
def test_what_is_not_there_is_one_line(tmp_path: Path, options: dict[str, object], why: str) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(UserError, match=why) as error:
        _packed(tmp_path, "ls", **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("given", [{"writable": True}, {"files": ("a:/b",)}, {"trees": ("/usr",)}, {"follow": True}])
def test_what_goes_with_guests_alone_is_refused_where_there_is_none(tmp_path: Path, given: dict[str, object]) -> None:
    """--file a:/b did nothing, and the program was measured as it failed."""
    with pytest.raises(UserError, match="is for guests: here the program"):
        packing.pack(Program(argv=("ls",), **given), tmp_path, True)  # type: ignore[arg-type]


def test_what_a_run_may_write_to_is_neither_the_root_nor_the_scratch_directory(tmp_path: Path) -> None:
    _, spec = _packed(tmp_path, "ls", writable=True)
    assert spec["writable"] == spec["cwd"] == [str(tmp_path)]
    assert "writable" not in _packed(tmp_path, "ls")[1]
    with pytest.raises(UserError, match="--writable: the program runs in /"):
        _packed(Path("/"), "ls", writable=True)
    empty = Tree()
    assert (empty.scratch(), empty.scratch(Path("/tmp")), empty.scratch(Path("/var"))) == ("tmp", "var/tmp", "tmp")


def test_too_much_names_what_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_BYTES", 1 << 20)
    with pytest.raises(UserError, match=r"its files are \d+ MiB, and a guest takes 1: /\S+ has \d+ MiB; --follow"):
        _packed(tmp_path, "ls")
    for name in "abcdef":
        (tmp_path / "much" / name).mkdir(parents=True)
        (tmp_path / "much" / name / "file").write_bytes(b"x" * (2 << 20))
    with pytest.raises(UserError, match=r"its files are more than \d+ MiB, and a guest takes 1: "):
        _packed(tmp_path, "ls", trees=("much",))
    tree = Tree()
    for name, size in (("a/b/c/d/e/large", 900), ("a/b/small", 90), ("other", 400)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * (size << 11))
        tree.add(tmp_path / name)
    assert tree.largest() == f"{tmp_path}/a/b/c/d/e has 1 MiB"


def test_a_pack_that_is_gone_says_how_to_make_it_again(tmp_path: Path, own_cache: Path) -> None:
    case = packing.pack(Program(argv=("ls",)), tmp_path)
    shutil.rmtree(own_cache)
    with pytest.raises(UserError, match="run the command again"):
        packing.of_case(case)


def test_what_a_trace_says_was_opened_is_read_from_it() -> None:
    trace = (
        'execve("/usr/bin/cat", ["cat"], 0x7ffc /* 3 vars */) = 0\n'
        'access("/etc/ld.so.preload", R_OK) = -1 ENOENT (No such file or directory)\n'
        'openat(AT_FDCWD</home/a b>, "in\\tput", O_RDONLY|O_CLOEXEC) = 3</home/a b/in>\n'
        'openat(3</etc>, "passwd", O_RDONLY) = 4</etc/passwd>\n'
        'openat(AT_FDCWD</w>, "made", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 5</w/made>\n'
        'open("/proc/self/maps", O_RDONLY) = 3</proc/1/maps>\n'
        'chdir("sub") = 0\n'
        'stat("here", {st_mode=S_IFREG}) = 0\n'
    )
    found = [str(path) for path in follow.opened(trace, Path("/w"))]
    assert found == ["/usr/bin/cat", "/home/a b/in\tput", "/etc/passwd", "/w/sub", "/w/sub/here"]


def test_following_packs_what_a_child_opens(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    (tmp_path / "hidden.txt").write_text("x")
    (script := tmp_path / "run.sh").write_text("#!/bin/sh\ncat hidden.txt\n")
    script.chmod(0o755)
    here = str(tmp_path).lstrip("/")
    assert f"{here}/hidden.txt" not in _packed(tmp_path, "./run.sh")[0]
    nodes, _ = _packed(tmp_path, "./run.sh", follow=True)
    assert {f"{here}/hidden.txt", str(shutil.which("cat")).lstrip("/")} <= set(nodes)


def test_of_a_virtual_environment_that_is_followed_what_is_opened_is_packed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    packages = next((tmp_path / "venv" / "lib").glob("python3*")) / "site-packages"
    for name in ("used", "idle"):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text("")
    names = {name: str(packages / name / "__init__.py").lstrip("/") for name in ("used", "idle")}
    whole, _ = _packed(tmp_path, str(python), "-c", "import used")
    assert set(names.values()) <= set(whole)
    followed, _ = _packed(tmp_path, str(python), "-c", "import used", follow=True)
    assert names["used"] in followed and names["idle"] not in followed
    assert str(tmp_path / "venv" / "pyvenv.cfg").lstrip("/") in followed


def test_following_without_strace_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(HostError, match="sudo apt-get install strace"):
        follow.files_of(["ls"], tmp_path, dict(os.environ), None)


def test_what_a_shell_alone_would_start_is_not_booted(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hi\n")
    script.chmod(0o755)
    with pytest.raises(UserError, match="as in -- sh"):
        _packed(tmp_path, "./script")
