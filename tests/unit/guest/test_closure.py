# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program cannot start without, by programs made here: as the loader finds it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.guest import closure
from kdelta.guest.closure import found_by_env, needed, no_input, on_path, refuse_unstartable

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")


def _made(target: Path, source: str, *flags: str) -> Path:
    code = target.with_suffix(".c")
    code.write_text(source)
    subprocess.run(["gcc", str(code), "-o", str(target), *flags], check=True)
    return target


def _library(folder: Path, name: str, *flags: str, calls: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    before, value = (f"int {calls}(void); ", f"{calls}()") if calls else ("", "0")
    body = f"{before}int {name}(void) {{ return {value}; }}"
    return _made(folder / f"lib{name}.so", body, "-shared", "-fPIC", *flags)


def _names(paths: list[Path]) -> set[str]:
    return {path.name for path in paths}


def test_a_static_program_needs_itself_and_a_dynamic_one_loader_and_libraries(tmp_path: Path) -> None:
    static = _made(tmp_path / "static", "int main(void) { return 0; }", "-static")
    assert needed(static) == [static]
    dynamic = needed(_made(tmp_path / "dynamic", "int main(void) { return 0; }"))
    assert any(path.name.startswith("ld-linux") for path in dynamic)
    assert "libc.so.6" in _names(dynamic)


def test_runpath_with_origin_and_libraries_of_libraries_are_found(tmp_path: Path) -> None:
    inner = _library(tmp_path / "lib", "inner")
    origin = "-Wl,--enable-new-dtags,-rpath,$ORIGIN"
    _library(tmp_path / "lib", "outer", f"-L{inner.parent}", "-linner", origin, calls="inner")
    source = "int outer(void); int main(void) { return outer(); }"
    links = (f"-L{inner.parent}", "-louter", f"-Wl,-rpath-link,{inner.parent}")
    program = _made(tmp_path / "user", source, *links, f"{origin}/lib")
    found = needed(program)
    assert {str(tmp_path / "lib" / "libouter.so"), str(inner)} <= {os.path.normpath(path) for path in found}
    inner.unlink()
    with pytest.raises(UserError, match=r"libouter\.so needs libinner\.so, which is not where its loader looks"):
        needed(program)


def test_libraries_are_looked_for_where_the_loader_will(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = _library(tmp_path / "odd", "far")
    source = "int far(void); int main(void) { return far(); }"
    program = _made(tmp_path / "user", source, f"-L{library.parent}", "-lfar")
    with pytest.raises(UserError, match=r"say where it is: --env LD_LIBRARY_PATH=DIR"):
        needed(program)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))  # ours, which no guest has
    with pytest.raises(UserError, match=f"give the program --env LD_LIBRARY_PATH={library.parent}"):
        needed(program)
    assert library in needed(program, (str(library.parent),))


@pytest.mark.parametrize(
    "line", ["-S -u HOME sh -e", "-S -iu HOME sh", "-S --unset A --chdir / X=1 sh", "-S-i sh", "-vS sh", "-S sh -u cat"]
)
def test_what_env_starts_is_told_from_what_its_options_take(tmp_path: Path, line: str) -> None:
    """``#!/usr/bin/env -S -u HOME perl`` was "program HOME: it is not on this machine's PATH"."""
    (script := tmp_path / "a").write_text(f"#!/usr/bin/env {line}\n")
    found = found_by_env(script)
    assert found is not None and found.name == "sh"
    script.write_text("#!/usr/bin/env -S -u\n")
    assert found_by_env(script) is None


def test_scripts_need_their_interpreters_also_by_env_and_not_without_end(tmp_path: Path) -> None:
    (script := tmp_path / "a.sh").write_text("#!/usr/bin/env sh\nexit 0\n")
    assert {"a.sh", "env", Path("/bin/sh").name} <= _names(needed(script))
    (lost := tmp_path / "b.sh").write_text("#!/no/such/thing\n")
    with pytest.raises(UserError, match="needs /no/such/thing, which is not on this machine"):
        needed(lost)
    (loop := tmp_path / "c.sh").write_text(f"#!{tmp_path}/c.sh\n")
    with pytest.raises(UserError, match="a script whose interpreter is a script"):
        needed(loop)


