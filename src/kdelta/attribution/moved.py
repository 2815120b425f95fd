# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions move a count that should repeat: between the seeds of one kernel, or between two measurements. Pure.

An interrupt more or less touches a hundred functions. Those that follow the number of interrupts are one group,
recognised from the counts alone: every interrupt enters ``irq_enter_rcu`` once, whatever its kind and architecture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations

from msgspec import Struct

from kdelta.attribution.once import once
from kdelta.attribution.profiles import USER
from kdelta.model import EXACT_COUNTERS, Profile

INTERRUPT_ENTRIES = ("irq_enter_rcu", "irq_enter")  # kernel/softirq.c; the second before Linux 5.8
_TICKS, _INTERRUPTS = "timer ticks", "interrupts"
_WORTH_A_WORD = 0.02  # of all movement, as in because.py

Counts = Mapping[str, float]


class Moved(Struct, frozen=True, kw_only=True):
    """A function, or the group of an interrupt's, with its count per operation on both sides."""

    name: str
    before: float
    after: float
    functions: int = 1  # that it stands for

    @property
    def delta(self) -> float:
        return self.after - self.before


def counter_of(metric: str) -> int | None:
    """The column of ``metric`` in a profile; None for what is no kernel counter."""
    return EXACT_COUNTERS.index(metric) if metric in EXACT_COUNTERS else None


@once
def per_op(profile: Profile, counter: int = 0) -> Counts:
    """Counts per operation of each kernel function that has any; ``counter`` indexes EXACT_COUNTERS."""
    return {n: c[counter] / profile.ops for n, c in profile.functions.items() if n != USER and c[counter]}


@once
def level(profile: Profile, counter: int = 0) -> float:
    """The kernel's count per operation."""
    ops = profile.ops
    return math.fsum([c[counter] / ops for n, c in profile.functions.items() if n != USER])


def has_names(profile: Profile) -> bool:
    """Whether any function of the profile has a name; of a program that never entered the kernel, none lacks one."""
    return set(profile.functions) == {USER} or any(not name.startswith("[") for name in profile.functions)


def extremes(profiles: Sequence[Profile], counter: int = 0) -> tuple[Profile, Profile]:
    """The profiles with the lowest and the highest count per operation, the first of equals.

    Raises:
        ValueError: there is no profile.
    """
    levels = [level(profile, counter) for profile in profiles]
    return profiles[levels.index(min(levels))], profiles[levels.index(max(levels))]


def spread_percent(profiles: Sequence[Profile], counter: int = 0) -> float:
    """Highest over lowest count per operation, in percent, as stats.exact has it; infinite when only some are 0."""
    levels = [level(profile, counter) for profile in profiles]
    low, high = min(levels), max(levels)
    return 0.0 if low == high else 100.0 * (high / low - 1.0) if low else math.inf


def user_spread_percent(profiles: Sequence[Profile]) -> float:
    """As ``spread_percent``, of the instructions in user space: of a program that repeats itself next to nothing."""
    own = [profile.functions[USER][0] / profile.ops for profile in profiles if USER in profile.functions]
    if len(own) < len(profiles):
        return math.inf if own else 0.0
    if min(own, default=0.0) == max(own, default=0.0):
        return 0.0
    return 100.0 * (max(own) / min(own) - 1.0) if min(own) > 0 else math.inf


def _made(profile: Profile) -> dict[str, tuple[int, int]]:
    """(calls, instructions) of each system call; on several CPUs, where the second is not known, the first again."""
    if not profile.system_calls:
        return {name: (calls, calls) for name, calls in profile.called.items()}
    return {name: (one.calls, one.instructions) for name, one in profile.system_calls.items()}


def calls_that_vary(profiles: Sequence[Profile]) -> tuple[tuple[str, float, float], ...]:
    """System calls whose number per operation differs between ``profiles``: (name, fewest, most).

    Those whose instructions differ most come first. What is no system call (page faults, interrupts) is left out.
    """
    found = []
    made = [(_made(profile), profile.ops) for profile in profiles]
    for name in sorted(set().union(*(of for of, _ in made))):
        if name.startswith("["):
            continue
        calls, cost = ([of.get(name, (0, 0))[place] / ops for of, ops in made] for place in (0, 1))
        if min(calls) != max(calls):
            found.append((max(cost) - min(cost), name, min(calls), max(calls)))
    found.sort(key=lambda one: (-one[0], one[1]))
    return tuple(one[1:] for one in found)


def _follows(name: str, entries: Sequence[float], all_counts: Sequence[Counts]) -> bool:
    """Whether a function runs just where interrupts do, and moves with their number rather than stands still."""
    counts = [each.get(name, 0.0) for each in all_counts]
    if any((count == 0) != (entry == 0) for count, entry in zip(counts, entries, strict=True)):
        return False
    for (e0, c0), (e1, c1) in permutations(zip(entries, counts, strict=True), 2):
        if 0 < e0 < e1 and abs(math.log(c1 / c0) - math.log(e1 / e0)) > math.log(e1 / e0) / 2:
            return False
    return True


def _of_interrupts(all_counts: Sequence[Counts]) -> frozenset[str]:
    """The functions of interrupts, where the profiles differ in how many there were; else none."""
    for entry in INTERRUPT_ENTRIES:
        entries = [counts.get(entry, 0.0) for counts in all_counts]
        if len(set(entries)) > 1:
            names = set().union(*all_counts)
            return frozenset(name for name in names if _follows(name, entries, all_counts))
    return frozenset()


def moved(before: Profile, after: Profile, among: Sequence[Profile] = (), counter: int = 0) -> tuple[Moved, ...]:
    """What differs between two profiles of the same kernel and case, largest |delta| first (then by name).

    Args:
        among: further profiles of it (other seeds), which tell an interrupt's functions apart more surely.
        counter: which count, an index of EXACT_COUNTERS. The deltas add up to the whole difference.
    """
    a, b = per_op(before, counter), per_op(after, counter)
    group = _of_interrupts([per_op(profile) for profile in (before, after, *among)])
    differing = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
    found = [Moved(name=n, before=a.get(n, 0.0), after=b.get(n, 0.0)) for n in differing if n not in group]
    ticks = [name for name in differing if name in group]
    if ticks:
        found.append(
            Moved(
                name=_TICKS if any("timer" in name for name in group) else _INTERRUPTS,
                before=math.fsum(a.get(name, 0.0) for name in ticks),
                after=math.fsum(b.get(name, 0.0) for name in ticks),
                functions=len(ticks),
            )
        )
    return tuple(sorted(found, key=lambda item: (-abs(item.delta), item.name)))


def _worth(items: Sequence[Moved], limit: int) -> tuple[list[Moved], int]:
    """The first ``limit`` that are worth a word, and how many functions the others are."""
    movement = math.fsum(abs(item.delta) for item in items)
    named = [item for item in items[:limit] if abs(item.delta) >= _WORTH_A_WORD * movement]
    return named, sum(item.functions for item in items[len(named) :])


def names(items: Sequence[Moved], limit: int = 2) -> tuple[tuple[str, ...], int]:
    """The names that are worth a word, and how many further functions moved."""
    named, more = _worth(items, limit)
    return tuple(item.name for item in named), more
