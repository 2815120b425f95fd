# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan is complete when all that its looks asked for was booted, though fewer than planned."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kdelta.model import OpenCell, plans
from kdelta.results import answer
from kdelta.store.planned import boots_planned, boots_spared
from kdelta.store.rows import Look
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment, kernel

# Three versions under up to twelve seeds: only the last two go on after five, none after eight.
SWEEP = experiment(
    "sweep", mode="exact", plan=plans.Sweep(), kernels=tuple(map(kernel, "abc")), blocks=12, looks=(5, 8, 12)
)
STILL = [OpenCell(0, "default", 1), OpenCell(1, "default", 1), OpenCell(0, "default", 2)]


def look(blocks: int, still: list[OpenCell], **more: bool) -> Look:
    return Look(blocks=blocks, decided={}, spent_alpha=0.0, payload={"cells": msgspec.to_builtins(still)}, **more)


def test_boots_that_no_look_asked_for_are_spared() -> None:
    assert boots_planned(SWEEP) == 36
    assert boots_spared(SWEEP, []) == 0
    assert boots_spared(SWEEP, [look(5, STILL)]) == 3, "what comes after eight is not known yet"
    assert boots_spared(SWEEP, [look(5, STILL), look(8, STILL[:1])]) == 3 + 8
    assert boots_spared(SWEEP, [look(5, [])]) == 21


def test_looks_of_before_let_all_kernels_go_on_and_foreign_ones_count_for_nothing() -> None:
    old = Look(blocks=5, decided={}, spent_alpha=0.0, payload={"open": [1]})
    assert boots_spared(SWEEP, [old]) == 0
    assert boots_spared(SWEEP, [look(5, [OpenCell(0, "default", 10**9)])]) == 21, "none of its own is open"
    with pytest.raises(msgspec.ValidationError):
        boots_spared(SWEEP, [Look(blocks=5, decided={}, spent_alpha=0.0, payload={"cells": "x"})])


def test_a_sweep_whose_open_versions_were_measured_to_the_end_is_complete(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.create(SWEEP)
        for asked in (look(5, STILL), look(8, STILL[:1])):
            store.save_look("sweep", asked.blocks, {}, 0.0, asked.payload)
        last = {0: 5, 1: 12, 2: 8}
        for slot, blocks in last.items():
            for block in range(blocks):
                store.save_boot("sweep", boot(block, slot))
            found, _ = answer.result(store, "sweep")
            (row,) = store.experiments()
            assert row.status == ("complete" if slot == 2 else "partial")
        assert (found.boots_done, found.boots_planned, found.boots_spared) == (25, 36, 11)
