# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of this machine are measured in guests of its architecture alone."""

from __future__ import annotations

import platform

import pytest

from kdelta.errors import UserError
from kdelta.experiment import programs
from kdelta.model import Case
from kdelta.model.progress import Quiet
from kdelta.spec.workloads import catalogue
from unit.store.store_builders import experiment, kernel

PROGRAM = Case(workload="stress-ng/pipe", params={"pack": "0123"})
OWN = Case(workload="pipe")


class Notes(Quiet):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def test_a_map_of_another_architecture_leaves_programs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """kdelta reach debian:6.12,arch=arm64 was refused: programs of some suites are those of this machine."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    notes = Notes()
    assert programs.runnable([kernel(arch="arm64")], [PROGRAM, OWN], catalogue(), notes) == [OWN]
    assert notes.said == ["1 case left out: programs of this x86_64 machine, and 6.12 is arm64"]
    assert (
        programs.runnable([kernel(arch="x86_64")], [PROGRAM, OWN], catalogue(), notes) == [PROGRAM, OWN]
        and len(notes.said) == 1
    )


def test_a_program_that_was_asked_for_is_refused_with_what_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    arm = experiment(kernels=(kernel("a", arch="arm64"), kernel("b", arch="arm64")))
    with pytest.raises(UserError, match=r"it cannot run the programs of this x86_64 machine; .*--suite patches"):
        programs.packed(arm, {0: PROGRAM})
    assert programs.packed(arm, {0: OWN}) == ({}, ())
