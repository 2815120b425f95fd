# SPDX-License-Identifier: GPL-2.0-or-later
"""What is wrong with a trace, as values; the sentences are made in report/sentences.py."""

from __future__ import annotations

from typing import ClassVar

from kdelta.model import Warn


class TraceDropped(Warn, frozen=True):
    """Events that found no room in a table."""

    code: ClassVar[str] = "trace-dropped"
    probe: str
    dropped: int
    hits: int
    size: int
    event: str
    collector: str


class TraceMissed(Warn, frozen=True):
    """Calls that a probe missed."""

    code: ClassVar[str] = "trace-missed"
    probe: str
    missed: int
    calls: int


class TraceFailed(Warn, frozen=True):
    """A step of setting a trace up that the kernel refused half-way."""

    code: ClassVar[str] = "trace-failed"
    way: str
    error: str
    file: str
    text: str


class TraceShortened(Warn, frozen=True):
    """Fewer operations than asked for, because a traced one costs so much."""

    code: ClassVar[str] = "fewer-operations"
    ops: int
    asked: int


class HoldUnclear(Warn, frozen=True):
    """Lock holds that began before the last one had ended; ``elsewhere``: in a function of which nothing is known."""

    code: ClassVar[str] = "hold-unclear"
    site: str
    holds: int
    elsewhere: bool = False