def test_what_is_damaged_or_of_another_machine_or_nowhere_is_refused(tmp_path: Path) -> None:
    (damaged := tmp_path / "damaged").write_bytes(b"\x7fELF" + bytes(8))
    with pytest.raises(UserError, match="a damaged ELF file"):
        needed(damaged)
    shell = Path("/bin/sh").resolve().read_bytes()
    (tmp_path / "many").write_bytes(shell[:56] + (45056).to_bytes(2, "little") + shell[58:])  # e_phnum
    with pytest.raises(UserError, match="45056 program headers of 56 bytes, which Linux does not run"):
        needed(tmp_path / "many")
    other = bytearray(shell)
    other[18:20] = (243).to_bytes(2, "little")  # EM_RISCV
    (tmp_path / "other").write_bytes(other)
    with pytest.raises(UserError, match="is for RISCV, not for"):
        needed(tmp_path / "other")
    refused = {"no-such-program": "not on this machine's PATH", "cd": "a shell does that itself, as in -- sh -c 'cd "}
    for name, why in (*refused.items(), (str(tmp_path), "a directory")):
        with pytest.raises(UserError, match=why):
            on_path(name)
    with pytest.raises(UserError, match="may not be executed"):
        on_path(str(damaged))


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("for i in 1 2; do true; done", "sh -c 'for i in 1 2; do true; done'"),
        ("cd /tmp && ls", "sh -c 'cd /tmp && ls'"),
        ("A=1 ls | wc", "sh -c 'A=1 ls | wc'"),
        ("no-such-program | wc", "sh -c 'no-such-program | wc'"),
        ("A=1", "a variable is set by --env A=1"),
        ("no such program", "give its path, or install it"),
    ],
)
def test_what_a_shell_takes_as_a_line_is_told_so(line: str, remedy: str) -> None:
    with pytest.raises(UserError, match=re.escape(remedy)):
        on_path(line)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo hi\n", "neither an ELF file nor begins with #!; name its interpreter first, as in -- sh "),
        ("", "neither an ELF file"),
        ("#!/bin/sh\r\necho hi\r\n", "its first line ends in a carriage return"),
        ("#!/usr/bin/env sh\r\n", "its first line ends in a carriage return"),
    ],
)
def test_what_only_a_shell_starts_is_refused_before_anything_boots(tmp_path: Path, text: str, why: str) -> None:
    script = tmp_path / "script"
    script.write_text(text)
    with pytest.raises(UserError, match=why):
        refuse_unstartable(script)


def test_a_script_and_an_elf_file_are_started(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho hi\r\n")
    refuse_unstartable(script)
    refuse_unstartable(on_path("true"))


def test_what_is_read_anew_by_each_run_is_a_file(tmp_path: Path) -> None:
    """``--stdin <(zcat x.gz)`` was "there is no such file"."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    said = {name: no_input(tmp_path / name) for name in ("file", "pipe", "-", ".", "none")}
    again = "each run reads it from its beginning, so put it into a file first"
    assert said == {"file": "", "pipe": again, "-": again, ".": "a directory", "none": "there is no such file"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="of x86-64")
def test_a_32_bit_program_runs_on_a_64_bit_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was "for 386, not for x86_64", and what compat system calls cost could not be asked of a program."""

    def library(path: Path, bits: int, *wanted: str) -> Path:
        flags = [f"-m{bits}", "-shared", "-nostdlib", f"-Wl,-soname,{path.name}", f"-L{tmp_path}/odd", *wanted]
        return _made(path, "int far(void) { return 0; }", *flags)

    (tmp_path / "odd").mkdir()
    (tmp_path / "lib").mkdir()
    wide, narrow = library(tmp_path / "lib" / "libfar.so", 64), library(tmp_path / "odd" / "libfar.so", 32)
    user = library(tmp_path / "user", 32, "-Wl,--no-as-needed", "-lfar")
    said = f"\tlibfar.so (libc6,x86-64) => {wide}\n\tlibfar.so (libc6) => {narrow}\n"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), 0, said, ""))
    closure._cached.cache_clear()
    try:
        assert needed(user) == [user, narrow]
    finally:
        closure._cached.cache_clear()
