# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of counts that wait on a host from one unit of an experiment to the next, as on one machine from boot to boot.

They are of one experiment at a time, and go when no unit came for a while: they hold memory, and keep no core busy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer

from kdelta.experiment.forks import Forks, room

_IDLE_S = 60.0


class Waiting:
    """Threads may share it."""

    def __init__(self, idle_s: float = _IDLE_S, make: Callable[[], Forks] = lambda: Forks(room())) -> None:
        self._idle_s, self._make, self._lock = idle_s, make, Lock()
        self._forks: dict[str, Forks] = {}
        self._users: Counter[str] = Counter()  # units in hand, by experiment
        self._timer: Timer | None = None

    @contextmanager
    def of(self, experiment: str) -> Iterator[Forks]:
        """Those of ``experiment``, for a unit of it; those of others go once they have no unit in hand."""
        with self._lock:
            self._users[experiment] += 1
            self._end(but=experiment)
            if experiment not in self._forks:
                self._forks[experiment] = self._make()
            forks = self._forks[experiment]
        try:
            yield forks
        finally:
            with self._lock:
                self._users[experiment] -= 1
                self._wait()

    def rest(self) -> None:
        """No unit is expected: those that are in no use go."""
        with self._lock:
            self._end()

    def _end(self, but: str = "") -> None:
        for name in [name for name in self._forks if name != but and not self._users[name]]:
            del self._users[name]
            self._forks.pop(name).__exit__()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = Timer(self._idle_s, self.rest)
        self._timer.daemon = True
        self._timer.start()
