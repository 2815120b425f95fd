# SPDX-License-Identifier: GPL-2.0-or-later
"""How long work on a kernel tells its caller where it is, without printing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives steps of long work. ``done`` and ``total`` are in the unit that ``text`` names."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """``text`` has begun, or has come to ``done`` of ``total``."""


class Quiet:
    """A Progress that says nothing."""

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Drop the step."""
