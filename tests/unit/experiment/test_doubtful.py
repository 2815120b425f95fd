# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells in which the host may have had a part are told from those that emulation would repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.experiment import doubtful
from kdelta.model import BootResult, PlannedBoot, RunResult, State
from kdelta.store.store import Store
from unit.experiment.test_taking_over import stream, sweep


@pytest.mark.parametrize(
    ("boot", "run", "said", "doubted"),
    [
        ("ok", "ok", "", ""),
        ("ok", "hung", "hung", "hung"),
        ("ok", "failed", "", "failed"),
        ("ok", "failed", "failed", ""),
        ("ok", "unsupported", "unsupported", ""),
        ("hung", None, "", "hung"),
        ("panicked", None, "", ""),
    ],
)
def test_a_cell_is_doubted_where_the_host_may_have_had_a_part(
    boot: State, run: State | None, said: str, doubted: str, tmp_path: Path
) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        experiment = sweep("a", "pq")
        store.create(experiment)
        for block in range(2):
            runs = () if run is None else (RunResult(case=0, state=run),)
            plan = PlannedBoot(block=block, slot=1, kernel=1)
            store.save_boot("a", BootResult(plan=plan, state=boot, runs=runs, stream=stream(said)))
        cell = ("q" * 8, "", "default", "pipe")
        assert doubtful.cells(store, experiment) == ({cell: f"pipe on q ({doubted})"} if doubted else {})
