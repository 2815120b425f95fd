# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that did not live to be paused for a snapshot: each costs its limit, so this process knows them again."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec import Struct

from kdelta.machine.boot import RawBoot

DEAD = ("panicked", "hung")
_HANGS_S = 600.0  # for so long what hung is taken to hang again: it may have been the host that was busy


class _Death(Struct, frozen=True, kw_only=True):
    ended: RawBoot
    limit_s: float
    at_s: float


_known: dict[Path, _Death] = {}


def keep(path: Path, ended: RawBoot, limit_s: float) -> None:
    """Remember what became, within its limit, of the guest whose snapshot ``path`` would be; only of ``DEAD`` ones."""
    if ended.state in DEAD:
        _known[path] = _Death(ended=ended, limit_s=limit_s, at_s=time.monotonic())


def told(path: Path, limit_s: float) -> RawBoot | None:
    """What would become of it again; None where that must be tried. A panic comes again, a hang within its limit."""
    known = _known.get(path)
    if known is None:
        return None
    recent = limit_s <= known.limit_s and time.monotonic() - known.at_s < _HANGS_S
    return known.ended if recent or known.ended.state == "panicked" else None
