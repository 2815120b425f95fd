# SPDX-License-Identifier: GPL-2.0-or-later
"""Two measurements of the same kernels and cases side by side: what ``kdelta report --against`` shows."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kdelta.model import Cgroup, Mitigations, Mode, State, Word

CountCall = Literal["exact", "within", "within-floor", "differs", "same-boots", "not-comparable"]
EffectCall = Literal["overlap", "apart", "descriptive"]


class Side(Struct, frozen=True, kw_only=True):
    """One of the two experiments."""

    experiment: str
    kind: str
    created_at: str
    boots_done: int
    boots_planned: int
    complete: bool  # also where a sequential plan ended early
    command: str


class Fact(Struct, frozen=True, kw_only=True):
    """Something about how it was measured that is not the same; "" where it is not known."""

    what: str
    here: str
    there: str


class Count(Struct, frozen=True, kw_only=True):
    """A kernel's count per operation over its seeds: median, lowest, highest. None unless ``state`` is ok."""

    state: State
    why: str = ""
    count: float | None = None
    low: float | None = None
    high: float | None = None
    spread_percent: float | None = None  # None also where only some seeds count 0
    seeds: int = 0


class FunctionPair(Struct, frozen=True, kw_only=True):
    """What one function, or all those of interrupts, count per operation."""

    function: str
    here: float
    there: float
    delta: float
    functions: int = 1  # how many it stands for


class CountPair(Struct, frozen=True, kw_only=True):
    """One count of one kernel in one case, measured twice. ``kernel`` is its label here."""

    case: str
    params: dict[str, str]
    cgroup: Cgroup
    mitigations: Mitigations
    metric: str
    unit: str
    kernel: str
    kernel_there: str
    here: Count
    there: Count
    percent: float | None  # there relative to here
    call: CountCall
    why: str = ""
    same_identity: bool = False  # everything that is known to change counts is the same
    floor_percent: float = 0.0  # what identical kernels reach under another layout of memory
    shared_boots: int = 0  # the same boots in both, whose counts agree by nature
    functions: tuple[FunctionPair, ...] = ()  # what makes the difference, the most first; they add up to it


class Effect(Struct, frozen=True, kw_only=True):
    """What one experiment says of a pair of kernels (of a kernel alone: only its figure, as baseline)."""

    state: State
    why: str = ""
    baseline: float | None = None
    patched: float | None = None
    effect_percent: float | None = None
    interval_percent: tuple[float, float] | None = None
    verdict: Word | None = None
    boots: tuple[int, int] = (0, 0)


class EffectPair(Struct, frozen=True, kw_only=True):
    """One timed effect, measured twice. ``reversed``: there the kernels stood the other way round."""

    case: str
    params: dict[str, str]
    cgroup: Cgroup
    mitigations: Mitigations
    metric: str
    unit: str
    baseline_kernel: str
    patched_kernel: str
    here: Effect
    there: Effect
    call: EffectCall
    reversed: bool = False


class Agreement(Struct, frozen=True, kw_only=True):
    """The whole answer; ``counts`` in exact mode, ``effects`` in timed."""

    mode: Mode
    here: Side
    there: Side
    differences: tuple[Fact, ...]
    counts: tuple[CountPair, ...] = ()
    effects: tuple[EffectPair, ...] = ()
    only_here: tuple[str, ...] = ()
    only_there: tuple[str, ...] = ()
