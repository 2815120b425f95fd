# SPDX-License-Identifier: GPL-2.0-or-later
"""A build that hangs, or that fills the disk, is ended: its source may do either by mistake or on purpose."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

SILENCE_LIMIT_S = 1800.0  # a single step of make takes minutes at most, the link of a large kernel among them
LEAST_FREE_BYTES = 256 << 20
_EACH_S = 1.0


class Overseer:
    """Kills a process group that prints nothing for too long, or leaves too little of the disk. ``why`` says which."""

    def __init__(
        self,
        group: int,
        folder: Path,
        clock: Callable[[], float],
        *,
        silence_limit_s: float = SILENCE_LIMIT_S,
        least_free_bytes: int = LEAST_FREE_BYTES,
        each_s: float = _EACH_S,
    ) -> None:
        """``folder`` is where the group writes; it is looked at every ``each_s``."""
        self.why = ""
        self._group, self._folder, self._clock = group, folder, clock
        self._silence_limit_s, self._least_free_bytes, self._each_s = silence_limit_s, least_free_bytes, each_s
        self._heard_s = clock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Overseer:
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def heard(self) -> None:
        """It has printed something."""
        self._heard_s = self._clock()

    def _look(self) -> None:
        while not self._over.wait(self._each_s):
            self.why = self._reason()
            if self.why:
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    os.killpg(self._group, signal.SIGKILL)
                return

    def _reason(self) -> str:
        if self._clock() - self._heard_s > self._silence_limit_s:
            return f"the build hangs: it printed nothing for {self._silence_limit_s / 60:.0f} min"
        if shutil.disk_usage(self._folder).free < self._least_free_bytes:
            return f"the build was ended before it filled the disk of {self._folder}: No space left on device"
        return ""
