# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said before the boots: kernels that are one, a range of one, and plans too short for any verdict."""

from __future__ import annotations

import pytest

from kdelta.cli import _kernels, _patching, compare
from kdelta.errors import UserError
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel, Quiet
from unit.store.store_builders import experiment


class Notes(Quiet):
    def __init__(self) -> None:
        self.all: list[str] = []

    def note(self, text: str) -> None:
        self.all.append(text)


def kernel(label: str, sha256: str, cmdline: str = "") -> Kernel:
    return Kernel(label=label, spec=label, release="6.12", image_path="/x", image_sha256=sha256, cmdline=cmdline)


def test_a_kernel_that_is_another_one_again_is_named() -> None:
    notes = Notes()
    _kernels.note_equal([kernel("a", "1"), kernel("b", "2"), kernel("c", "1", "quiet")], "timed", notes)
    assert notes.all == []
    twice = [kernel("a", "1"), kernel("a#2", "1"), kernel("other", "3")]
    _kernels.note_equal(twice, "timed", notes)
    _kernels.note_equal(twice, "exact", notes)
    again = "a#2 is a again, the same image and command line: "
    assert notes.all == [again + "only noise is measured", again + "counts repeat, so no noise shows"]


def test_a_plan_too_short_for_a_verdict_is_named() -> None:
    """``--timed --blocks 4`` took minutes, and ended with that there is no verdict."""
    notes = Notes()
    for mode, blocks in (("timed", 8), ("timed", 4), ("exact", 5), ("exact", 3)):
        compare.note_few(experiment("e", mode=mode, blocks=blocks), notes)
    without = "gives figures without a verdict: a verdict needs"
    assert notes.all == [f"--blocks 4 {without} 8", f"--seeds 3 {without} 5"]


def test_a_range_of_one_kernel_is_not_compared_with_nothing() -> None:
    """Twenty boots were made of ``debian:6.1..6.2``, and the answer was that there is nothing to compare them with."""
    only, others = parse_kernel("debian:6.1..6.2"), parse_kernel("debian:6.1..6.12")
    with pytest.raises(UserError, match=r"two kernels or more; debian:6.1..6.2 is 6.1.192 alone"):
        _patching.refuse_alone([only], [kernel("6.1.192", "1")])
    _patching.refuse_alone([others], [kernel("6.1.192", "1"), kernel("6.12.118", "2")])
