# SPDX-License-Identifier: GPL-2.0-or-later
"""One restored guest that becomes many: its QEMU is forked for each job list, and each of these for each seed.

All that a guest does before it knows its seed (QEMU's start, the restore, a rehearsal of its job) is done once, and
what QEMU translated for it is shared (plugin/serve.c). A child counts what a guest counts that was restored for its job
and seed alone, to the byte. One that does not end well is nobody's evidence: its job is run in a guest of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.machine import boot, process, qemu, snapshot
from kdelta.machine.options import GuestSpec
from kdelta.machine.patience import Waited

_ENDED, _READY = b"ended\n", b"ready\n"
_GOOD, _BAD = 1, 2  # 1: as isa-debug-exit's
_START_LIMIT_S = 20.0
_BUSY = 0.1  # of a core: idle time of a guest passes at once, so one that hangs is busy
_WATCH_MS = 250


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

    def is_ready(self, waited: Waited) -> bool:
        """Wait until it is to be told its seed; False where that is not within its limit, or it is given up sooner.

        Raises:
            NotForked: it has ended instead.
        """
        deadline = time.monotonic() + waited.limit_s
        while (left_s := deadline - time.monotonic()) > 0 and self.poll() is None:
            if self._said == _READY:
                return True
            if waited.is_enough(self.cpu_s()):
                return False
            self._hear(min(_WATCH_MS, 1 + int(1000 * left_s)))
        if self._status is not None:
            raise NotForked("the guest ended before it was told its seed")
        return False

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


class _Link:
    """Where a guest is told what its children do, one by one."""

    def __init__(self, end: socket.socket, pid: int) -> None:
        self._end, self._pid = end, pid
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def child(self, folder: Path, text: bytes, asks: socket.socket | None = None) -> Iterator[Child]:
        """A child that is told ``text`` and keeps its files in ``folder``; it is gone when the block is left.

        Raises:
            NotForked: that QEMU is gone, or cannot be forked.
        """
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            with self._lock:
                try:
                    fds = [theirs] if asks is None else [theirs, asks.fileno()]
                    socket.send_fds(self._end, [os.fsencode(folder) + b"\0" + text], fds)
                except OSError as error:
                    raise NotForked(f"QEMU does not take an order: {error}") from None
                finally:
                    os.close(theirs)
                child = Child(ours, self._pid)
            try:
                yield child
            finally:
                child.kill()
        finally:
            os.close(ours)


@contextlib.contextmanager
def _aside(guest: GuestSpec) -> Iterator[GuestSpec]:
    """The same guest with a directory of its own, below that one's."""
    folder = Path(tempfile.mkdtemp(dir=guest.folder))
    try:
        yield replace(guest, folder=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def seed_text(seed: int) -> bytes:
    """As a guest is told it."""
    return b"%016x" % seed


class Rehearsed:
    """A guest that has its job behind it once, and waits for seeds; or one that did not come to that in time.

    One that hung under a seed hangs under all: nobody waits for it again.
    """

    def __init__(self, guest: GuestSpec, link: _Link, waited: Waited, hung: boot.RawBoot | None) -> None:
        self._guest, self._link, self._waited, self._hung = guest, link, waited, hung

    def run(self, seed: int) -> boot.RawBoot:
        """The guest that has this seed.

        Raises:
            NotForked: that QEMU is gone, or cannot be forked.
        """
        if self._hung is not None:
            return self._hung
        with _aside(self._guest) as guest:
            with self._link.child(guest.folder, seed_text(seed)) as child:
                ended = boot.wait(child, guest, self._waited.limit_s, lambda: self._waited.is_enough(child.cpu_s()))
                cpu_s = child.cpu_s()
            raw = boot.collect(guest, tuple(qemu.argv(self._guest)), ended)
        if ended.timed_out and raw.state == "hung" and cpu_s < ended.elapsed_s * _BUSY:
            return replace(raw, state="lost", why="the forked QEMU stood still")
        if raw.state == "hung":
            self._hung = raw = replace(raw, why=self._waited.hung(ended.elapsed_s, cpu_s))
        elif raw.state == "ok":
            self._waited.took(ended.elapsed_s)  # nobody says any more how much CPU time that was: this at most
        return raw


class Server:
    """A restored guest that waits to be told its job."""

    def __init__(self, guest: GuestSpec, link: _Link) -> None:
        self._guest, self._link = guest, link

    @contextlib.contextmanager
    def rehearsed(self, jobs: bytes, waited: Waited) -> Iterator[Rehearsed]:
        """The guest that has these jobs, for as many seeds as it is asked for.

        Raises:
            NotForked: that QEMU is gone or cannot be forked, or the guest ended in its rehearsal.
        """
        end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end, theirs, _aside(self._guest) as guest, self._link.child(guest.folder, jobs, theirs) as child:
            theirs.close()
            began = time.monotonic()
            ready = child.is_ready(waited)
            elapsed_s, cpu_s, hung = time.monotonic() - began, child.cpu_s(), None
            if ready:
                waited.took(cpu_s)
            elif cpu_s < elapsed_s * _BUSY:
                raise NotForked("the forked QEMU stood still")
            else:
                why = waited.hung(elapsed_s, cpu_s)
                hung = _hung(guest, elapsed_s)
                hung = replace(hung, why=why) if hung.state == "hung" else hung
                child.kill()  # it would keep a core busy
            yield Rehearsed(guest, _Link(end, child.pid), waited.seeded(), hung)


def _hung(guest: GuestSpec, elapsed_s: float) -> boot.RawBoot:
    ended = process.Ended(
        status=None, timed_out=True, flooded=False, elapsed_s=elapsed_s, first_record_s=None, first_sample_s=None
    )
    return boot.collect(guest, tuple(qemu.argv(guest)), ended)


@contextlib.contextmanager
def server(guest: GuestSpec, saved: snapshot.Saved, limit_s: float) -> Iterator[Server]:
    """``guest`` restored and waiting; its job list in fw_cfg has no job.

    Raises:
        HostError: QEMU refused to run.
    """
    link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with link, theirs:
        serving = replace(guest, orders=theirs.fileno())
        with snapshot.restored(serving, saved, limit_s, (theirs.fileno(),)) as running:
            theirs.close()
            yield Server(serving, _Link(link, running.pid))
