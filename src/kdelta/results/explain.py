# SPDX-License-Identifier: GPL-2.0-or-later
"""Finished exact rows with the functions behind their difference."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from kdelta.attribution import because, exact, line_labels, moved, profiles
from kdelta.errors import UserError
from kdelta.model import Because, CellResult, Experiment, FunctionDelta, Profile
from kdelta.results import (
    busy,
    by_clock,
    calls,
    cancelling,
    deferred,
    definitions,
    idling,
    layout,
    placed,
    putting_off,
    rearmed,
    waiting,
)  # fmt: skip
from kdelta.results.warnings import Carried, NoNames
from kdelta.store.rows import ProfileRow
from kdelta.store.store import Store
from kdelta.verdict.warnings import Deferred, MixedCalls, Strings

_CAUSED = ("instructions", exact.TRANSFERS)  # metrics
BECAUSE_KEPT = 12  # functions in the JSON result; `kdelta why` has all
Seeds: TypeAlias = dict[tuple[int, str], dict[int, list[Profile]]]  # [case, mitigations][kernel] -> one per seed
Chosen: TypeAlias = Mapping[tuple[int, str], Mapping[int, Profile]]  # [case, mitigations][kernel] -> the median seed's


def seeds_of(
    experiment: Experiment, store: Store, only: Container[str] | None = None, *, costs_alone: bool = False
) -> Seeds:
    """For every cell and kernel the profiles of all its seeds, in order; with ``only``, those of these cases.

    ``costs_alone``: of the profiles what explains a step.
    """
    if only is None:
        stored = store.all_profiles(experiment.id, costs_alone=costs_alone)
    else:
        cases = [index for index, case in enumerate(experiment.cases) if case.name in only]
        stored = {index: store.profiles(experiment.id, index) for index in cases}
    found: Seeds = {}
    for index, rows in sorted(stored.items()):
        for row in rows:
            found.setdefault((index, row.mitigations), {}).setdefault(row.kernel, []).append(row.profile)
    return found


def chosen(seeds: Seeds) -> Chosen:
    """For every cell and kernel the profile of its median seed."""
    return {
        cell: {kernel: profiles.median_profile(found) for kernel, found in by_kernel.items()}
        for cell, by_kernel in seeds.items()
    }


def rows_of(experiment: Experiment, store: Store, row: CellResult) -> tuple[ProfileRow, ProfileRow]:
    """What is stored of the two runs behind one row: baseline and patched, of their median seeds.

    Raises:
        UserError: one of them is not there.
    """
    labels = [kernel.label for kernel in experiment.kernels]
    case = next(i for i, c in enumerate(experiment.cases) if c.name == row.case)
    stored = [one for one in store.profiles(experiment.id, case) if one.mitigations == row.mitigations]
    found = []
    for kernel in (0, labels.index(row.patched_label) if row.patched_label else 0):
        mine = [one for one in stored if one.kernel == kernel]
        if not mine:
            raise UserError(f"{row.case}: no profile is stored for {row.baseline_label} or {row.patched_label}")
        found.append(mine[profiles.median_place([one.profile for one in mine])])
    return found[0], found[1]


def profiles_of(experiment: Experiment, store: Store, row: CellResult) -> tuple[Profile, Profile]:
    """The profiles of ``rows_of``; raises as it does."""
    before, after = rows_of(experiment, store, row)
    return before.profile, after.profile


def between(
    metric: str, before: Sequence[Profile], after: Sequence[Profile], *, placed: bool = True
) -> tuple[tuple[FunctionDelta, ...], Because | None]:
    """What differs between two kernels, given a profile for each seed, and what one line tells of it.

    Of instructions these are functions, of transfers the lines that move; other metrics have no causes. What varies
    between seeds by more than it changed is left out; nothing where a side has no names. ``placed``: functions say
    where their code went or is from; if false, only where no line tells of them.
    """
    if metric not in _CAUSED or not before or not after or not all(map(moved.has_names, (*before, *after))):
        return (), None
    return _lines_between(before, after) if metric == exact.TRANSFERS else _functions_between(before, after, placed)


def _functions_between(
    before: Sequence[Profile], after: Sequence[Profile], placed: bool
) -> tuple[tuple[FunctionDelta, ...], Because | None]:
    medians = profiles.median_profile(before), profiles.median_profile(after)
    changes = because.changes(*medians)
    kept = because.significant(changes, before, after)
    told, shown = because.held(because.beside(because.line(kept), changes), *medians), kept[:BECAUSE_KEPT]
    return because.placed(shown, *medians) if placed or told is None else shown, told


def _lines_between(
    before: Sequence[Profile], after: Sequence[Profile]
) -> tuple[tuple[FunctionDelta, ...], Because | None]:
    """Which lines move more often, or less."""
    before, after = line_labels.alike(before, after)
    deltas = because.line_differences(profiles.median_profile(before), profiles.median_profile(after))
    kept = because.significant_lines(deltas, before, after)
    return kept[:BECAUSE_KEPT], because.line(kept)


def _nameless(experiment: Experiment, row: CellResult) -> NoNames:
    why = experiment.annotations.nameless
    labels = dict.fromkeys((row.baseline_label, row.patched_label))
    return NoNames(tuple((label, why[label]) for label in labels if label in why))


class Explainer:
    """Explains finished rows of an experiment by the ``seeds`` of its cells."""

    def __init__(self, experiment: Experiment, seeds: Seeds) -> None:
        self._experiment, self._seeds = experiment, seeds
        self._cases = places(case.name for case in experiment.cases)
        self._kernels = places(kernel.label for kernel in experiment.kernels)
        self._endless = calls.endless(definitions.metrics_of(experiment))

    def by_kernel(self, row: CellResult) -> Mapping[str, list[Profile]]:
        """The profiles of all seeds of a row's case, by kernel."""
        mine = self._seeds.get((self._cases[row.case], row.mitigations), {})
        return {label: mine[kernel] for label, kernel in self._kernels.items() if kernel in mine}

    def sides(self, row: CellResult) -> tuple[list[Profile], list[Profile]]:
        """The profiles of the first kernel and of the row's own."""
        mine = self._seeds.get((self._cases[row.case], row.mitigations), {})
        return mine.get(0, []), mine.get(self._kernels[row.patched_label], [])

    def held(self, rows: Sequence[CellResult]) -> tuple[CellResult, ...]:
        """The ``rows``, held against what they would be with the system calls of the baseline."""
        found = [self._held(row) if row.patched_label else row for row in rows]
        return beside(found, found)

    def _held(self, row: CellResult) -> CellResult:
        case = self._experiment.cases[self._cases[row.case]]
        sides = self.sides(row)
        found = calls.held(row, *sides, endless=case.workload in self._endless)
        found = placed.held(found, case, placed.shared_cpus(self._experiment), *sides)
        found = waiting.held(found, case, self._experiment.machine.smp, *sides)
        found = by_clock.held(found, case, self._experiment.machine.smp, *sides)
        return deferred.held(found, case, self._experiment.machine.smp, *sides)

    def _explain(self, row: CellResult) -> CellResult:
        """The ``row`` with the functions that account for it, where it is significant: nothing else has causes."""
        if row.patched_label not in self._kernels or row.metric not in _CAUSED:
            return row
        before, after = self.sides(row)
        if not before or not after:
            return row
        if not all(map(moved.has_names, (*before, *after))):
            return replace(row, warnings=(*row.warnings, _nameless(self._experiment, row)))
        if row.verdict not in ("improved", "regressed"):
            return row
        deltas, told = between(row.metric, before, after)
        return replace(row, because=deltas, because_line=told)

    def _name_carrier(self, row: CellResult) -> CellResult:
        """The ``row``; a warning that another count carries the effect names where it changed most.

        Lines of code that only moved carry none.
        """
        if row.metric != layout.CODE_LINES and not any(isinstance(warning, Carried) for warning in row.warnings):
            return row
        if row.patched_label not in self._kernels:
            return row
        sides = self.sides(row)
        if not all(sides):
            return row
        before, after = map(profiles.median_profile, sides)

        def named(warning: Carried) -> Carried:
            if warning.lead in (layout.CODE_LINES, layout.DATA_LINES):
                deltas, _ = layout.changes(before, after, warning.lead)
            else:
                old, new = (profiles.column(side, warning.lead) for side in (before, after))
                deltas = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in old | new}
            return replace(warning, function=_most_of(deltas))

        found = layout.told(row, before, after)
        told = (named(w) if isinstance(w, Carried) else w for w in found.warnings)
        return replace(found, warnings=tuple(told))

    def _name_mover(self, row: CellResult) -> CellResult:
        """The ``row``; a warning that string instructions move much more, or less, names whose they are."""
        if row.patched_label not in self._kernels or not any(isinstance(warning, Strings) for warning in row.warnings):
            return row
        sides = self.sides(row)
        if not all(sides):
            return row
        old, new = (profiles.column(profiles.median_profile(side), "rep_bytes") for side in sides)
        most = _most_of({name: new.get(name, 0.0) - old.get(name, 0.0) for name in old | new})
        told = (replace(w, function=most) if isinstance(w, Strings) else w for w in row.warnings)
        return replace(row, warnings=tuple(told))

    def explained(self, row: CellResult) -> CellResult:
        """The finished ``row`` with the functions that account for it, and for what carries its effect."""
        found = self._name_mover(self._name_carrier(self._explain(row)))
        if self._experiment.machine.smp > 1 or row.patched_label not in self._kernels:
            return found
        sides = self.sides(row)
        found = cancelling.told(idling.told(found, *sides), *sides)
        found = rearmed.told(busy.told(found, *sides), *sides)
        return putting_off.told(found, *sides)


