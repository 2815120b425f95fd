# SPDX-License-Identifier: GPL-2.0-or-later
"""Results that were worked out already: a reader goes back and forth between the pages of one experiment."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from enum import IntEnum
from threading import Lock
from typing import NamedTuple

from kdelta.model import Experiment, ExperimentResult
from kdelta.report.view import View, build
from kdelta.results import answer, cells
from kdelta.results.types import Detail, Sweep
from kdelta.store.store import Store

_KEPT = 8


class _Stamp(NamedTuple):
    """What a result depends on: while none of it changes, the result does not either."""

    experiment: Experiment
    boots: int
    looks: int
    floors: dict[str, float]


class Depth(IntEnum):
    """How much of a result is worked out: of a sweep its steps alone, or the rows too, or these with their causes."""

    STEPS, ROWS, ALL = range(3)


class Results:
    """``answer.result`` with a memory of the last few; any number of threads may ask, one works per experiment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[_Stamp, Depth, ExperimentResult, Detail]] = OrderedDict()
        self._busy: defaultdict[str, Lock] = defaultdict(Lock)
        self._lock = Lock()

    def of(self, experiment: Experiment, depth: Depth) -> tuple[ExperimentResult, Detail]:
        """The result of a stored experiment and what may be drawn of it, at least to this depth."""
        with self._lock:
            busy = self._busy[experiment.id]
        with busy:
            stamp = self.stamp(experiment)
            with self._lock:
                kept = self._kept.get(experiment.id)
            if kept is None or kept[0] != stamp or kept[1] < depth:
                kept = (stamp, *self._made(experiment, depth))
            with self._lock:
                self._kept[experiment.id] = kept
                self._kept.move_to_end(experiment.id)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return kept[2], kept[3]

    def _made(self, experiment: Experiment, depth: Depth) -> tuple[Depth, ExperimentResult, Detail]:
        if depth is Depth.STEPS and (found := answer.in_steps(self._store, experiment.id)) is not None:
            return depth, *found
        depth = max(depth, Depth.ROWS)
        return depth, *answer.result(self._store, experiment.id, hidden=depth is Depth.ALL)

    def view_of(self, experiment: Experiment, depth: Depth) -> tuple[ExperimentResult, Detail, View]:
        """``of``, and the result laid out."""
        result, detail = self.of(experiment, depth)
        return result, detail, build(result, detail)

    def sweeps_of(self, experiment: Experiment) -> tuple[Sweep, ...]:
        """The sweeps alone, of the result where that is known."""
        with self._lock:
            kept = self._kept.get(experiment.id)
        known = kept is not None and kept[0] == self.stamp(experiment)
        if kept is not None and known:
            return kept[3].sweeps
        return answer.sweeps(self._store, experiment.id, placed=False)

    def stamp(self, experiment: Experiment) -> _Stamp:
        """Equal while the result stays."""
        floors = cells.floors_of(experiment, self._store)
        boots, looks = len(self._store.done(experiment.id)), len(self._store.looks(experiment.id))
        return _Stamp(experiment, boots, looks, floors)


class Sweeps:
    """The sweeps of every experiment that was read: a page of all of them works none out a second time."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._kept: dict[str, tuple[_Stamp, tuple[Sweep, ...]]] = {}

    def of(self, experiment: Experiment) -> tuple[Sweep, ...]:
        """The sweeps of a stored experiment."""
        stamp = self._results.stamp(experiment)
        kept = self._kept.get(experiment.id)
        if kept is None or kept[0] != stamp:
            kept = self._kept[experiment.id] = (stamp, self._results.sweeps_of(experiment))
        return kept[1]
