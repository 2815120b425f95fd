# SPDX-License-Identifier: GPL-2.0-or-later
"""A verdict on each of the hottest cache lines: does it move more often, or less, than before?

All transfers can stay the same while the lock that a patch is about moves a fifth as often. So the lines that move most
are judged one by one over the same seeds, by the engine that judges all transfers, and corrected together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from kdelta import verdict
from kdelta.attribution import because, line_labels
from kdelta.attribution.exact import MOVED_LEAST, TRANSFERS
from kdelta.attribution.line_table import NAMELESS
from kdelta.model import CellResult, Experiment, Metric, Profile
from kdelta.results import placed
from kdelta.results.definitions import line_floor_percent
from kdelta.results.types import CellName, MovedDiff
from kdelta.store.rows import ProfileRow
from kdelta.store.store import Store

JUDGED = 12  # of each case and kernel: further ones move too seldom to tell
PART = 0.01  # of all transfers: a line that changes by less is the same, however much of its own that is
SHOWN = 5
_AS_OFTEN = 0.01  # of what it moves: memory that goes by other functions on another kernel
_WENT = 0.25  # of what came to one name, so much left the other: the same memory under both
_PREFIX = f"{TRANSFERS} of "

Figures = Mapping[int, Mapping[str, float]]  # by seed (block): transfers per operation by line


def name_of(line: str) -> str:
    """The metric that stands for ``line``."""
    return _PREFIX + line


def line_of(metric: str) -> str:
    """The line that a metric stands for; "" for any other metric."""
    return metric.removeprefix(_PREFIX) if metric.startswith(_PREFIX) else ""


def _levels(figures: Figures) -> dict[str, float]:
    """The median over seeds by line."""
    names = {name for seed in figures.values() for name in seed}
    return {name: median(seed.get(name, 0.0) for seed in figures.values()) for name in names}


def renamed(before: Figures, after: Figures) -> dict[str, str]:
    """The names of memory that ``after`` alone has, each with what ``before`` alone has for as many transfers.

    Memory without a name goes by the functions that touch it, and of these another release renames some: of the same
    28.75 transfers "pipe_read, pipe_write" were gone, and "anon_pipe_read, anon_pipe_write" new. A number alone says
    little where the functions point elsewhere: of two tasks that wake each other all such memory moves 4 or 8 times.
    """
    old, new = _alone(before, after), _alone(after, before)
    left, found = dict(old), {}
    for name, level in sorted(new.items(), key=lambda one: (-one[1], one[0])):
        near = min(left, key=lambda one: (abs(left[one] - level), one), default="")
        if near and abs(left[near] - level) <= _AS_OFTEN * level:
            del left[near]
            if _akin(name, level, old) <= {near} and _akin(near, old[near], new) <= {name}:
                found[name] = near
    return found


def _functions(name: str) -> frozenset[str]:
    """Those that memory without a name goes by."""
    return frozenset(name.removeprefix(NAMELESS).split(", "))


def _akin(name: str, level: float, others: Mapping[str, float]) -> set[str]:
    """Which of the ``others`` that move about as often are touched by a function of ``name``, too."""
    much = {other for other, often in others.items() if often >= _WENT * level}
    return {other for other in much if _functions(name) & _functions(other)}


def _strange(side: Figures, other: Figures) -> dict[str, float]:
    """The levels of memory that goes by names which the other side has in no seed."""
    elsewhere = {name for seed in other.values() for name in seed}
    return {name: level for name, level in _levels(side).items() if name.startswith(NAMELESS) and name not in elsewhere}


def _alone(side: Figures, other: Figures) -> dict[str, float]:
    """Those of them that move in most seeds."""
    return {name: level for name, level in _strange(side, other).items() if level}


def _as_before(before: Figures, after: Figures) -> dict[int, dict[str, float]]:
    """``after`` with what was ``renamed`` by its name in ``before``."""
    old = renamed(before, after)
    return {block: {old.get(name, name): value for name, value in seed.items()} for block, seed in after.items()}


def alike(before: Figures, after: Figures) -> tuple[Figures, Figures]:
    """Both sides by names that can be compared: what was ``renamed``, then what else each side alone has, as one.

    A copy that another release inlines splits one memory in two, or joins two: 1,035 transfers of
    "copy_user_generic_string" were 770 of "_copy_to_iter" and 339 of that and "_copy_from_iter". Who is who cannot be
    told, but that they move as often together. It goes by the name that moves most.
    """
    after = _as_before(before, after)
    left = [_strange(before, after), _strange(after, before)]
    if all(any(side.values()) for side in left):
        level = left[0] | left[1]
        name = min(level, key=lambda one: (-level[one], one))
        before, after = _joined(before, left[0], name), _joined(after, left[1], name)
    for names in _regrouped(before, after):
        before, after = _joined(before, names, names[0]), _joined(after, names, names[0])
    return before, after


def _regrouped(before: Figures, after: Figures) -> list[tuple[str, str]]:
    """Pairs of names between which memory went, the one that moves more first.

    A name is of the functions to which most of the moves go, so a line goes by "_copy_to_iter" or by that and
    "_copy_from_iter": of 127 and 960 transfers from 6.12 on 254 and 896 were left of ``pipe`` at four CPUs.
    """
    one, other = _levels(before), _levels(after)
    names = sorted(name for name in one.keys() & other.keys() if name.startswith(NAMELESS))
    of = {name: _functions(name) for name in names}
    change = {name: other[name] - one[name] for name in names}
    found: list[tuple[str, str]] = []
    for name, wider in ((a, b) for a in names for b in names if of[a] < of[b]):
        less, more = sorted((change[name], change[wider]))
        went = less < 0 < more and min(-less, more) >= _WENT * max(-less, more)
        if went and not any({name, wider} & set(pair) for pair in found):
            first, last = sorted((name, wider), key=lambda each: (-other[each], each))
            found.append((first, last))
    return found


def _joined(figures: Figures, names: Iterable[str], name: str) -> dict[int, dict[str, float]]:
    """With the sum of ``names`` as ``name``."""
    gone = frozenset(names)
    return {
        block: {line: value for line, value in seed.items() if line not in gone}
        | {name: sum(value for line, value in seed.items() if line in gone)}
        for block, seed in figures.items()
    }


def hottest(before: Figures, after: Figures, floor_percent: float) -> dict[str, float]:
    """The lines that are judged, hottest first by the larger side, each with its floor in percent.

    They are chosen by how often they move, never by what changed: that would find differences by chance.
    """
    sides = [_levels(side) for side in (before, after)]
    least = PART * max(math.fsum(side.values()) for side in sides)  # whatever their order: the same bytes again
    level = {name: max(side.get(name, 0.0) for side in sides) for name in sides[0].keys() | sides[1].keys()}
    named = [name for name in level if level[name] > least and not name.startswith("[")]
    ranked = sorted(named, key=lambda name: (-level[name], name))[:JUDGED]
    return {name: max(floor_percent, 100.0 * least / level[name]) for name in ranked}


def _figures(before: Mapping[int, Profile], after: Mapping[int, Profile]) -> tuple[Figures, Figures]:
    """By names of lines that both kernels have; each side by seed."""
    named = line_labels.alike(list(before.values()), list(after.values()))
    old, new = (
        dict(zip(side, map(because.moved_per_op, found), strict=True))
        for side, found in zip((before, after), named, strict=True)
    )
    return old, new


def _observed(figures: Figures, line: str) -> tuple[verdict.Observation, ...]:
    return tuple(
        verdict.Observation(block=block, slot=0, value=seed.get(line, 0.0)) for block, seed in sorted(figures.items())
    )


def judged(experiment: Experiment, profiles: Mapping[int, Sequence[ProfileRow]]) -> tuple[CellResult, ...]:
    """The verdicts on lines, hottest first; ``profiles`` has the stored ones of each case by its index."""
    data: list[verdict.CellData] = []
    floors: dict[str, float] = {}
    metrics: defaultdict[str, list[Metric]] = defaultdict(list)
    floor_percent, cpus = line_floor_percent(experiment), placed.shared_cpus(experiment)
    for index, case in enumerate(experiment.cases):
        if placed.places(case, cpus, [row.profile for row in profiles.get(index, ())]):
            continue
        for off in experiment.mitigations:
            sides: defaultdict[int, dict[int, Profile]] = defaultdict(dict)
            for row in profiles.get(index, ()):
                if row.mitigations == off:
                    sides[row.kernel][row.block] = row.profile
            for kernel in sorted(sides.keys() - {0}):
                pair = alike(*_figures(sides.get(0, {}), sides[kernel]))
                for line, floor in hottest(*pair, floor_percent).items():
                    floors[f"{case.name}/{name_of(line)}"] = floor
                    metric = Metric(name=name_of(line), unit=f"{TRANSFERS}/op", better="lower", least=MOVED_LEAST)
                    metrics[case.workload] += [metric] if metric not in metrics[case.workload] else []
                    for side, figures in zip((0, kernel), pair, strict=True):
                        seen = _observed(figures, line)
                        data.append(
                            verdict.CellData(case=index, mitigations=off, metric=metric.name, kernel=side, boots=seen)
                        )
    return verdict.judge(experiment, data, floors, {name: tuple(found) for name, found in metrics.items()})


def of(experiment: Experiment, store: Store) -> tuple[CellResult, ...]:
    """The verdicts on the lines of a stored comparison of guests with several CPUs; () of any other experiment."""
    if experiment.mode != "exact" or experiment.machine.smp < 2 or len(experiment.kernels) < 2 or experiment.in_steps:
        return ()
    return judged(experiment, store.all_profiles(experiment.id))


def changed(rows: Sequence[CellResult]) -> tuple[CellResult, ...]:
    """Of each case and kernel the lines that changed, those first that changed most; ``SHOWN`` at most."""
    groups: defaultdict[tuple[str, str, str, str], list[CellResult]] = defaultdict(list)
    for row in rows:
        if row.verdict in ("improved", "regressed"):
            groups[row.case, row.cgroup, row.mitigations, row.patched_label].append(row)

    def by(row: CellResult) -> float:
        return -abs((row.patched or 0.0) - (row.baseline or 0.0))

    return tuple(row for found in groups.values() for row in sorted(found, key=by)[:SHOWN])


def told(found: Sequence[MovedDiff], rows: Sequence[CellResult]) -> tuple[MovedDiff, ...]:
    """The lines ``found`` with their verdicts."""
    by = {(row.case, row.cgroup, row.mitigations, row.patched_label, row.metric): row for row in rows}

    def of_line(cell: CellName, patched: str, line: str) -> CellResult | None:
        return by.get((cell.case, cell.cgroup, cell.mitigations, patched, name_of(line)))

    return tuple(
        replace(
            one,
            rows=tuple(
                row
                if (known := of_line(one.cell, one.patched_label, row.line)) is None or known.verdict is None
                else replace(
                    row,
                    verdict=known.verdict,
                    effect_percent=known.effect_percent,
                    interval_percent=known.interval_percent,
                    over_seeds=(known.baseline, known.patched),
                )
                for row in one.rows
            ),
        )
        for one in found
    )
