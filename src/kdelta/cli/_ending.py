# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends that come from outside: a signal, a machine without memory or one that refuses something."""

from __future__ import annotations

import errno
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kdelta import paths
from kdelta.errors import DiskFull, KdeltaError

_AGAIN_S = 3.0  # what ends cleanly has ended by then
_BOUNCE_S = 1.0  # a second signal within this is the same wish: timeout(1) sends two, and so do impatient fingers
OUT_OF_MEMORY = (
    "out of memory: kdelta takes some 500 MB, each guest what --memory says; raise the limit (ulimit -v, or memory.max "
    "of the cgroup) or lower --memory"
)
THE_SAME = "the same command goes on; what was built and mapped is kept"
HAD = "the same command goes on; what was fetched and built is kept"
_SIGNS = ("failed to map segment", "cannot allocate memory", "can't start new thread", "can't allocate")


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came: everything that ends cleanly at Ctrl-C does so now."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


class Endings:
    """Handlers of the signals that end a command: the first raises, what comes at once after it leaves the clean-up alone.

    SIGTERM and SIGHUP raise once more later: what is raised within a destructor, or a hook around fork, is dropped by Python.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = -_BOUNCE_S

    def listen(self) -> None:
        """Install the handlers, but for signals that the caller has us ignore (nohup, jobs in the background)."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self.interrupt if number == signal.SIGINT else self.terminate)

    def over(self) -> None:
        """The command has said its last line: from here on a signal just ends the process."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-C.

        Raises:
            KeyboardInterrupt: unless one was raised just now.
        """
        if self._first():
            raise KeyboardInterrupt

    def terminate(self, number: int, _frame: FrameType | None) -> None:
        """To be told to end is as Ctrl-C.

        Raises:
            Terminated: unless an ending was raised just now.
        """
        if self._first():
            signal.signal(signal.SIGALRM, lambda *_: self.terminate(number, None))
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
            raise Terminated(number)

    def _first(self) -> bool:
        now = self._clock()
        if now - self._last < _BOUNCE_S:
            return False
        self._last = now
        return True


def notes(ending: BaseException | None) -> list[str]:
    """How to go on, as said where ``ending`` was met first: an ending that came during the clean-up has the first as context."""
    while ending is not None:
        if found := getattr(ending, "__notes__", None):
            return list(found)
        ending = ending.__cause__ or ending.__context__
    return []


@contextmanager
def going_on(how: str) -> Iterator[None]:
    """An ending within says ``how`` to go on, where nothing closer to it does."""
    try:
        yield
    except KeyboardInterrupt as ending:
        if not notes(ending):
            ending.add_note(how)
        raise


def out_of_memory(error: BaseException | None) -> bool:
    """Whether ``error``, or what it was raised from, is that this machine gave no more memory.

    A library that cannot be mapped is an ImportError, a thread that has no stack a RuntimeError.
    """
    while error is not None:
        said = str(error).lower()
        if isinstance(error, MemoryError) or any(sign in said for sign in _SIGNS):
            return True
        error = error.__cause__ or error.__context__
    return False


def of_machine(error: OSError) -> str:
    """What this machine refuses, in one line: what, where, and the remedy where there is one."""
    where = error.filename or "this machine"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return str(DiskFull(where))
    if error.errno == errno.ENOMEM:
        return OUT_OF_MEMORY
    if error.errno == errno.EBADF and error.filename is None:
        return "standard output is closed: nothing was printed"
    said = f"{where}: {error.strerror or error}"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) and (setting := _setting(str(where))):
        return f"{said}; set {setting} to a directory that you can write to"
    return said


def _setting(path: str) -> str:
    """The variable that says where ``path`` is; "" where it is not kdelta's."""
    try:
        places = {"KDELTA_CACHE": paths.cache_dir(), "KDELTA_STATE": paths.state_dir()}
    except KdeltaError:  # no home
        return ""
    return next((name for name, place in places.items() if Path(path).is_relative_to(place)), "")
