# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a guest of counts is waited for, by what others took. Threads may share it.

A kernel that hangs in one case mostly hangs in others, and each would cost the whole limit. So once one has not come to
its end within it, a further guest of that kernel is given up sooner: after many times the CPU time that the same jobs
took on another kernel, and no less than a minute of it. CPU time, because a busy host makes every guest wait.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable

_TIMES = 32
_LEAST_CPU_S = 60.0


class Patience:
    """What guests took and which kernels hung, over all boots of an experiment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._took: dict[bytes, dict[Hashable, float]] = {}  # CPU seconds, by jobs and kernel
        self._hung: dict[Hashable, float] = {}  # the whole limit, by kernel

    def of(self, kernel: Hashable, jobs: bytes, limit_s: float, *, whole: bool) -> Waited:
        """For a guest that has these jobs. ``whole``: it is given the limit, whatever others took."""
        return Waited(self, kernel, jobs, limit_s, whole)

    def limit_cpu_s(self, kernel: Hashable, jobs: bytes) -> float | None:
        """What is enough for a further guest of ``kernel``; None where only the limit says."""
        with self._lock:
            others = [took for other, took in self._took.get(jobs, {}).items() if other != kernel]
            return max(_LEAST_CPU_S, _TIMES * max(others)) if others and kernel in self._hung else None

    def took(self, kernel: Hashable, jobs: bytes, cpu_s: float) -> None:
        """A guest was at its end, or ready for its seed, after so much CPU time at most."""
        with self._lock:
            mine = self._took.setdefault(jobs, {})
            mine[kernel] = max(cpu_s, mine.get(kernel, 0.0))

    def hung(self, kernel: Hashable, limit_s: float) -> None:
        """A guest was not at its end within the whole limit."""
        with self._lock:
            self._hung.setdefault(kernel, limit_s)

    def waited_s(self, kernel: Hashable) -> float:
        """The limit within which the kernel did not come to its end."""
        return self._hung[kernel]


class Waited:
    """One guest's part of it."""

    def __init__(self, all_of: Patience, kernel: Hashable, jobs: bytes, limit_s: float, whole: bool) -> None:
        self._all, self._kernel, self._jobs, self._whole = all_of, kernel, jobs, whole
        self.limit_s = limit_s

    def seeded(self) -> Waited:
        """For what it does once it knows its seed, which is held against the same of others."""
        return Waited(self._all, self._kernel, self._jobs + b"\nseeded", self.limit_s, self._whole)

    def is_enough(self, cpu_s: float) -> bool:
        """Whether it is given up after this CPU time, before its limit."""
        enough_s = None if self._whole else self._all.limit_cpu_s(self._kernel, self._jobs)
        return enough_s is not None and cpu_s > enough_s

    def took(self, cpu_s: float) -> None:
        """It came where it should."""
        self._all.took(self._kernel, self._jobs, cpu_s)

    def hung(self, elapsed_s: float, cpu_s: float) -> str:
        """It did not; why, in words."""
        if elapsed_s >= self.limit_s:
            self._all.hung(self._kernel, self.limit_s)
            return not_in_time(self.limit_s)
        limit_s = self._all.waited_s(self._kernel)
        return (
            f"not at its end after {cpu_s:.0f} s of CPU time, more than {_TIMES} times what another kernel took; this "
            f"one did not end another case within {limit_s:g} s (--limit {limit_s:g}: to wait so long for each)"
        )


def not_in_time(limit_s: float) -> str:
    """Why a guest is called hung that had its whole limit."""
    return f"not at its end after {limit_s:g} s (--limit)"
