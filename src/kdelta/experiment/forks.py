# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that wait for seeds, kept over the boots of an experiment.

What the boots of a kernel have in common is there once: a restored guest, and of it one for each job that has rehearsed
it (machine/served.py). The first boot that needs one makes it; those that were asked for longest ago make room.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Generic, TypeVar

from kdelta.errors import HostError
from kdelta.machine.patience import Patience
from kdelta.machine.served import NotForked, Rehearsed, Server

T = TypeVar("T")

_GUEST_BYTES = 32 << 20  # that one that waits has of its own: a case 21 MB, a program 90 (QEMU 7.2)
_SHARE = 3  # of the memory that is free, this part
_MOST = 384  # two descriptors each: more are rarely allowed (RLIMIT_NOFILE)
_AT_ONCE = 4  # that go where memory is scarce, as one comes


def _free_bytes() -> int:
    """Memory that is free, or could be; 0 where nobody says."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return 0


def room() -> int:
    """How many guests may wait on this host, each of a case."""
    return max(1, min(_MOST, _free_bytes() // _SHARE // _GUEST_BYTES))


class _Kept(Generic[T]):
    """What is made when it is first asked for, and is there until it is closed."""

    def __init__(self, make: Callable[[], AbstractContextManager[T]]) -> None:
        self._make, self._stack, self._lock = make, ExitStack(), threading.Lock()
        self._made: T | None = None
        self._error: NotForked | None = None
        self.users = 0

    def get(self) -> T:
        """Raises:
        NotForked: it could not be made, now or before.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._made is None:
                try:
                    self._made = self._stack.enter_context(self._make())
                except NotForked as error:
                    self._error = error
                    raise
            return self._made

    def close(self) -> None:
        self._stack.close()


class Forks:
    """At most so many guests that have rehearsed, beside those in use; fewer where memory runs out."""

    def __init__(self, most: int, free_bytes: Callable[[], int] = _free_bytes) -> None:
        self.most, self._lock = most, threading.Lock()
        self._patience = Patience()
        self._free_bytes, self._least_bytes = free_bytes, free_bytes() // 2
        self._servers: dict[Hashable, _Kept[Server]] = {}
        self._guests: OrderedDict[tuple[Hashable, bytes], _Kept[Rehearsed]] = OrderedDict()
        # A process dies with the thread that started it (PR_SET_PDEATHSIG, prctl(2)); these live as long as we do.
        self._makers = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
        self.is_closed = False
        self.failed: list[str] = []  # of each guest that was not forked, or did not end well, why

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.is_closed = True
            ended: list[_Kept[Rehearsed] | _Kept[Server]] = [*self._guests.values(), *self._servers.values()]
        for kept in ended:
            kept.close()
        self._makers.shutdown(wait=False)

    @contextlib.contextmanager
    def rehearsed(
        self,
        of: Hashable,
        jobs: bytes,
        server: Callable[[], AbstractContextManager[Server]],
        limit_s: float,
        *,
        whole: bool = False,
    ) -> Iterator[Rehearsed]:
        """The guest with these jobs, of the kernel and plugin that ``of`` stands for and ``server`` starts.

        ``whole``: it is waited for until its limit, whatever others took.

        Raises:
            NotForked: there is none.
            HostError: all have been ended.
        """
        with self._lock:
            if self.is_closed:
                raise HostError("the experiment is at its end")
            root = self._servers.setdefault(of, _Kept(server))
            waited = self._patience.of(of, jobs, limit_s, whole=whole)
            kept = self._guests.setdefault((of, jobs), _Kept(lambda: self._started(root).rehearsed(jobs, waited)))
            self._guests.move_to_end((of, jobs))
            kept.users += 1
            over = self._over()
        for old in over:
            old.close()
        try:
            yield kept.get()
        finally:
            with self._lock:
                kept.users -= 1

    def _started(self, root: _Kept[Server]) -> Server:
        return self._makers.submit(root.get).result()

    def _over(self) -> list[_Kept[Rehearsed] | _Kept[Server]]:
        """What has to go: the guests asked for longest ago, and servers that no guest is of any more."""
        idle = [key for key, kept in self._guests.items() if not kept.users]
        scarce = _AT_ONCE if self._free_bytes() < self._least_bytes else 0
        gone = idle[: max(scarce, len(self._guests) - self.most)]
        over: list[_Kept[Rehearsed] | _Kept[Server]] = [self._guests.pop(key) for key in gone]
        wanted = {of for of, _ in self._guests}
        return over + [self._servers.pop(of) for of in [*self._servers] if of not in wanted]
