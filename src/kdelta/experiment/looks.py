# SPDX-License-Identifier: GPL-2.0-or-later
"""Sequential looks: decided once, while the experiment runs, and stored for good. Reports only read the boots.

A look that is stored is read back, however the floors or the rules have changed since: alpha that is spent stays spent.
"""

from __future__ import annotations

from kdelta import verdict
from kdelta.model import Experiment
from kdelta.results import cells
from kdelta.stats import sequential
from kdelta.store.store import Store


def undecided(store: Store, experiment: Experiment, blocks: int) -> tuple[int, ...]:
    """The cases that are still open after ``blocks`` blocks, by index."""
    for look in store.looks(experiment.id):
        if look.blocks == blocks:
            return tuple(int(index) for index in look.payload["open"])
    numbers = [n for n in store.numbers(experiment.id) if n.block < blocks]
    data = cells.of_numbers(experiment, store, numbers)
    floors, metrics = cells.floors_of(experiment, store), cells.metrics_of(experiment)
    still = tuple(sorted(verdict.still_undecided(experiment, data, floors, metrics)))
    rows = verdict.judge(experiment, data, floors, metrics)
    decided = {
        f"{r.case}/{r.metric}/{r.mitigations}/{r.patched_label}": str(r.verdict or r.state) for r in rows if r.primary
    }
    store.save_look(
        experiment.id,
        blocks,
        decided,
        sequential.plan(experiment.looks).spent[experiment.looks.index(blocks)],
        {"open": list(still)},
        final=not still,
    )
    return still
