# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU is denied before it starts: io_uring(7).

Since 10.2 its main loop polls through a ring where it gets one (util/fdmon-io_uring.c), and a fork shares the ring with
its parent: the guests that the plugin forks (plugin/serve.c) never heard of their timers, and each hung (11.1.3).
Without a ring QEMU polls as it did before.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Callable

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 38, 22  # linux/prctl.h
_SECCOMP_MODE_FILTER = 2  # linux/seccomp.h
_SYS_IO_URING_SETUP = 425  # the same on all architectures, as all since Linux 5.1
# linux/filter.h: load the call's number (the first word of seccomp_data); is it the one; deny it; allow all others
_FILTER = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in (
        (0x20, 0, 0, 0),
        (0x15, 0, 1, _SYS_IO_URING_SETUP),
        (0x06, 0, 0, 0x00050000 | errno.ENOSYS),
        (0x06, 0, 0, 0x7FFF0000),
    )
)


class _Program(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


_PROGRAM = _Program(len(_FILTER) // struct.calcsize("HBBI"), _FILTER)
_ADDRESS = ctypes.c_void_p(ctypes.addressof(_PROGRAM))


def without_rings(prctl: Callable[..., int]) -> None:
    """Let this process and what it executes have no io_uring, from now on (seccomp(2)).

    Nothing is raised where the host has no seccomp: QEMU's own ``-sandbox on`` then says so. It runs between fork and
    exec, beside other threads' locks: ``prctl`` was looked up before, and takes none.
    """
    if not prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, _ADDRESS, 0, 0)
