# SPDX-License-Identifier: GPL-2.0-or-later
"""What the checks of the data can find, as values; the sentences are made in report/sentences.py."""

from __future__ import annotations

from typing import ClassVar

from kdelta.model import Warn


class TooFewBlocks(Warn, frozen=True):
    """Fewer complete blocks than any verdict needs."""

    code: ClassVar[str] = "descriptive"
    blocks: int
    needed: int


class Unblocked(Warn, frozen=True):
    """No block holds both kernels."""

    code: ClassVar[str] = "unblocked"


class Drift(Warn, frozen=True):
    """Both kernels became slower or faster together."""

    code: ClassVar[str] = "drift"
    percent: float  # signed


class OneOrder(Warn, frozen=True):
    """One kernel was always booted first."""

    code: ClassVar[str] = "order"


class SlotEffect(Warn, frozen=True):
    """The boot that came first in its block differs."""

    code: ClassVar[str] = "slot"
    percent: float


class HostsDiffer(Warn, frozen=True):
    """The effect is not the same on all hosts: the lowest and the highest, in percent."""

    code: ClassVar[str] = "hosts"
    low_host: str
    low_percent: float
    high_host: str
    high_percent: float


class LayoutMoves(Warn, frozen=True):
    """What the layout of the code alone does to an effect: standard deviation over ``layouts``, and its upper limit."""

    code: ClassVar[str] = "layout"
    layouts: int
    percent: float
    at_most_percent: float


class Steal(Warn, frozen=True):
    """Boots that lost CPU time to other guests of the host."""

    code: ClassVar[str] = "steal"
    boots: int
    of: int
    limit_percent: float


class Busy(Warn, frozen=True):
    """CPUs that other programs kept busy beside the boots."""

    code: ClassVar[str] = "busy"
    cpus: float


class Frequency(Warn, frozen=True):
    """The CPU frequency changed between boots."""

    code: ClassVar[str] = "frequency"
    percent: float


class Temperature(Warn, frozen=True):
    """The host's temperature moved."""

    code: ClassVar[str] = "thermal"
    degrees_c: float


class Bistable(Warn, frozen=True):
    """Boots fall into two clusters."""

    code: ClassVar[str] = "bistable"
    percent: float
    boots: tuple[int, int]
