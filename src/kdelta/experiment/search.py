# SPDX-License-Identifier: GPL-2.0-or-later
"""Which commit made the change: what to test next is a pure function of all readings so far.

Nothing else is kept, so a bisection that was killed goes on from the boots in the store. Exact counts are halved;
times go through the posterior of stats.bisect. Commits that cannot be built or booted are taken out of the line: their
neighbours are tested instead, and where they hide the culprit the answer is a range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.stats import bisect, counts, paired

Floats = NDArray[np.float64]
END_PAIRS = 10  # timed: boots of each end before the search; as many as the posterior asks for
ALPHA = 0.05


class Reading(Struct, frozen=True):
    """One boot's figure of the commit at ``commit`` of the line (0 is the good end)."""

    commit: int
    value: float


class Measure(Struct, frozen=True):
    """Measure this commit next."""

    commit: int


class Same(Struct, frozen=True):
    """The ends do not differ beyond the noise: there is nothing to bisect, or, where ``open``, none was seen by now."""

    good: float
    bad: float
    why: str
    open: bool = False


class Found(Struct, frozen=True):
    """The change is in one of the commits ``first`` .. ``last``; one commit unless untestable ones hide it.

    ``good`` is the last testable commit before it; ``probability`` is 1 for exact counts.
    """

    good: int
    first: int
    last: int
    probability: float = 1.0


Step = Measure | Same | Found


class Untestable(Exception):
    """An end of the line cannot be measured."""

    def __init__(self, commit: int, why: str) -> None:
        super().__init__(why)
        self.commit, self.why = commit, why


class Lab(Protocol):
    """Where commits are measured and readings are kept."""

    def readings(self) -> Sequence[Reading]:
        """All readings so far, in the order in which they were made."""

    def skipped(self) -> Mapping[int, str]:
        """Commits that cannot be measured, and why."""

    def measure(self, commit: int) -> None:
        """Add readings of this commit, or learn that it has to be skipped."""


def _testable(commits: int, skipped: Mapping[int, str]) -> list[int]:
    for end in (0, commits - 1):
        if end in skipped:
            raise Untestable(end, skipped[end])
    return [commit for commit in range(commits) if commit not in skipped]


