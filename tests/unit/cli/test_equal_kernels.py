# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said before the boots: kernels that are one, and plans too short for any verdict."""

from __future__ import annotations

from kdelta.cli import _kernels, compare
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
