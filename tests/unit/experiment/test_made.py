# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases that use what a changed function made in their set-up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution.changes import Change
from kdelta.attribution.disassembly import Image
from kdelta.attribution.reach import Reach
from kdelta.experiment import made
from kdelta.kernel import directories, source
from kdelta.kernel.sources import parse_kernel
from unit.attribution.test_code import SOURCE, Maker
from unit.attribution.test_reach import row

REACH = Reach(
    kernel="k",
    rows=(
        row("create", alloc_pipe=(1, 50), rest=(1, 50)),
        row("write", pipe_write=(1, 60), rest=(1, 40)),
        row("poll", pipe_poll=(1, 10), rest=(1, 90)),
        row("getpid", rest=(1, 9)),
    ),
)


@pytest.mark.parametrize(
    ("callee", "most", "wanted"),
    [
        ("__kmalloc_cache", 4, ["write", "poll"]),
        ("kmem_cache_alloc_lru", 1, ["write"]),
        ("alloc_pages", 4, ["write", "poll"]),
        ("kfree", 4, []),  # it makes nothing
        ("alloc_pages_told", 4, []),
        ("__kmalloc_cache", 0, []),
    ],
)
def test_a_pipe_that_is_made_otherwise_is_measured_by_those_who_use_it(
    monkeypatch: pytest.MonkeyPatch, callee: str, most: int, wanted: list[str]
) -> None:
    """Twice as many buffers: pipe_create +6 % was the whole answer, and no case that writes was measured."""
    changes = [Change(name=name, kind="code", hosts=(name,)) for name in ("alloc_pipe", "in_no_case")]

    def calls(name: str) -> tuple[str, ...]:
        return (callee,) if name == "alloc_pipe" else ("kmalloc",)

    asked: list[set[str]] = []

    def beside(_: Path, names: set[str]) -> frozenset[str]:
        asked.append(names)
        return frozenset({"alloc_pipe", "pipe_write", "pipe_poll"})

    monkeypatch.setattr(source, "objects", lambda _: Path("/objects"))
    monkeypatch.setattr(directories, "beside", beside)
    specs = (parse_kernel("src:x"), parse_kernel("src:x+y.patch"))
    among = {"write", "poll", "getpid"}
    assert made.users(changes, REACH, calls, specs, among, most) == wanted
    assert all(names == {"alloc_pipe"} for names in asked)
    assert made.users(changes, REACH, calls, (parse_kernel("debian:6.12"),), among, most) == []


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_who_is_called_is_read_from_the_code(tmp_path: Path) -> None:
    image = Image(Maker(tmp_path, "x86_64")(SOURCE))
    assert made.called(image, "caller") >= {"callee"} and made.called(image, "absent") == frozenset()
