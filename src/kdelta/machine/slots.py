# SPDX-License-Identifier: GPL-2.0-or-later
"""How many guests run at once, whichever boots they are of: where one boot is left, it has all cores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Slots:
    """``count`` of them, shared by threads."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = threading.Semaphore(self.count)

    def each(self, do: Callable[[T], R], of: Sequence[T]) -> list[R]:
        """``do`` of each, in their order, as many at once as slots are free; after an error no further one is begun."""
        failed = threading.Event()

        def one(item: T) -> list[R]:
            with self._free:
                if failed.is_set():
                    return []  # the error of another is raised
                try:
                    return [do(item)]
                except BaseException:
                    failed.set()
                    raise

        with ThreadPoolExecutor(max_workers=max(1, min(self.count, len(of)))) as pool:
            return [result for results in pool.map(one, of) for result in results]
