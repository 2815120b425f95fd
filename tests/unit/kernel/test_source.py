# SPDX-License-Identifier: GPL-2.0-or-later
"""From a tree and patches to a built kernel, with a tiny tree whose Makefile really compiles a little."""

from __future__ import annotations

import os
import shutil
import tarfile
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.errors import HostError, UserError
from kdelta.kernel import source, toolchain, trees
from kdelta.kernel.origin import Git, from_path, tarball
from kdelta.kernel.patch import File
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.worktree import Worktree
from kdelta.model import Kernel
from kdelta.model.progress import Quiet
from unit.kernel.tiny_tree import PIPE, TREE, git, patch, planted

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)


class Told(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self.lines.append(text)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    return planted(tmp_path / "linux")


@pytest.fixture
def repository(tree: Path) -> Path:
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "first")
    git(tree, "tag", "v1")
    return tree


def log_of(text: str) -> str:
    return Path(source.built_facts(parse_kernel(text)).log).read_text()


def test_a_folder_is_built_with_its_facts(tree: Path) -> None:
    kernel = source.resolve_source(parse_kernel(f"base=src:{tree}"))
    assert (kernel.label, kernel.release, kernel.arch) == ("base", "6.12.1", "x86_64")
    assert kernel.config["MEMCG"] == "y"
    assert kernel.build_id
    assert Path(kernel.image_path).read_bytes()[:4] == b"\x7fELF"


def test_the_users_tree_is_left_as_it_was(repository: Path) -> None:
    (repository / "fs/pipe.c").write_text(PIPE.replace("LIMIT", "9"))
    os.utime(repository / "fs/other.c", (1, 1))
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in repository.rglob("*") if path.is_file()}
    source.resolve_source(parse_kernel(f"src:{repository}"))
    source.resolve_source(parse_kernel(f"src:{repository}@v1"))
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in repository.rglob("*") if path.is_file()}
    assert after == before


def test_uncommitted_changes_count_without_a_ref_and_not_with_one(repository: Path) -> None:
    committed = source.resolve_source(parse_kernel(f"src:{repository}@main"))
    (repository / "fs/pipe.c").write_text(PIPE.replace("LIMIT", "9"))
    (repository / "include/b.h").write_text("#define B 1\n")
    dirty = source.resolve_source(parse_kernel(f"src:{repository}"))
    assert dirty.image_sha256 != committed.image_sha256
    assert "2 uncommitted files" in dirty.origin
    again = source.resolve_source(parse_kernel(f"src:{repository}@main"))
    assert again.image_sha256 == committed.image_sha256


def test_a_change_of_ref_compiles_only_the_files_that_differ(repository: Path) -> None:
    source.resolve_source(parse_kernel(f"src:{repository}@v1"))
    (repository / "fs/other.c").write_text("int other(int a)\n{\n\treturn a * 5;\n}\n")
    git(repository, "commit", "-q", "-am", "second")
    log = log_of(f"src:{repository}@main")
    assert "fs/other.o" in log
    assert "fs/pipe.o" not in log


def test_a_patch_compiles_one_file_and_is_remembered(tree: Path, tmp_path: Path) -> None:
    base = source.resolve_source(parse_kernel(f"src:{tree}"))
    mine = patch(tmp_path, "my.patch", PIPE.replace("count + LIMIT", "count - LIMIT"))
    patched = source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
    assert patched.image_sha256 != base.image_sha256
    assert "+my.patch" in patched.origin
    assert (base.label, patched.label) == ("linux", "linux+my")
    facts = source.built_facts(parse_kernel(f"src:{tree}+{mine}"))
    assert [one.path for one in facts.locations] == ["fs/pipe.c"]
    log = Path(facts.log)
    assert "fs/pipe.o" in log.read_text()
    assert "fs/other.o" not in log.read_text()
    written = log.stat().st_mtime_ns
    assert source.resolve_source(parse_kernel(f"src:{tree}+{mine}")) == patched
    assert log.stat().st_mtime_ns == written


def test_kconfig_is_asked_again_only_where_a_patch_sways_it(tree: Path, tmp_path: Path) -> None:
    def configured() -> int:
        (counted,) = (tmp_path / "cache").glob("build/*/obj-*/configured")
        return len(counted.read_text().splitlines())

    source.resolve_source(parse_kernel(f"src:{tree}"))
    mine = patch(tmp_path, "my.patch", PIPE.replace("LIMIT", "LIMIT * 2"))
    source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
    assert configured() == 1
    options = patch(tmp_path, "kconfig.patch", "# some\n", "# none\n", "Kconfig")
    source.resolve_source(parse_kernel(f"src:{tree}+{options}"))
    assert configured() == 2


