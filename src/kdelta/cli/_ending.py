# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends that come from outside: a signal, and a machine without memory."""

from __future__ import annotations

import signal

OUT_OF_MEMORY = (
    "out of memory: kdelta takes some 500 MB, each guest what --memory says; raise the limit (ulimit -v, or memory.max "
    "of the cgroup) or lower --memory"
)
_SIGNS = ("failed to map segment", "cannot allocate memory", "can't start new thread", "can't allocate")


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came: everything that ends cleanly at Ctrl-C does so now."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


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
