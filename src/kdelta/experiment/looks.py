# SPDX-License-Identifier: GPL-2.0-or-later
"""Sequential looks: decided once, while the experiment runs, and stored for good. Reports only read the boots.

A look that is stored is read back, however the floors or the rules have changed since: alpha that is spent stays spent.
"""

from __future__ import annotations

import msgspec

from kdelta import verdict
from kdelta.model import Experiment, OpenCell
from kdelta.results import cells, definitions
from kdelta.stats import counts, sequential
from kdelta.store import planned
from kdelta.store.store import Store


def undecided(store: Store, experiment: Experiment, blocks: int) -> tuple[OpenCell, ...]:
    """The cells that are still open after ``blocks`` blocks."""
    for look in store.looks(experiment.id):
        if look.blocks == blocks:
            return planned.open_after(experiment, look.payload)
    numbers = [n for n in store.numbers(experiment.id) if n.block < blocks]
    data = cells.of_numbers(experiment, store, numbers)
    floors, metrics = cells.floors_of(experiment, store), definitions.metrics_of(experiment)
    still = verdict.open_cells(experiment, data, floors, metrics)
    rows = verdict.judge(experiment, data, floors, metrics)
    decided = {
        f"{r.case}/{r.metric}/{r.mitigations}/{r.patched_label}": str(r.verdict or r.state) for r in rows if r.primary
    }
    payload = {"open": sorted({cell.case for cell in still}), "cells": msgspec.to_builtins(still)}
    store.save_look(experiment.id, blocks, decided, _spent(experiment, blocks), payload, final=not still)
    return still


def _spent(experiment: Experiment, blocks: int) -> float:
    """The two-sided error that is spent by this look; one that can only find facts spends their chance."""
    if experiment.mode == "timed":
        return sequential.plan(experiment.looks).spent[experiment.looks.index(blocks)]
    looks = counts.sequential_looks(experiment.looks)
    return sequential.plan(looks).spent[looks.index(blocks)] if blocks in looks else counts.chance(blocks)