def test_kconfig_is_asked_again_only_for_commits_that_sway_it(repository: Path, tmp_path: Path) -> None:
    asked = []
    for path, text in (
        ("fs/pipe.c", PIPE),
        ("fs/pipe.c", PIPE.replace("LIMIT", "2")),
        ("Kconfig", "# other\n"),
        ("fs/a/Kconfig.x", ""),
    ):
        (repository / path).parent.mkdir(exist_ok=True)
        (repository / path).write_text(text)
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "--allow-empty", "-m", path)
        source.resolve_source(parse_kernel(f"src:{repository}@HEAD"))
        (counted,) = (tmp_path / "cache").glob("build/*/obj-*/configured")
        asked.append(len(counted.read_text().splitlines()))
    assert asked == [1, 1, 2, 3]


def test_what_sways_kconfig_is_told_as_a_tree_is_filled(repository: Path, tmp_path: Path) -> None:
    """A machine that builds for another one has the tree, but not always the repository."""
    origin, work = from_path(str(repository), "HEAD"), Worktree(tmp_path / "work")
    assert isinstance(origin, Git) and origin.config_base(work) == origin.base
    origin.fill(work, Quiet())
    gone = replace(origin, git_dir="/nowhere")
    assert gone.config_base(work) == origin.config_base(work) != origin.base
    assert replace(gone, base="git:other").config_base(work) == "git:other"


def test_a_patch_and_its_reverse_give_the_first_image_bit_for_bit(tree: Path, tmp_path: Path) -> None:
    base = source.resolve_source(parse_kernel(f"src:{tree}"))
    mine = patch(tmp_path, "my.patch", PIPE.replace("LIMIT", "LIMIT * 2"))
    there_and_back = source.resolve_source(parse_kernel(f"src:{tree}+{mine}-{mine}"))
    assert there_and_back.image_sha256 == base.image_sha256


def test_a_merged_patch_is_taken_out(tree: Path, tmp_path: Path) -> None:
    new = PIPE.replace("LIMIT", "LIMIT * 2")
    mine = patch(tmp_path, "my.patch", new)
    without = source.resolve_source(parse_kernel(f"src:{tree}"))
    (tree / "fs/pipe.c").write_text(new)
    with pytest.raises(UserError, match="already merged"):
        source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
    assert source.resolve_source(parse_kernel(f"src:{tree}-{mine}")).image_sha256 == without.image_sha256


def test_a_patch_that_does_not_compile_says_so_with_the_compilers_line(tree: Path, tmp_path: Path) -> None:
    source.resolve_source(parse_kernel(f"src:{tree}"))
    mine = patch(tmp_path, "my.patch", PIPE.replace("return count + LIMIT", "return cuont + LIMIT"))
    with pytest.raises(HostError, match=r"the patch does not compile: fs/pipe\.c:8:.*'?cuont.*; log: .*build\.log"):
        source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))


def test_a_patch_that_breaks_another_file_is_blamed_where_the_base_was_built(tree: Path, tmp_path: Path) -> None:
    source.resolve_source(parse_kernel(f"src:{tree}"))
    mine = patch(tmp_path, "my.patch", "#define LIMITT 7\n", "#define LIMIT 7\n", "include/a.h")
    with pytest.raises(HostError, match="builds without the patch, but not with it: fs/"):
        source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))


def test_a_tree_that_does_not_build_is_not_blamed_on_a_patch(tree: Path) -> None:
    (tree / "fs/other.c").write_text("int other(int a)\n{\n")
    with pytest.raises(HostError, match=r"does not build: fs/other\.c"):
        source.resolve_source(parse_kernel(f"src:{tree}"))


def test_the_base_is_whole_again_after_a_failed_patch(tree: Path, tmp_path: Path) -> None:
    base = source.resolve_source(parse_kernel(f"src:{tree}"))
    mine = patch(tmp_path, "my.patch", PIPE.replace("count + LIMIT", "cuont"))
    with pytest.raises(HostError):
        source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
    comment = patch(tmp_path, "comment.patch", PIPE.replace("\tif (!count)", "\t/* nothing */\n\tif (!count)"))
    assert source.resolve_source(parse_kernel(f"src:{tree}+{comment}")).image_sha256 == base.image_sha256


def test_a_file_that_the_config_does_not_build_is_named(tree: Path, tmp_path: Path) -> None:
    mine = patch(tmp_path, "my.patch", "int unused = 1;\n", "int unused;\n", "fs/unused.c")
    told = Told()
    spec = parse_kernel(f"src:{tree}+{mine}")
    source.resolve_source(spec, told)
    assert "fs/unused.c is changed by the patch, but this config does not build it" in told.lines
    known = source.remembered(spec)
    assert known is not None and known.left_out.parts == ("fs/unused.c",)
    before = source.remembered(spec, 0)
    assert before is None, "the tree without its patch was not built"


