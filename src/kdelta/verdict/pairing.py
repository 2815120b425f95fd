# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots of two kernels -> the complete blocks that a look may use. Pure.

The plan's looks are counted in blocks, so the same stored boots always give the same look, however often and
whenever they are reported: nobody peeks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kdelta.model import Metric, Mitigations, State, Warn
from kdelta.stats import design, paired, tail
from kdelta.verdict.warnings import BeforeFirstLook, Dropped, Fault, LegacyMetric, TailOfFew

Floats = NDArray[np.float64]
_FAULTS_TOLD = 5  # one more than is shown, so that it can be seen that there are more


class Observation(Struct, frozen=True, kw_only=True):
    """One boot's figure for one case and metric; in exact mode a block is a seed.

    Every boot that took place has one, also where it failed: ``value`` is null unless ``state`` is ok.
    ``facts`` may hold ``steal_percent``, ``cpu_mhz``, ``temperature_c`` of the boot.
    """

    block: int
    slot: int
    value: float | None = None
    samples: int = 0
    state: State = "ok"
    why: str = ""
    facts: Mapping[str, float] = field(default_factory=dict)
    host: str = ""  # of a fleet; all boots of a block are of one


class CellData(Struct, frozen=True, kw_only=True):
    """All boots of one kernel for one case, mitigations and metric; ``case`` and ``kernel`` index the experiment."""

    case: int
    mitigations: Mitigations = "default"
    metric: str
    kernel: int
    boots: tuple[Observation, ...] = ()


def measured(boots: Iterable[Observation]) -> int:
    """Boots that have a figure."""
    return len([boot for boot in boots if boot.state == "ok" and boot.value is not None])


def values_of(boots: Iterable[Observation]) -> Floats:
    """The figures of the boots that have one."""
    return np.array([boot.value for boot in boots if boot.state == "ok" and boot.value is not None])


class Pairs(Struct, frozen=True):
    """Complete blocks in order: both boots ok. ``reached`` counts finished blocks, ``faulty`` the broken ones."""

    a: tuple[Observation, ...]
    b: tuple[Observation, ...]
    reached: int
    faulty: tuple[Fault, ...]


def _fault(boot: Observation, label: str, steal_limit: float) -> Fault | None:
    """Why a boot takes its block out: only what was declared in advance, never its value."""
    if boot.state != "ok" or boot.value is None:
        return Fault(boot.block, label, boot.state, why=boot.why)
    steal = boot.facts.get("steal_percent", 0.0)
    return Fault(boot.block, label, boot.state, steal) if steal > steal_limit else None


def paired_blocks(
    labels: tuple[str, str], a: Sequence[Observation], b: Sequence[Observation], steal_limit: float
) -> Pairs:
    """Blocks that hold both kernels; a fault of either boot takes its block out."""
    by_a, by_b = {boot.block: boot for boot in a}, {boot.block: boot for boot in b}
    common = sorted(by_a.keys() & by_b.keys())
    good_a, good_b, faults = [], [], []
    for k in common:
        one, other = by_a[k], by_b[k]
        if fault := _fault(one, labels[0], steal_limit) or _fault(other, labels[1], steal_limit):
            faults.append(fault)
        else:
            good_a.append(one)
            good_b.append(other)
    reached = common[-1] + 1 if common else 0
    return Pairs(a=tuple(good_a), b=tuple(good_b), reached=reached, faulty=tuple(faults))


def at_look(pairs: Pairs, looks: tuple[int, ...]) -> tuple[int, Pairs]:
    """The last look that was reached (-1: none) and its pairs: later blocks are not peeked at.

    At the last look of the plan, blocks that replace faulty ones count.
    """
    index = sum(look <= pairs.reached for look in looks) - 1
    if index < 0:
        return index, pairs
    if index == len(looks) - 1:
        keep = range(min(len(pairs.a), looks[index]))
    else:
        keep = range(sum(boot.block < looks[index] for boot in pairs.a))
    return index, replace(pairs, a=tuple(pairs.a[i] for i in keep), b=tuple(pairs.b[i] for i in keep))


def _percentile(source: str) -> float | None:
    """The percentile of a histogram metric, 100 for its maximum, null for any other metric."""
    kind, _, which = source.rpartition(":")
    if not kind.startswith("hist:") or not (which == "max" or which.startswith("p")):
        return None
    return 100.0 if which == "max" else float(which[1:])


def no_verdict(metric: Metric, used: Pairs, index: int, looks: tuple[int, ...]) -> tuple[Warn, ...]:
    """Why this cell stays descriptive; empty when it may be judged."""
    n = len(used.a)
    found: list[Warn | None] = []
    if metric.legacy:
        found.append(LegacyMetric(metric.name))
    if n < paired.MIN_PAIRS:
        found.append(design.too_few(n, paired.MIN_PAIRS))
    elif index < 0:
        found.append(BeforeFirstLook(n, looks[0]))
    percentile = _percentile(metric.source)
    fewest = min((boot.samples for boot in (*used.a, *used.b)), default=0)
    if percentile == 100.0:
        found.append(TailOfFew(percentile, fewest, None))
    elif percentile is not None and fewest < (need := tail.samples_needed(percentile)):
        found.append(TailOfFew(percentile, fewest, need))
    return tuple(warning for warning in found if warning is not None)


def partly(label: str, boots: Sequence[Observation]) -> tuple[Warn, ...]:
    """Which boots of a kernel have no figure, where others of it have one."""
    found = tuple(fault for boot in boots if (fault := _fault(boot, label, np.inf)))
    return (Dropped(len(found), len(boots), found[:_FAULTS_TOLD]),) if 0 < len(found) < len(boots) else ()


def dropped(pairs: Pairs) -> tuple[Warn, ...]:
    """The count of blocks that faults took out, with the first few."""
    if not pairs.faulty:
        return ()
    return (Dropped(len(pairs.faulty), len(pairs.faulty) + len(pairs.a), pairs.faulty[:_FAULTS_TOLD]),)
