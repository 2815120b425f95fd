# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact counts of two experiments, pair by pair: equal, within spread or floor, or neither, and why. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from msgspec.structs import replace

from kdelta.attribution import moved
from kdelta.model import EXACT_COUNTERS, Mitigations, Profile
from kdelta.results.agreement.common import Measured, Shared
from kdelta.results.agreement.types import Count, CountCall, CountPair, FunctionPair
from kdelta.stats import exact
from kdelta.store.rows import Number
from kdelta.units import finite
from kdelta.verdict.judge import floor_of

_ROUNDING = 1e-12
_NO_BOOT = "no boot yet"

Cell = tuple[int, Mitigations, int]  # kernel, mitigations, case


def count_pairs(here: Measured, there: Measured, common: Shared, all_metrics: bool) -> Iterator[CountPair]:
    """Each common case, metric and kernel; instructions alone unless ``all_metrics``."""
    metrics = (*EXACT_COUNTERS, "user_instructions") if all_metrics else EXACT_COUNTERS[:1]
    numbers = _by_cell(here), _by_cell(there)
    for case, mitigations, metric, kernel in product(common.cases, common.mitigations, metrics, common.kernels):
        cells = [(kernel[side], mitigations, case[side]) for side in (0, 1)]
        mine, other = ([n for n in numbers[side].get(cells[side], ()) if n.metric in (metric, "")] for side in (0, 1))
        bare = _pair(here, there, (cells[0], cells[1]), metric, _count(mine), _count(other))
        units = [next((n.unit for n in found if n.metric), "") for found in (mine, other)]
        pair = replace(bare, unit=units[0] or units[1])
        if all(units) and units[0] != units[1]:
            why = f"counted in {units[0]} here, in {units[1]} there"
            pair = replace(pair, call="not-comparable", percent=None, why=why)
        if pair.call in ("within", "within-floor", "differs"):
            seeds = [m.seeds.get((c[2], c[1]), {}).get(c[0], []) for m, c in zip((here, there), cells, strict=True)]
            pair = replace(pair, functions=_apart(seeds[0], seeds[1], moved.counter_of(metric)))
        yield pair


def _by_cell(measured: Measured) -> Mapping[Cell, list[Number]]:
    found: dict[Cell, list[Number]] = defaultdict(list)
    for number in measured.numbers:
        found[number.kernel, number.mitigations, number.case].append(number)
    return found


def _count(numbers: Sequence[Number]) -> Count:
    """The seeds' counts of one metric; a run in a boot that failed later counts as the boot does."""
    good = [n.value for n in numbers if n.state == n.boot_state == "ok" and n.value is not None]
    if not good:
        bad = next((n for n in numbers if n.state != "ok" or n.boot_state != "ok"), None)
        if bad is None:
            return Count(state="lost", why=_NO_BOOT)
        return Count(state=bad.state if bad.state != "ok" else bad.boot_state, why=bad.why)
    return Count(
        state="ok",
        count=float(np.median(good)),
        low=min(good),
        high=max(good),
        spread_percent=finite(exact.spread_percent(np.array(good))),
        seeds=len(good),
    )


def _pair(here: Measured, there: Measured, cells: tuple[Cell, Cell], metric: str, a: Count, b: Count) -> CountPair:
    """The two counts and whether they agree, without unit and functions."""
    made = [_of_boots(m, cell, "taken_from") for m, cell in zip((here, there), cells, strict=True)]
    identities = [_of_boots(m, cell, "identity") for m, cell in zip((here, there), cells, strict=True)]
    case = here.experiment.cases[cells[0][2]]
    floor = max(floor_of(m.floors, case.name, metric) or 0.0 for m in (here, there))
    same_boots = made[0] <= made[1] or made[1] <= made[0]  # looks end where they may: one can have more of them
    call = _call(a, b, floor, same_boots)
    missing = [(where, count) for where, count in (("here", a), ("there", b)) if count.count is None]
    return CountPair(
        case=case.name,
        params=dict(sorted(case.params.items())),
        cgroup=case.cgroup,
        mitigations=cells[0][1],
        metric=metric,
        unit="",
        kernel=here.experiment.kernels[cells[0][0]].label,
        kernel_there=there.experiment.kernels[cells[1][0]].label,
        here=a,
        there=b,
        percent=None if a.count is None or b.count is None else exact.percent(b.count, a.count),
        call=call,
        why="; ".join(f"{where}: {_state(count)}" for where, count in missing),
        floor_percent=floor,
        shared_boots=len(made[0] & made[1]),
        same_identity=bool(identities[0]) and identities[0] == identities[1],
    )


def _state(count: Count) -> str:
    if count.why == _NO_BOOT:
        return count.why
    return f"{count.state}: {count.why}" if count.why else count.state


def _of_boots(measured: Measured, cell: Cell, key: str) -> frozenset[str]:
    """Of a kernel's boots: their identities, or (``taken_from``) where they were really made."""
    own = measured.experiment.id
    mine = [b for b in measured.boots if (b.kernel, b.mitigations) == cell[:2]]
    if key == "taken_from":
        return frozenset(boot.machine.get(key, f"{own} {boot.block}.{boot.slot}") for boot in mine)
    return frozenset(boot.machine[key] for boot in mine if key in boot.machine)


def _call(here: Count, there: Count, floor: float, same_boots: bool) -> CountCall:
    """Whether two sets of seeds' counts agree; the spread is the larger of the two, a ratio as effects are.

    Beyond it another host's or QEMU's layout of memory may move counts as far as ``floor`` (percent), under every seed.
    """
    if here.count is None or there.count is None:
        return "not-comparable"
    if same_boots:
        return "same-boots"
    if (here.low, here.count, here.high) == (there.low, there.count, there.high):
        return "exact"
    spread = max(math.inf if c.spread_percent is None else c.spread_percent for c in (here, there))
    low, high = sorted((here.count, there.count))

    def reaches(percent: float) -> bool:
        return high <= low * (1.0 + percent / 100.0) * (1.0 + _ROUNDING) or low == high

    return "within" if reaches(spread) else "within-floor" if reaches(floor) else "differs"


def _apart(here: Sequence[Profile], there: Sequence[Profile], counter: int | None) -> tuple[FunctionPair, ...]:
    """The functions that make the difference: of the middle seeds, or of the extremes where those are alike."""
    both = (*here, *there)
    if counter is None or not here or not there or not all(map(moved.has_names, both)):
        return ()

    def middle(profiles: Sequence[Profile]) -> Profile:
        return sorted(profiles, key=lambda p: moved.level(p, counter))[(len(profiles) - 1) // 2]

    found = moved.moved(middle(here), middle(there), among=both, counter=counter)
    found = found or moved.moved(*moved.extremes(both, counter), among=both, counter=counter)
    return tuple(
        FunctionPair(function=f.name, here=f.before, there=f.after, delta=f.delta, functions=f.functions) for f in found
    )
