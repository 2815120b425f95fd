# SPDX-License-Identifier: GPL-2.0-or-later
"""Two kernels that are one are measured, and said to be one."""

from __future__ import annotations

from kdelta.cli import _kernels
from kdelta.model import Kernel, Quiet


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
