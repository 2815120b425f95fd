# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels along a series, of which one may not build."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.kernel import resolve, series, source
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Gap, Kernel
from kdelta.model.progress import Quiet
from kdelta.spec.kernels import KernelSpec
from unit.kernel.test_source import pytestmark as needs
from unit.kernel.test_source import tree as tree
from unit.kernel.tiny_tree import PIPE, patch

pytestmark = needs


TWO = PIPE.replace("LIMIT", "MORE")
THREE = TWO.replace("#include", "#define MORE 9\n#include", 1)
FOUR = THREE.replace("MORE 9", "MORE 8")


def test_a_patch_for_another_release_is_told_where_it_fits_and_where_not(tree: Path, tmp_path: Path) -> None:
    mail = "From 1 Mon Sep 17 00:00:00 2001\nFrom: a@b\nSubject: [PATCH 5.15.y] a step\n\n"
    told = "patch x.patch: its subject says that it is for 5.15; the source is 6.12"
    fits = patch(tmp_path, "y", PIPE.replace("LIMIT", "9")).read_text()
    spec, saved = parse_kernel(f"src:{tree}+{tmp_path / 'x.patch'}"), tmp_path / "x.patch"
    saved.write_text(mail + fits)
    assert told in source.built_facts(spec).notes
    saved.write_text(mail + fits.replace("LIMIT", "BOUND"))
    with pytest.raises(UserError, match=f"; {told}$"):
        source.resolve_source(spec)


class _Told(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self.lines += [text] if done is None else []


def test_along_a_series_each_line_is_told_once_and_how_far_it_is(tree: Path, tmp_path: Path) -> None:
    """``building linux +s.mbox [1/3] +s.mbox [2/3] +s.mbox [3/3]`` hid its end, and each kernel said all over again."""
    whole = _series(tree, tmp_path, THREE.replace("MORE", "LESS"), THREE, FOUR)
    saved = tmp_path / "series.mbox"
    saved.write_text(re.sub(r"@@ -\d+", "@@ -3", saved.read_text(), count=1))
    told = _Told()
    series.along(whole, told)
    assert len(told.lines) == len(set(told.lines))
    assert sum("offset" in line for line in told.lines) == 1, told.lines
    far = [line.rpartition("linux")[2] for line in told.lines if line.startswith("configuring")]
    assert far == ["", " +series.mbox [1/3]", " +series.mbox [2/3]", " +series.mbox [3/3]"]


def test_a_patch_that_does_not_fit_is_told_before_the_kernel_without_it_is_built(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told when that was built, most of an hour later on two cores."""

    def built(*_: object) -> None:
        raise AssertionError("a kernel was built")

    monkeypatch.setattr(source, "build_in", built)
    bad = patch(tmp_path, "bad", PIPE.replace("LIMIT", "9"), PIPE.replace("LIMIT", "BOUND"))
    good = patch(tmp_path, "good", PIPE.replace("LIMIT", "9"))
    named = [parse_kernel(f"src:{tree}{patches}") for patches in ("", f"+{good}", f"+{bad}")]
    for specs in (named, [named[1], named[2]]):
        with pytest.raises(UserError, match=r"bad.*pipe\.c"):
            resolve.resolve_all(specs)
    series_of_two = _series(tree, tmp_path, TWO, THREE)
    first, second = (tmp_path / "series.mbox").read_text().split("\nFrom 1")
    (tmp_path / "series.mbox").write_text(f"{first}\nFrom 1{second.replace('<a.h>', '<b.h>')}")
    with pytest.raises(UserError, match=r"pipe\.c"):
        series.along(series_of_two, Quiet())


def _series(tree: Path, tmp_path: Path, *texts: str) -> KernelSpec:
    """A series whose patches make the file of each of ``texts`` of the one before it, the first that of the tree."""
    total = len(texts)
    mails = (
        f"From 1 Mon Sep 17 00:00:00 2001\nFrom: a@b\nSubject: [PATCH {number}/{total}] step {number}\n\n"
        f"{patch(tmp_path, 'x', new, old).read_text()}\n"
        for number, (old, new) in enumerate(pairwise([PIPE, *texts]), 1)
    )
    (tmp_path / "series.mbox").write_text("".join(mails))
    return parse_kernel(f"src:{tree}+{tmp_path / 'series.mbox'}")


def test_a_patch_that_does_not_build_without_the_next_is_a_gap_and_the_others_are_built(
    tree: Path, tmp_path: Path
) -> None:
    """A series whose first patch uses what the second brings ended there, and nothing of it was measured."""
    whole = _series(tree, tmp_path, TWO, THREE, FOUR)
    before, gap, two, three = series.along(whole, Quiet())
    assert isinstance(gap, Gap)
    assert (gap.label, gap.by_host) == ("1/3 step 1", False)
    assert gap.why.startswith("does not build: fs/pipe.c:") and "MORE" in gap.why
    kernels = [one for one in (before, two, three) if isinstance(one, Kernel)]
    assert [one.label for one in kernels] == ["0/3 before the series", "2/3 step 2", "3/3 step 3"]
    assert kernels[-1].image_sha256 == source.resolve_source(whole).image_sha256


def test_a_series_that_does_not_build_anywhere_is_refused(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"\[1/2\]: the patch does not compile: "):
        series.along(_series(tree, tmp_path, TWO, TWO.replace("MORE", "EVEN_MORE")), Quiet())


def test_a_patch_of_a_series_that_does_not_compile_alone_says_what_is_not_given(tree: Path, tmp_path: Path) -> None:
    mine = patch(tmp_path, "my.patch", TWO)
    mine.write_text(f"From: A <a@b.c>\nSubject: [PATCH 2/3] pipe: count\n\n---\n{mine.read_text()}")
    with pytest.raises(HostError, match=r"compile \(patch my.patch is 2/3 of a series; not given: 1/3, 3/3\): fs/pipe"):
        source.resolve_source(parse_kernel(f"src:{tree}+{mine}"))
