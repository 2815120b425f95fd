# SPDX-License-Identifier: GPL-2.0-or-later
"""One restored guest that becomes many: its QEMU is forked for each job list (plugin/serve.c).

All that a guest does before it knows its job (QEMU's start, the restore, the seed's perturbation) is done once, and
what QEMU translated for it is shared. A child counts what a guest counts that was restored for its job alone, to the
byte. One that does not end well is nobody's evidence: its job is run in a guest of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.machine import boot, qemu, snapshot
from kdelta.machine.options import GuestSpec

_ENDED = b"ended\n"
_GOOD, _BAD = 1, 2  # 1: as isa-debug-exit's
_START_LIMIT_S = 20.0
_BUSY = 0.1  # of a core: idle time of a guest passes at once, so one that hangs is busy


class NotForked(HostError):
    """QEMU did not become another process: the guests that were to come of it are restored one by one."""


class Child:
    """A forked QEMU, as ``process.wait`` looks at one: ``pid``, and ``poll()``, which answers once it has ended."""

    def __init__(self, pipe: int, parent: int) -> None:
        self._pipe, self._parent = pipe, parent
        self._said = b""
        self._status: int | None = None
        self.pid = self._read_pid()

    def _read_pid(self) -> int:
        deadline = time.monotonic() + _START_LIMIT_S
        while b"\n" not in self._said and self._hear(max(0, int(1000 * (deadline - time.monotonic())))):
            pass
        number, _, self._said = self._said.partition(b"\n")
        if not number.isdigit():
            raise NotForked("QEMU was not forked")
        return int(number)

    def _hear(self, wait_ms: int) -> bool:
        """Take what it says; False when it says nothing, or no more."""
        poller = select.poll()
        poller.register(self._pipe, select.POLLIN)
        if not poller.poll(wait_ms):
            return False
        chunk = os.read(self._pipe, 64)
        self._said += chunk
        if not chunk:
            self._status = _GOOD if self._said == _ENDED else _BAD
        return bool(chunk)

    def poll(self) -> int | None:
        while self._status is None and self._hear(0):
            pass
        return self._status

    def cpu_s(self) -> float:
        """The CPU time that it has had; 0 where that cannot be read."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = Path(f"/proc/{self.pid}/stat").read_text("latin-1").rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def kill(self) -> None:
        """End it where it is a child of that QEMU; what else may have its number by now is left alone."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = Path(f"/proc/{self.pid}/stat").read_text("latin-1")
            if int(stat.rpartition(")")[2].split()[1]) == self._parent:
                os.kill(self.pid, signal.SIGKILL)


class Server:
    """A restored guest that waits to be told whom to become."""

    def __init__(self, guest: GuestSpec, link: socket.socket, running: subprocess.Popen[bytes]) -> None:
        self._guest, self._link, self._running = guest, link, running

    def run(self, jobs: bytes, folder: Path, limit_s: float) -> boot.RawBoot:
        """The guest that has these jobs; its files are in ``folder``.

        Raises:
            NotForked: that QEMU is gone, or cannot be forked.
        """
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            try:
                socket.send_fds(self._link, [os.fsencode(folder) + b"\0" + jobs], [theirs])
            except OSError as error:
                raise NotForked(f"QEMU does not take an order: {error}") from None
            finally:
                os.close(theirs)
            child = Child(ours, self._running.pid)
            guest = replace(self._guest, folder=folder)
            try:
                ended = boot.wait(child, guest, limit_s)
                stood_still = ended.timed_out and child.cpu_s() < ended.elapsed_s * _BUSY
            finally:
                child.kill()
        finally:
            os.close(ours)
        raw = boot.collect(guest, tuple(qemu.argv(self._guest)), ended)
        return replace(raw, state="lost", why="the forked QEMU stood still") if stood_still else raw


@contextlib.contextmanager
def server(guest: GuestSpec, saved: snapshot.Saved, limit_s: float) -> Iterator[Server]:
    """``guest`` restored, perturbed and waiting; its job list in fw_cfg has a seed and no job.

    Raises:
        HostError: QEMU refused to run.
    """
    link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with link, theirs:
        serving = replace(guest, orders=theirs.fileno())
        with snapshot.restored(serving, saved, limit_s, (theirs.fileno(),)) as running:
            theirs.close()
            yield Server(serving, link, running)
