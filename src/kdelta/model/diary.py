# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept beside experiments: items of watched sources, and steps that were announced."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

WatchedState = Literal["start", "waiting", "running", "done", "failed", "superseded"]
Triage = Literal["open", "acknowledged", "explained", "fixed"]


class Watched(Struct, frozen=True, kw_only=True):
    """An item of a watched source: a series (``item`` is its first Message-ID) or a commit.

    ``start``: the commit that a branch is watched from. Times are ISO 8601; ``elapsed_s`` is of all tries.
    """

    source: str
    item: str
    title: str
    state: WatchedState
    why: str = ""
    tries: int = 0
    began_at: str = ""
    elapsed_s: float = 0.0
    experiment: str = ""
    answer: str = ""  # the file with the reply


class Step(Struct, frozen=True, kw_only=True):
    """A step of a followed sweep as it was announced, and what became of it. ``key`` tells it from all others."""

    key: str
    case: str  # with its cgroup and mitigations
    metric: str
    last: str  # the version that still has the old figure
    first: str
    effect_percent: float  # infinite: from 0
    verdict: str
    because: str
    experiment: str
    announced_at: str
    interval_percent: tuple[float, float] | None = None
    patched: float | None = None  # of a step from 0, which has no percentage: what it is then
    compiler: str = ""  # how it changed at the step, where it did
    explained: str = ""  # in words, where the figure goes with the compiler
    state: Triage = "open"
    note: str = ""
    judged_at: str = ""
