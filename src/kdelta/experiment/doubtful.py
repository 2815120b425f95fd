# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cells of stored counts the host may have had a part in: they hung, or failed and did not say so themselves."""

from __future__ import annotations

from typing import Protocol

from kdelta.experiment.boot_result import comes_again
from kdelta.model import BootResult, Experiment
from kdelta.store.rows import Number

Cell = tuple[str, str, str, str]  # image, command line, mitigations, case

_DOUBTFUL = ("hung", "failed")


class Stored(Protocol):
    """The part of the store that is asked."""

    def numbers(self, experiment_id: str) -> list[Number]: ...
    def boot(self, experiment_id: str, block: int, slot: int) -> BootResult: ...


def cells(store: Stored, experiment: Experiment) -> dict[Cell, str]:
    """Each such cell with how it ended, in words, in the order of the plan."""
    ended = {(n.block, n.slot, n.case): n for n in store.numbers(experiment.id) if n.state in _DOUBTFUL}
    places = {(block, slot) for block, slot, _ in ended}
    doubted = {place for place in places if _doubted(store.boot(experiment.id, *place), len(experiment.cases))}
    found: dict[Cell, str] = {}
    for one in ended.values():
        if (one.block, one.slot) in doubted:
            kernel, case = experiment.kernels[one.kernel], experiment.cases[one.case].name
            cell = (kernel.image_sha256, kernel.cmdline, one.mitigations, case)
            found.setdefault(cell, f"{case} on {kernel.label} ({one.state})")
    return found


def _doubted(boot: BootResult, cases: int) -> bool:
    return boot.state in _DOUBTFUL or not comes_again(boot, cases)
