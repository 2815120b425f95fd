# SPDX-License-Identifier: GPL-2.0-or-later
"""Which objects belong to which source: what one that is gone left behind is not linked into the next kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.kernel import source, toolchain
from kdelta.kernel.build import Builder
from kdelta.kernel.sources import parse_kernel
from unit.kernel.tiny_tree import PIPE, TREE, git, patch, planted

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)
ADDED = "int added(int a)\n{\n\treturn a;\n}\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    return planted(tmp_path / "linux")


def test_a_file_that_is_renamed_but_not_in_the_makefile_does_not_build(tree: Path, tmp_path: Path) -> None:
    base = source.resolve_source(parse_kernel(f"src:{tree}"))
    mine = tmp_path / "rename.patch"
    mine.write_text(
        "diff --git a/fs/other.c b/fs/another.c\nsimilarity index 100%\n"
        "rename from fs/other.c\nrename to fs/another.c\n"
    )
    with pytest.raises(HostError, match=r"builds without the patch, but not with it: .*other\.o"):
        source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
    comment = patch(tmp_path, "comment.patch", PIPE.replace("\tif (!count)", "\t/* nothing */\n\tif (!count)"))
    assert source.resolve_source(parse_kernel(f"src:{tree}+{comment}")).image_sha256 == base.image_sha256


def test_a_new_file_of_one_patch_is_not_found_by_another_that_forgot_it(tree: Path, tmp_path: Path) -> None:
    makefile = TREE["Makefile"].replace("$(O)/fs/start.o\n", "$(O)/fs/start.o $(O)/fs/added.o\n")
    forgot = patch(tmp_path, "forgot.patch", makefile, TREE["Makefile"], "Makefile")
    whole = tmp_path / "whole.patch"
    lines = "".join(f"+{line}" for line in ADDED.splitlines(True))
    whole.write_text(f"{forgot.read_text()}--- /dev/null\n+++ b/fs/added.c\n@@ -0,0 +1,4 @@\n{lines}")
    source.resolve_source(parse_kernel(f"src:{tree}"))
    source.resolve_source(parse_kernel(f"src:{tree}+{whole}"))
    with pytest.raises(HostError, match=r"builds without the patch, but not with it: .*added\.o"):
        source.resolve_source(parse_kernel(f"src:{tree}+{forgot}"))


def test_a_file_that_is_gone_in_another_commit_is_not_linked(tree: Path) -> None:
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "first")
    git(tree, "rm", "-q", "fs/other.c")
    git(tree, "commit", "-qm", "the file is gone, and the Makefile names it")
    source.resolve_source(parse_kernel(f"src:{tree}@main~1"))
    with pytest.raises(HostError, match=r"does not build.*other\.o"):
        source.resolve_source(parse_kernel(f"src:{tree}@main"))


def test_an_object_that_another_commits_makefile_named_is_no_sign_that_its_source_is_built(tree: Path) -> None:
    makefile = TREE["Makefile"].replace("$(O)/fs/start.o\n", "$(O)/fs/start.o $(O)/fs/unused.o\n")
    git(tree, "init", "-q", "-b", "main")
    (tree / "Makefile").write_text(makefile)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "first")
    (tree / "Makefile").write_text(TREE["Makefile"])
    git(tree, "commit", "-qam", "unused is not built")
    source.resolve_source(parse_kernel(f"src:{tree}@main~1"))
    mine = patch(tree.parent, "unused.patch", "int not_used;\n", TREE["fs/unused.c"], "fs/unused.c")
    spec = parse_kernel(f"src:{tree}@main+{mine}")
    source.resolve_source(spec)
    notes = source.built_facts(spec).notes
    assert "fs/unused.c is changed by the patch, but this config does not build it" in notes


def test_a_source_that_another_one_includes_is_built(tmp_path: Path) -> None:
    tools = toolchain.Toolchain(arch="x86_64", prefix="", ccache=False, title="gcc", id="x")
    builder = Builder(tmp_path / "src", tmp_path / "obj", tools, cache=tmp_path, jobs=1)
    made_of = tmp_path / "obj/kernel/sched/.build_policy.o.cmd"
    made_of.parent.mkdir(parents=True)
    for name in (
        "lib/vdso/gettimeofday.c",
        "kernel/fork.c",
        "kernel/exit.c",
        "kernel/sched/core.c",
        "kernel/sched/rt.c",
        "kernel/sched/cor.c",
        "kernel/sched/sched.h",
        "kernel/sched/ext.h",
    ):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_bytes(b"")
    made_of.with_name("build_policy.o").write_bytes(b"")
    made_of.write_text(
        "deps_x := \\\n  ../src/kernel/sched/core.c \\\n  ../src/kernel/sched/rt.c \\\n  ../src/kernel/sched/sched.h\n"
    )
    (tmp_path / "obj/kernel/fork.o").write_bytes(b"")
    of_vdso = tmp_path / "obj/arch/x86/entry/vdso/.vclock_gettime.o.cmd"  # was "not built", which had changed the vDSO
    of_vdso.parent.mkdir(parents=True)
    of_vdso.with_name("vclock_gettime.o").write_bytes(b"")
    of_vdso.write_text("deps_x := \\\n  ../src/lib/vdso/gettimeofday.c \\\n")
    paths = [
        "lib/vdso/gettimeofday.c",
        "kernel/sched/core.c",
        "kernel/sched/rt.c",
        "kernel/sched/cor.c",
        "kernel/fork.c",
        "kernel/exit.c",
        "kernel/sched/sched.h",
        "kernel/sched/ext.h",
        "a.h",
        "rust/kernel/time.rs",  # was "machine code and data are identical", without a word of CONFIG_RUST
        "rust/kernel/task.rs",
        "gone.c",
    ]
    of_crate = tmp_path / "obj/rust/.kernel.o.cmd"
    of_crate.parent.mkdir()
    of_crate.write_text("deps_x := \\\n  ../src/rust/kernel/lib.rs \\\n  ../src/rust/kernel/task.rs \\\n")
    for name in ("time.rs", "task.rs"):
        (tmp_path / "src/rust/kernel").mkdir(parents=True, exist_ok=True)
        (tmp_path / "src/rust/kernel" / name).write_bytes(b"")
    missing = ["kernel/sched/cor.c", "kernel/exit.c", "kernel/sched/ext.h", "rust/kernel/time.rs"]
    assert builder.not_built(paths) == missing
    others = {
        "arch/x86/vmlinux.lds.S": "vmlinux.lds",
        "arch/x86/asm-offsets.c": "asm-offsets.s",
        "arch/x86/host.c": "host",
    }
    for name, made in others.items():  # a patch that moved all text was "identical, as vmlinux.lds.S is not built"
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_bytes(b"")
        (tmp_path / "obj/arch/x86" / made).write_bytes(b"")
    (tmp_path / "src/arch/x86/entry.c").write_bytes(b"")  # what is made is no directory
    assert builder.not_built([*others, "arch/x86/entry.c"]) == ["arch/x86/entry.c"]


def test_what_was_built_of_the_same_files_elsewhere_is_of_the_tree_that_was_named(tree: Path, tmp_path: Path) -> None:
    """A review said that its series was applied to the tree, and the commit, of a test that ran before."""
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "first")
    git(tree, "clone", "-q", str(tree), str(tmp_path / "mine"))
    git(tmp_path / "mine", "commit", "-q", "--allow-empty", "-m", "second")
    kernels = [source.resolve_source(parse_kernel(f"src:{one}@main")) for one in (tree, tmp_path / "mine")]
    assert kernels[0].image_sha256 == kernels[1].image_sha256
    for kernel, one in zip(kernels, (tree, tmp_path / "mine"), strict=True):
        assert kernel.origin.startswith(f"{one}@main ({git(one, 'rev-parse', 'HEAD')[:12]}); guest config; ")