def _most_of(deltas: Mapping[str, float]) -> str:
    """The function without which less than half of the change of all would be left; "" where there is none.

    Two whose names differ in underscores are one, by the name of the one that grew.
    """
    whole = math.fsum(deltas.values())
    alike: dict[str, dict[str, float]] = {}
    for name, delta in deltas.items():
        alike.setdefault(name.lstrip("_"), {})[name] = delta
    left = {max(names, key=lambda name: names[name]): abs(whole - sum(names.values())) for names in alike.values()}
    name = min(left, key=lambda name: (left[name], name), default="")
    return name if name and left[name] < abs(whole) / 2 else ""


def beside(rows: Sequence[CellResult], known: Sequence[CellResult]) -> tuple[CellResult, ...]:
    """``rows`` without their verdicts where the instructions of their case, among the ``known``, decide nothing."""
    undecided = {_cell(row): w for row in known for w in row.warnings if isinstance(w, MixedCalls | Deferred)}
    return tuple(_beside(row, undecided.get(_cell(row))) for row in rows)


def _beside(row: CellResult, instructions: MixedCalls | Deferred | None) -> CellResult:
    """A count of a case whose ``instructions`` decide nothing, as they are; None: they may."""
    if instructions is None:
        return row
    return deferred.beside(row, instructions) if isinstance(instructions, Deferred) else calls.beside(row, instructions)


def _cell(row: CellResult) -> tuple[str, str, str, str]:
    return row.case, row.mitigations, row.baseline_label, row.patched_label


def places(names: Iterable[str]) -> dict[str, int]:
    """The place of each name, the first of equal ones."""
    found: dict[str, int] = {}
    for place, name in enumerate(names):
        found.setdefault(name, place)
    return found