def _by_commit(readings: Sequence[Reading]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for reading in readings:
        found.setdefault(reading.commit, []).append(reading.value)
    return found


def side(value: float, good: float, bad: float) -> bool:
    """Whether ``value`` is on the bad end's side of the middle; the middle itself is not."""
    middle = (good + bad) / 2.0
    return value > middle if bad > good else value < middle


def side_of_all(values: Sequence[float], good: float, bad: float, *, noisy: bool) -> bool | None:
    """Whether figures of one commit are on the bad side of the middle; None where that cannot be told.

    Exact counts must all be on one side; of ``noisy`` ones the signed-rank interval of their centre must be.
    """
    if not noisy:
        sides = {side(value, good, bad) for value in values}
        return sides.pop() if len(sides) == 1 else None
    centred = np.array(values) - (good + bad) / 2.0
    look = paired.look(centred, ALPHA, ALPHA, abs(bad - good) / 2.0)
    if int(look.call) not in (paired.LOWER, paired.HIGHER):
        return None
    return (int(look.call) == paired.HIGHER) == (bad > good)


def halving(kept: Sequence[int], bad: Mapping[int, bool]) -> tuple[int, int, int | None]:
    """(last good, first bad, commit to test between them or None).

    ``bad`` holds what was tested, the first of ``kept`` as good and the last as bad. Where the answers are not in one
    order, the narrowest change from good to bad is pursued: it is one.
    """
    tested = [commit for commit in kept if commit in bad]
    changes = [(after - before, before, after) for before, after in pairwise(tested) if not bad[before] and bad[after]]
    _, low, high = min(changes)
    between = [commit for commit in kept if low < commit < high]
    return low, high, between[len(between) // 2] if between else None


def decide_exact(
    commits: int, readings: Sequence[Reading], skipped: Mapping[int, str], floor_percent: float = 0.0
) -> Step:
    """The next step of a bisection by exact counts; all seeds of a commit are read at once.

    Raises:
        Untestable: an end is among the ``skipped``.
    """
    kept = _testable(commits, skipped)
    found = _by_commit(readings)
    for end in (0, commits - 1):
        if end not in found:
            return Measure(end)
    good, bad = (float(np.median(found[end])) for end in (0, commits - 1))
    why, undecided = _alike(found[0], found[commits - 1], floor_percent)
    if why:
        return Same(good, bad, why, open=undecided)
    sides = {commit: side(float(np.median(values)), good, bad) for commit, values in found.items()}
    low, high, between = halving(kept, {commit: sides[commit] for commit in kept if commit in sides})
    return Found(low, low + 1, high) if between is None else Measure(between)


def _alike(good: Sequence[float], bad: Sequence[float], floor_percent: float) -> tuple[str, bool]:
    """Why the counts of the ends cannot be told apart, "" where they can, and whether more seeds may.

    They are paired in order.
    """
    n = min(len(good), len(bad))
    if n == 0:
        return "an end has no count", True
    look = counts.look(np.array(good[:n]), np.array(bad[:n]), counts.LOOKS, max(1.0, floor_percent))
    if not look.finished:
        need = counts.sequential_looks(counts.LOOKS)[0] if n >= counts.FACT_SEEDS else counts.FACT_SEEDS
        return f"{n} seeds are too few for counts that vary: use --seeds {need}", True
    if look.call == paired.UNDECIDED:
        bounds = f"[{look.low or 0.0:+.2f} %, {look.high or 0.0:+.2f} %]"
        return f"under {n} seeds the difference is {bounds}: use more --seeds", True
    small = look.effect is not None and abs(look.effect) <= floor_percent
    if look.call == paired.SAME or small:
        return f"they differ by no more than the noise floor ({floor_percent:g} %) and the spread across seeds", False
    return "", False


def decide_timed(
    commits: int,
    readings: Sequence[Reading],
    skipped: Mapping[int, str],
    max_boots: int,
    delta_percent: float = 1.0,
    refuted: Collection[int] = (),
) -> Step:
    """The next step of a bisection by times: log boot medians (of figures with a 0 plain ones), Student-t posterior.

    The ends are booted in pairs of changing order and must differ first. After ``max_boots`` the commits that hold
    98 % of the posterior are the answer. ``refuted`` are commits that were found before and do not differ from their
    parents.

    Raises:
        Untestable: an end is among the ``skipped``.
    """
    kept = _testable(commits, skipped)
    found = _by_commit(readings)
    good, bad = found.get(0, []), found.get(commits - 1, [])
    if min(len(good), len(bad)) < END_PAIRS:
        return Measure(_next_end(len(good), len(bad), commits))
    place = {commit: index for index, commit in enumerate(kept)}
    used = [reading for reading in readings if reading.commit in place]
    logs = min(reading.value for reading in used) > 0
    level = float(np.abs([*good, *bad]).mean()) or 1.0  # objects that are left may be none, which has no logarithm

    def scaled(values: Sequence[float]) -> Floats:
        return np.log(np.array(values)) if logs else np.array(values) / level

    difference = scaled(bad[:END_PAIRS]) - scaled(good[:END_PAIRS])
    look = paired.look(difference, ALPHA, ALPHA, math.log1p(delta_percent / 100.0) if logs else delta_percent / 100.0)
    if int(look.call) not in (paired.LOWER, paired.HIGHER) or np.median(good) == np.median(bad):
        told = [f"{100.0 * (math.expm1(float(x)) if logs else float(x)):+.2f} %" for x in (look.low, look.high)]
        why = f"in {END_PAIRS} pairs of boots the difference is [{told[0]}, {told[1]}]"
        return Same(float(np.median(good)), float(np.median(bad)), why, open=int(look.call) == paired.UNDECIDED)
    now = bisect.posterior(
        len(kept),
        [place[r.commit] for r in used],
        scaled([r.value for r in used]).tolist(),
        refuted=[place[commit] for commit in refuted if commit in place],
    )
    if now.found is not None:
        chance = now.probability[now.found - 1]
        return Found(kept[now.found - 1], kept[now.found - 1] + 1, kept[now.found], chance)
    if len(readings) >= max_boots or now.next_test is None:
        first, last, chance = _credible(now.probability)
        return Found(kept[first], kept[first] + 1, kept[last + 1], chance)
    return Measure(kept[now.next_test])


def _next_end(good: int, bad: int, commits: int) -> int:
    """AB, BA, AB, ...: drift falls on both ends alike."""
    if good != bad:
        return 0 if good < bad else commits - 1
    return 0 if good % 2 == 0 else commits - 1


def _credible(probability: Sequence[float]) -> tuple[int, int, float]:
    """The shortest run of commits that holds 98 % of the posterior: (first, last, its probability)."""
    sums = np.concatenate([[0.0], np.cumsum(probability)])
    size = len(probability)
    for width in range(1, size + 1):
        held = sums[width:] - sums[: size + 1 - width]
        best = int(np.argmax(held))
        if held[best] >= bisect.CONFIDENCE - 1e-9 or width == size:
            return best, best + width - 1, float(held[best])
    raise ValueError("a posterior over no commits")


def search(lab: Lab, decide: Callable[[Sequence[Reading], Mapping[int, str]], Step]) -> Same | Found:
    """Measure until it is decided. ``decide`` is one of the two above with its plan filled in.

    Raises:
        Untestable: an end cannot be measured.
    """
    while True:
        step = decide(lab.readings(), lab.skipped())
        if not isinstance(step, Measure):
            return step
        lab.measure(step.commit)
