# SPDX-License-Identifier: GPL-2.0-or-later
"""The time that the user gives for all that follows the builds: the map of the cases, counting, checks beside it.

A build is never cut: without its kernel there is nothing to say, and the next one of the same source is short.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_MAP = 0.5  # the part of it that a map may take: cases that nobody measures say little


class Budget:
    """``given_s`` from ``begin`` on; None is no limit."""

    def __init__(self, given_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._given_s, self._clock, self._begun_s = given_s, clock, clock()

    def begin(self) -> None:
        """Everything is built: the time runs from now on."""
        self._begun_s = self._clock()

    def left_s(self) -> float | None:
        """What is left of it, not below 0; None without a limit."""
        return None if self._given_s is None else max(0.0, self._given_s - (self._clock() - self._begun_s))

    def map_is_over(self) -> bool:
        """Whether the map has had its part."""
        left_s = self.left_s()
        return left_s is not None and self._given_s is not None and left_s <= (1 - _MAP) * self._given_s
