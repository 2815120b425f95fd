# SPDX-License-Identifier: GPL-2.0-or-later
"""What a verdict carries with it, or why there is none, as values; the sentences are made in report/sentences.py."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from kdelta.model import Warn


class SeedsMissing(Warn, frozen=True):
    """Seeds of the plan that were not measured on both kernels; ``again``: how many of them a resume measures."""

    code: ClassVar[str] = "descriptive"
    seeds: int
    planned: int
    again: int = 0


class TooFewSeeds(Warn, frozen=True):
    """Fewer seeds than any verdict on counts needs."""

    code: ClassVar[str] = "descriptive"
    seeds: int
    needed: int


class BeforeFirstLook(Warn, frozen=True):
    """Blocks are there, but the plan has not looked yet."""

    code: ClassVar[str] = "unfinished"
    blocks: int
    first_look: int


class SeedsVary(Warn, frozen=True):
    """Counts vary over too few seeds; ``at_least``: the plan has no look at which they could be judged."""

    code: ClassVar[str] = "unfinished"
    seeds: int
    needed: int
    at_least: bool


class LegacyMetric(Warn, frozen=True):
    """A metric that only repeats another tool's figure."""

    code: ClassVar[str] = "legacy"
    metric: str


class TailOfFew(Warn, frozen=True):
    """A percentile of too few samples a boot; ``needed`` None: a maximum, which no number of samples settles."""

    code: ClassVar[str] = "tail"
    percentile: float
    samples: int
    needed: int | None


class Fault(Struct, frozen=True):
    """Why a boot takes its block out: its ``state``, no figure (``state`` ok), or percent lost to steal."""

    block: int
    kernel: str
    state: str
    steal_percent: float | None = None
    why: str = ""


class Dropped(Warn, frozen=True):
    """Blocks that faults took out, with the first few."""

    code: ClassVar[str] = "dropped"
    dropped: int
    blocks: int
    faults: tuple[Fault, ...]


class BelowDelta(Warn, frozen=True):
    """Significant, but small."""

    code: ClassVar[str] = "below-delta"
    delta_percent: float


class WithinFloor(Warn, frozen=True):
    """Counts differ, and by no more than those of identical kernels do where memory is laid out otherwise.

    ``reaches``: part of the interval lies within that, part beyond.
    """

    code: ClassVar[str] = "within-floor"
    floor_percent: float
    reaches: bool = False


class BelowLeast(Warn, frozen=True):
    """Averages over operations differ by no more than those of what does the same; in the unit of the metric."""

    code: ClassVar[str] = "below-least"
    least: float


class MediansHide(Warn, frozen=True):
    """Counts lie at several levels: what the pairs of seeds show, the medians of both sides do not."""

    code: ClassVar[str] = "medians-hide"


class CrossCheck(Warn, frozen=True):
    """A paired t interval disagrees."""

    code: ClassVar[str] = "cross-check"


class Zeros(Warn, frozen=True):
    """Figures of 0 or less have no ratio."""

    code: ClassVar[str] = "zeros"


class FromZero(Warn, frozen=True):
    """The baseline counts 0."""

    code: ClassVar[str] = "from-zero"
    patched: float


class Withdrawn(Warn, frozen=True):
    """Significant alone, not after the correction for many cells; ``blocks``: what a grid would need."""

    code: ClassVar[str] = "multiplicity"
    cells: int
    adjusted_p: float
    blocks: int | None


class MixedAccounts(Warn, frozen=True):
    """REP counted once and REP counted per 8 bytes disagree."""

    code: ClassVar[str] = "mixed"
    once_percent: float
    per_word_percent: float


class Strings(Warn, frozen=True):
    """String instructions moved so much more, or less, that REP counted per 8 bytes says a multiple of the change.

    ``function``: whose they are, "" where that is not known, or no single one's.
    """

    code: ClassVar[str] = "strings"
    per_word_percent: float
    function: str = ""


Why = Literal["kernel", "seed", "interval"]


class OtherCalls(Warn, frozen=True):
    """A program made its system calls in other numbers, which is much of a change: that, and what it were without.

    ``calls``: (system call, on the baseline, on the other kernel) per operation, those that matter most; ``more``: how
    many others. ``why``: their numbers are the same under all seeds, hence the kernel's doing; vary with the ``seed``;
    or are what an ``interval`` of a loop without end holds of what it does now and then, one more or fewer.
    ``averaged``: each call is taken to cost what all do on average, because on several CPUs that is not counted.
    ``then_percent``: what it were at what the calls cost on the baseline, None where that says about the same.
    ``less_each``: at that all of it were less than nothing: a call does less than it did there, so as many say nothing.
    ``refused``: those which the one kernel does not have, and the program asked for in vain; ``by``: which one.
    """

    code: ClassVar[str] = "other-calls"
    effect_percent: float
    same_calls_percent: float
    calls: tuple[tuple[str, float, float], ...]
    more: int
    why: Why
    averaged: bool = False
    then_percent: float | None = None
    less_each: bool = False
    refused: tuple[str, ...] = ()
    by: Literal["baseline", "patched"] = "baseline"


class MixedCalls(OtherCalls, frozen=True):
    """The same where the kernel does not say how many they are, and they are most of the change: it decides nothing."""

    code: ClassVar[str] = "mixed-calls"


class CallsBeside(Warn, frozen=True):
    """Another count of a case whose instructions decide nothing because of its ``calls``, as in MixedCalls."""

    code: ClassVar[str] = "mixed-calls"
    calls: tuple[tuple[str, float, float], ...]
    more: int


class Placed(Warn, frozen=True):
    """On so many CPUs a program's tasks meet as the scheduler placed them, which moves its counts as much."""

    code: ClassVar[str] = "placed"
    cpus: int


class Waited(Warn, frozen=True):
    """A program waits, and its count has changed by no more than what the kernel does of itself meanwhile moves it."""

    code: ClassVar[str] = "waited"
    percent: float


class ByClock(Warn, frozen=True):
    """A program runs for a time: as many instructions on each kernel, the kernel's and its own, which are told.

    ``less_percent``: of its CPU time, where the clock goes 10 % faster; 0 where that is not known.
    """

    code: ClassVar[str] = "by-clock"
    own_before: float
    own_after: float
    less_percent: float = 0.0


class ByClockAlone(ByClock, frozen=True):
    """The same, and it is not known what the kernel's count were if it did as much: no verdict."""


class Deferred(Warn, frozen=True):
    """Most of a program's change is of what the kernel puts off; ``left_percent``: what it is without that."""

    code: ClassVar[str] = "deferred"
    effect_percent: float
    left_percent: float


class InBulk(Deferred, frozen=True):
    """A suite's program changed by no more than ``limit_percent``: what one of its two runs may have in bulk alone."""

    code: ClassVar[str] = "in-bulk"
    limit_percent: float


class Meanwhile(Warn, frozen=True):
    """Most of a program's change, which has a verdict, is of kernel threads and interrupts; what it is without them."""

    code: ClassVar[str] = "meanwhile"
    left_percent: float


class Noisy(Warn, frozen=True):
    """Counts vary across seeds, by how much (None: from 0), and in which functions.

    ``judged``: over so many seeds they were judged as times are; None: not yet. ``more``: further functions.
    """

    code: ClassVar[str] = "noisy"
    spread_percent: float | None
    judged: int | None
    functions: tuple[str, ...] = ()
    more: int = 0


# inconclusive however many boots there are
UNDECIDABLE = (MixedAccounts, MixedCalls, CallsBeside, Placed, Waited, Deferred, ByClockAlone)
