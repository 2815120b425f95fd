# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel is not made of, of what two commits of a tree differ in: told as it is of a patch."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.kernel import source, toolchain, unseen
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.unseen import Unseen
from kdelta.model import Kernel
from unit.kernel.tiny_tree import PIPE, git, planted

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)
_KCONFIG = 'choice\n\tprompt "Timer frequency"\n\tdefault HZ_250\n\thelp\n\t  Hz.\n'
_WATCHED = "#ifdef CONFIG_WATCH_QUEUE\nint watched;\n#endif\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    found = planted(tmp_path / "linux")
    git(found, "init", "-q", "-b", "main")
    _commit(found, "first", {"kernel/Kconfig.hz": _KCONFIG})
    return found


def _commit(tree: Path, subject: str, files: Mapping[str, str | bytes]) -> None:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", subject)


def _of(tree: Path, first: str, last: str, monkeypatch: pytest.MonkeyPatch) -> Unseen:
    specs = [parse_kernel(f"src:{tree}@{ref}") for ref in (first, last)]
    kernels = [source.resolve_source(spec) for spec in specs]
    monkeypatch.setattr(source, "options", lambda _: {"HZ_250": "y", "HZ_1000": "n", "WATCH_QUEUE": "n"})
    return unseen.of(kernels[-1], specs)


def test_of_two_commits_it_is_told_what_the_config_does_not_build(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A review of a branch, and of each patch that b4 has checked, said "there is nothing to measure" of a driver."""
    _commit(tree, "driver", {"fs/unused.c": "int not_used;\n", "fs/gone.c": "int a;\n", "fs/pipe.c": PIPE + "\n"})
    (tree / "fs/gone.c").unlink()
    hz, other = _KCONFIG.replace("HZ_250", "HZ_1000"), f"{_WATCHED}int other(int a)\n{{\n\treturn a * 3;\n}}\n"
    _commit(tree, "more", {"kernel/Kconfig.hz": hz, "fs/other.c": other})
    _commit(tree, "beside a file that is no text", {"a.png": bytes(range(256)), "z.c": "int z;\n"})
    found = _of(tree, "main~3", "main", monkeypatch)
    assert found == Unseen(
        parts=("fs/unused.c", "z.c"), options=("WATCH_QUEUE",), defaults=("HZ_1000=y",), parameters=()
    )
    assert _of(tree, "main~3", "main~2", monkeypatch) == Unseen(parts=("fs/gone.c", "fs/unused.c"))


def test_boot_parameters_that_commits_bring_are_told_where_none_is_given(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _commit(tree, "parameter", {"fs/other.c": '/*\n__setup("calm", x);\n*/\nint other(int a)\n{\n\treturn a;\n}\n'})
    assert _of(tree, "main~1", "main", monkeypatch).parameters == ("calm",)
    specs = [parse_kernel(f"src:{tree}@{ref}") for ref in ("main~1", "main")]
    kernel = source.resolve_source(specs[1])
    assert unseen.of(kernel, [replace(spec, cmdline="calm") for spec in specs]).parameters == ()


@pytest.mark.parametrize(
    ("strings", "told"),
    [
        (b"\0rcutree.limit\0", "rcutree.limit="),
        (b"\1rcutree.limit\0x.limits\0no_limit\0", "rcutree.limit="),
        (b"\0rcutree.limit\0tree.limit\0", "tree.limit="),
        (b"\0rcutree.limit\0other.limit\0", "tree.limit="),  # which of them is not known
        (b"\0limit\0", "tree.limit="),
    ],
)
def test_a_parameter_is_told_by_the_name_that_the_kernel_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strings: bytes, told: str
) -> None:
    """That of kernel/rcu/tree.c was told as "tree.limit=", which no kernel takes: both sides measured the same."""
    mine = tmp_path / "x.patch"
    mine.write_text(
        "--- a/kernel/rcu/tree.c\n+++ b/kernel/rcu/tree.c\n@@ -1 +1,2 @@\n int a;\n+module_param(limit, int, 0444);\n"
    )
    (tmp_path / "vmlinux").write_bytes(strings)
    monkeypatch.setattr(source, "remembered", lambda _: None)
    kernel = Kernel(
        release="7.3",
        label="k",
        spec="src:x",
        image_path="x",
        image_sha256="0" * 64,
        vmlinux_path=str(tmp_path / "vmlinux"),
    )
    spec = parse_kernel(f"src:debian:6.12+{mine}")
    assert unseen.of(kernel, [spec]).parameters == (told,)
    assert unseen.of(kernel, [replace(spec, cmdline=f"{told}3")]).parameters == ()


def test_of_kernels_of_two_trees_and_of_one_nothing_is_told(tree: Path) -> None:
    kernel = source.resolve_source(parse_kernel(f"src:{tree}@main"))
    assert unseen.of(kernel, [parse_kernel(f"src:{tree}@main")]) == Unseen()
    assert unseen.of(kernel, [parse_kernel("debian:6.12"), parse_kernel(f"src:{tree}@main")]) == Unseen()