def test_an_option_that_could_not_be_had_is_named(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.config").write_text("CONFIG_NOSUCH=y\nCONFIG_EXTRA=y\n# CONFIG_KSM is not set\n")
    kernel = source.resolve_source(parse_kernel(f"src:{tree},config={tmp_path / 'mine.config'}"))
    notes = source.built_facts(parse_kernel(f"src:{tree},config={tmp_path / 'mine.config'}")).notes
    assert [note for note in notes if "NOSUCH" in note] == [
        "CONFIG_NOSUCH: requested y, got n (no Kconfig file of this source has it)"
    ]
    base = source.resolve_source(parse_kernel(f"src:{tree}"))
    assert source.config_differences(base, kernel) == ("CONFIG_EXTRA: n -> y", "CONFIG_KSM: y -> n")


def test_a_kernel_that_was_built_with_other_programs_is_built_again(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(pahole: str) -> tuple[str, int]:
        monkeypatch.setattr(toolchain, "_version", lambda name: pahole if name == "pahole" else "")
        kernel = source.resolve_source(parse_kernel(f'src:{tree},config="PAHOLE_VERSION=0"'))
        (configured,) = (tmp_path / "cache").glob("build/*/obj-*/configured")
        assert source.config_differences(kernel, kernel) == ()
        return dict(source.built_facts(parse_kernel(kernel.spec)).asked)["PAHOLE_VERSION"], len(
            configured.read_text().split()
        )

    assert built("") == ("0", 1)
    assert built("") == ("0", 1), "nothing has changed"
    assert built("v1.25\n") == ("125", 2), "Kconfig is asked again"
    assert toolchain.probe("x86_64").suits("CONFIG_PAHOLE_VERSION=125\nCONFIG_RUSTC_VERSION=0\n")
    assert not toolchain.probe("x86_64").suits("CONFIG_RUSTC_VERSION=108501\n")
    monkeypatch.setattr(toolchain, "_version", lambda name: "rustc 1.85.1 (4eb161250 2025-03-15)\n")
    assert dict(toolchain.probe("x86_64").asked) == {"PAHOLE_VERSION": "0", "RUSTC_VERSION": "108501"}


def test_a_series_is_built_step_by_step(tree: Path, tmp_path: Path) -> None:
    two = PIPE.replace("LIMIT", "LIMIT * 2")
    three = two.replace("return 0", "return 1")
    parts = []
    for number, (old, new) in enumerate(((PIPE, two), (two, three)), 1):
        body = patch(tmp_path, "x", new, old).read_text()
        parts.append(
            f"From 1 Mon Sep 17 00:00:00 2001\nFrom: a@b\nSubject: [PATCH {number}/2] step {number}\n\n{body}\n"
        )
    (tmp_path / "series.mbox").write_text("".join(reversed(parts)))
    each = source.resolve_each(parse_kernel(f"src:{tree}+{tmp_path / 'series.mbox'}"))
    kernels = [one for one in each if isinstance(one, Kernel)]
    assert [kernel.label for kernel in kernels] == ["0/2 before the series", "1/2 step 1", "2/2 step 2"]
    assert len({kernel.image_sha256 for kernel in kernels}) == 3
    assert "+series.mbox [1/2] +series.mbox [2/2];" in kernels[2].origin
    whole = source.resolve_source(parse_kernel(f"src:{tree}+{tmp_path / 'series.mbox'}"))
    assert kernels[2].image_sha256 == whole.image_sha256


def test_a_lost_image_is_built_again(tree: Path) -> None:
    first = source.resolve_source(parse_kernel(f"src:{tree}"))
    shutil.rmtree(Path(first.image_path).parent)
    assert source.resolve_source(parse_kernel(f"src:{tree}")).image_sha256 == first.image_sha256


def test_a_patch_through_a_link_of_the_tree_is_refused(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.c").write_text("int a;\n")
    (tree / "linked").symlink_to(outside)
    mine = patch(tmp_path, "my.patch", "int b;\n", "int a;\n", "linked/a.c")
    with pytest.raises(UserError, match="goes through the symbolic link linked"):
        source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
    assert (outside / "a.c").read_text() == "int a;\n"


def test_a_patch_through_a_file_of_the_tree_is_refused_and_harms_nothing(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "my.patch").write_text("--- /dev/null\n+++ b/fs/pipe.c/x.c\n@@ -0,0 +1 @@\n+int a;\n")
    with pytest.raises(UserError, match=r"goes through fs/pipe\.c, which is a file"):
        source.resolve_source(parse_kernel(f"src:{tree}+{tmp_path / 'my.patch'}"))
    assert source.resolve_source(parse_kernel(f"src:{tree}")).release == "6.12.1"


def test_a_full_disk_is_one_line(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(Worktree, "lay", full)
    with pytest.raises(HostError, match="disk full"):
        source.resolve_source(parse_kernel(f"src:{tree}"))


def test_a_crash_while_a_patch_is_laid_loses_nothing(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = source.resolve_source(parse_kernel(f"src:{tree}"))
    two = "--- a/fs/other.c\n+++ b/fs/other.c\n@@ -2,3 +2,3 @@\n {\n-\treturn a * 3;\n+\treturn a;\n }\n"
    mine = patch(tmp_path, "my.patch", PIPE.replace("LIMIT", "LIMIT * 2"))
    mine.write_text(mine.read_text() + two)
    write = Worktree._write

    def crash(self: Worktree, path: str, wanted: File) -> bool:
        if path == "fs/pipe.c" and "* 2" in (wanted.text or ""):
            raise KeyboardInterrupt
        return write(self, path, wanted)

    monkeypatch.setattr(Worktree, "_write", crash)
    with pytest.raises(KeyboardInterrupt):
        source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
    monkeypatch.setattr(Worktree, "_write", write)
    shutil.rmtree(tmp_path / "cache/build/products")
    assert source.resolve_source(parse_kernel(f"src:{tree}")).image_sha256 == base.image_sha256


def test_what_is_no_kernel_tree_is_refused(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "empty").mkdir()
    for text, why in (
        ("nowhere", "no such directory"),
        ("empty", "not a kernel source"),
        ("linux@v9", "not a git repository"),
    ):
        with pytest.raises(UserError, match=why):
            source.resolve_source(parse_kernel(f"src:{tmp_path}/{text}"))


def test_an_unknown_ref_is_refused(repository: Path) -> None:
    with pytest.raises(UserError, match="no commit 'v9'"):
        source.resolve_source(parse_kernel(f"src:{repository}@v9"))


def test_hooks_of_the_repository_do_not_run(repository: Path, tmp_path: Path) -> None:
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = repository / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    source.resolve_source(parse_kernel(f"src:{repository}"))
    assert not (tmp_path / "ran").exists()


def test_a_bare_repository_will_do(repository: Path, tmp_path: Path) -> None:
    git(repository, "clone", "-q", "--bare", str(repository), str(tmp_path / "linux.git"))
    assert source.resolve_source(parse_kernel(f"src:{tmp_path}/linux.git@v1")).release == "6.12.1"


def test_a_tarball_is_unpacked_without_its_top_folder(tree: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "s.tar.xz", "w:xz") as tar:
        tar.add(tree, "linux-source-6.12")
    origin = tarball(tmp_path / "s.tar.xz", "debian-x", "Debian x", (6, 12))
    work = Worktree(tmp_path / "work")
    origin.fill(work, Quiet())
    assert (work.src / "fs/pipe.c").read_text() == PIPE
    assert work.base_id == origin.base


def test_products_of_a_build_inside_a_folder_stay_behind(tree: Path, tmp_path: Path) -> None:
    for name in (".config", "vmlinux", "include/generated/x.h", "arch/x86/include/generated/y.h", "fs/.pipe.o.cmd"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("built")
    work = Worktree(tmp_path / "work")
    from_path(str(tree), "").fill(work, Quiet())
    assert sorted(str(path.relative_to(work.src)) for path in work.src.rglob("*") if path.is_file()) == sorted(TREE)


def test_two_builds_in_one_tree_wait_for_each_other(tree: Path, tmp_path: Path) -> None:
    mine = patch(tmp_path, "my.patch", PIPE.replace("LIMIT", "LIMIT * 2"))
    found: dict[str, str] = {}

    def run(text: str) -> None:
        found[text] = source.resolve_source(parse_kernel(text)).image_sha256

    texts = [f"src:{tree}", f"src:{tree}+{mine}"]
    threads = [threading.Thread(target=run, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found.values())) == 2
    assert found[texts[0]] == source.resolve_source(parse_kernel(texts[0])).image_sha256


def test_a_work_tree_is_listed_and_removed_unless_it_is_in_use(tree: Path) -> None:
    source.resolve_source(parse_kernel(f"src:{tree}"))
    (found,) = trees.trees()
    assert found.size_bytes > 0
    with Worktree(found.folder).locked(Quiet()):
        assert not trees.remove(found)
    assert trees.remove(found)
    assert list(trees.trees()) == []


def test_missing_programs_are_named_with_their_packages(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "missing", lambda arch: ["bc", "libelf-dev"])
    with pytest.raises(HostError, match="apt-get install bc libelf-dev"):
        source.resolve_source(parse_kernel(f"src:{tree}"))
