# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a wait will still take, from how fast it went until now, or from how long the like usually takes."""

from __future__ import annotations

from collections.abc import Callable

_TOLD_FROM = 0.02  # of the whole: two objects of 1818 promised 334 minutes, and 64 of them 17


def words(left_s: float | None) -> str:
    """``about 3 min left``; "" where nothing can be said."""
    if left_s is None:
        return ""
    return f"about {left_s / 60:.0f} min left" if left_s >= 90 else f"about {max(1.0, left_s):.0f} s left"


class Pace:
    """Told of each ``done`` of ``total``, it knows the time left; ``clock`` is in seconds."""

    def __init__(self, clock: Callable[[], float], usual_s: float | None = None, shared: bool = False) -> None:
        """``usual_s``: how long one of them usually takes, used until the first is done (of many: one in fifty).

        ``shared``: the first takes longer, by what is made for all of them: the pace is that of those after it.
        """
        self._clock, self._usual_s, self._shared = clock, usual_s, shared
        self._first = self._last = (0, clock())
        self._total, self._cold = 0, shared

    def at(self, done: int, total: int, *, grows: bool = False) -> None:
        """``done`` of ``total`` are done now.

        Fewer than before, or another total, begin a new wait: what is done at its start was done by an earlier run.
        With ``grows`` another total belongs to the same wait.
        """
        now = self._clock()
        if done < self._last[0] or not self._total or (total != self._total and not grows):
            self._first = self._last = (done, now)
            self._cold = self._shared
        elif done > self._last[0]:
            self._last = (done, now)
            if self._cold:
                self._first, self._cold = self._last, False
        self._total = total

    def left_s(self) -> float | None:
        """Seconds until all are done; None while nothing can be said, also where it took longer than was thought."""
        made, since_s = self._last[0] - self._first[0], self._last[1] - self._first[1]
        each_s = since_s / made if made and made >= _TOLD_FROM * self._total else self._usual_s
        if each_s is None or self._last[0] >= self._total:
            return None
        left_s = each_s * (self._total - self._last[0]) - (self._clock() - self._last[1])
        return left_s if left_s > 0 else None

    def left(self) -> str:
        """The time left behind other words: ``; about 3 min left``, or ""."""
        left = words(self.left_s())
        return f"; {left}" if left else ""
