# SPDX-License-Identifier: GPL-2.0-or-later
"""Booted, settled guests kept on disk and brought back to life, so that one boot serves many exact runs.

The guest has itself paused while it is idle (guest/init_snapshot.c). Its memory is a file from the start; the state of
its devices is migrated to a second one (QEMU's capability x-ignore-shared leaves out memory that is shared). A restored
guest maps the first privately, so that its pages come from the page cache as they are touched, and loads the second;
both were opened for it, so that nobody takes them away.

The files' name is a digest of everything that made them: image, command line, payload, QEMU and its arguments. A
snapshot made by anything else has another name; a damaged one fails its checksum and is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from kdelta import digests, locks, vouched
from kdelta.errors import HostError
from kdelta.machine import boot, deaths, icount, process, qemu, room, turns
from kdelta.machine.options import GuestSpec
from kdelta.machine.qmp import Monitor

_PAUSED = frozenset({"STOP"})
_ENDED = frozenset({"SHUTDOWN"})
_TRAILER = b"KDSNAP05"  # of the files that make one; another one where plugin/idle.c keeps another clock
_PAGE = 4096
_CHUNK = 256 * _PAGE
_ZEROS = bytes(_CHUNK)
_IGNORE_SHARED = {"capabilities": [{"capability": "x-ignore-shared", "state": True}]}
_FILES = (9, 1)
_BY_SIGNAL = "terminating on signal "
_DEATH_S = 1.0  # a process that was killed closes its end of the monitor before it is gone
_REMOVED = "somebody removed the snapshot in {} that a guest was to start from"
# A guest that came by migration announces itself to its network 50, 200, ... ms later, of the host's time, network or
# not (qemu_announce_self, migration/announce.c). Those timers shorten the turns of several CPUs, as icount_get_limit()
# heeds timers of real time too, and wake the main loop: the same seed was never the same twice.
_NOT_ANNOUNCED = {"announce-rounds": 0}


class Removed(HostError):
    """The files of a snapshot are gone that was whole just before."""


class Saved(Struct, frozen=True):
    """A snapshot on disk: the devices' state, and the memory as a sparse file."""

    state: Path
    ram: Path

    def console(self) -> bytes:
        """What the kernel had printed when it was taken; nothing where that was not kept."""
        with contextlib.suppress(FileNotFoundError):
            return self.state.with_suffix(".console").read_bytes()
        return b""


def key(guest: GuestSpec, initramfs: bytes) -> str:
    """Digest of all that a snapshot depends on; paths are left out, contents are in, as they are on disk now.

    ``initramfs`` says what is in it (guest/image.py, content). The plugin is left out: it only keeps the clock there.

    Raises:
        HostError: the image cannot be read.
    """
    image = qemu.booted(guest)
    try:
        content = digests.of_file(Path(image))
    except OSError as error:
        raise HostError(f"cannot read the image {image}: {error.strerror}") from None
    argv = qemu.argv(replace(guest, plugin=None))
    words = [content if word == image else word.replace(str(guest.folder), "FOLDER") for word in argv]
    digest = hashlib.sha256(_TRAILER)
    status = guest.qemu.stat()
    for part in (*words, f"{guest.qemu_version} {status.st_size} {status.st_mtime_ns}"):
        digest.update(part.encode() + b"\0")
    digest.update(initramfs)
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[BinaryIO]:
    """Hold the lock of one snapshot, so that two runs do not both make it, nor one remove what another uses."""
    path.parent.mkdir(parents=True, exist_ok=True)
    book = path.with_suffix(".lock")
    while True:
        with book.open("wb") as lock:
            fcntl.flock(lock, how)
            if locks.names(book, lock):
                os.utime(lock.fileno())  # when it was used: room.py
                yield lock
                return


@contextlib.contextmanager
def used_once(saved: Saved) -> Iterator[None]:
    """For one boot, after which it is among the first to make room: of such there is one for each kernel and seed.

    Until then nobody removes it.
    """
    with _locked(saved.state, fcntl.LOCK_SH) as lock:
        try:
            yield
        finally:
            over_s = time.time() - room.IN_USE_S
            os.utime(lock.fileno(), (over_s, over_s))


def _pages(fd: int) -> Iterator[tuple[int, bytes]]:
    """(offset, content) of all pages of a file that are not zero; holes are not even read."""
    size = os.fstat(fd).st_size
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA) // _CHUNK * _CHUNK
        except OSError:  # ENXIO: the rest is a hole
            return
        chunk = os.pread(fd, _CHUNK, at)
        if chunk != _ZEROS[: len(chunk)]:
            for offset in range(0, len(chunk), _PAGE):
                page = chunk[offset : offset + _PAGE]
                if page != _ZEROS[: len(page)]:
                    yield at + offset, page
        at += _CHUNK


def _digest(state: Path, ram: Path, copy: Path | None = None) -> bytes:
    """Checksum of a snapshot; ``ram`` is copied on the way when asked, its zero pages as holes."""
    digest = hashlib.sha256(state.read_bytes())
    with contextlib.ExitStack() as files:
        source = files.enter_context(ram.open("rb"))
        target = files.enter_context(copy.open("wb")) if copy else None
        for offset, page in _pages(source.fileno()):
            digest.update(offset.to_bytes(8, "little") + page)
            if target is not None:
                os.pwrite(target.fileno(), page, offset)
        if target is not None:
            target.truncate(os.fstat(source.fileno()).st_size)
    return digest.digest()


_made: dict[Path, tuple[int, ...]] = {}  # by this process, and what its files were then


def _facts(saved: Saved) -> tuple[int, ...]:
    stats = [path.stat() for path in (saved.state, saved.ram, saved.state.with_suffix(".sum"))]
    return tuple(fact for s in stats for fact in (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns))


def valid(saved: Saved) -> bool:
    """Whether a snapshot is whole: its .sum file holds its checksum, as was seen now or since when nothing changed."""
    book, total = saved.state.with_suffix(".seen"), saved.state.with_suffix(".sum")
    try:
        said = vouched.stamp((saved.state, saved.ram, total))
        if vouched.is_vouched(book, said):
            return True
        mine = _made.get(saved.state) == _facts(saved)
        sound = mine or total.read_bytes() == _TRAILER + _digest(saved.state, saved.ram)
    except FileNotFoundError:
        return False
    if sound:
        vouched.vouch(book, said)
    return sound


def _monitor(guest: GuestSpec, running: subprocess.Popen[bytes], deadline: float) -> Monitor:
    return Monitor(guest.path("qmp.sock"), deadline, alive=lambda: running.poll() is None)


@contextlib.contextmanager
def _explained(guest: GuestSpec) -> Iterator[None]:
    """Where QEMU ended, or its monitor does not answer, QEMU's own complaint is told too.

    Raises:
        HostError: that happened.
    """
    try:
        yield
    except HostError as error:
        said = boot.read_output(guest.path("qemu.log")).decode("utf-8", "replace").strip().splitlines()
        raise HostError(f"{error}: {said[-1]}" if said else str(error)) from None


def _save(guest: GuestSpec, target: Path, limit_s: float) -> boot.RawBoot | None:
    """Boot until the guest pauses, then write its devices' state; what became of it where it did not pause.

    Raises:
        HostError: QEMU refused to run or to save.
    """
    argv = tuple(qemu.argv(guest))
    deadline = time.monotonic() + limit_s
    with process.started(argv, guest.path("qemu.log"), folder=guest.folder) as running:
        try:
            with _explained(guest), _monitor(guest, running, deadline) as monitor:
                if monitor.wait_event(_PAUSED | _ENDED) in _ENDED:
                    return _ended(guest, argv, running, deadline, limit_s, killed=monitor.from_outside)
                _migrate(monitor, target)
                monitor.command("quit")
        except HostError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(_DEATH_S)
            if running.poll() is not None or time.monotonic() >= deadline:
                return _ended(guest, argv, running, deadline, limit_s)
            raise
        running.wait(timeout=max(1.0, deadline - time.monotonic()))
    state = icount.at_one_ns(target.read_bytes(), guest.boot_shift)
    if state is None:  # another QEMU than is known: it takes twice as long
        guest.path("ram").unlink()
        return _save(replace(guest, boot_shift=0), target, limit_s)
    target.write_bytes(state)
    return None


def _ended(
    guest: GuestSpec,
    argv: tuple[str, ...],
    running: subprocess.Popen[bytes],
    deadline: float,
    limit_s: float,
    killed: bool = False,
) -> boot.RawBoot:
    """What became of a guest that is gone, or hangs at its limit."""
    now = time.monotonic()
    with contextlib.suppress(subprocess.TimeoutExpired):
        if now < deadline:
            running.wait(timeout=deadline - now)
    ended = process.Ended(
        status=running.poll(),
        timed_out=running.poll() is None,
        flooded=False,
        elapsed_s=limit_s - (deadline - now),
        first_record_s=None,
        first_sample_s=None,
    )
    raw = boot.collect(guest, argv, ended)
    # a signal may come before its monitor is asked; it says so then, and ends with 0 (system/runstate.c, v10.0)
    killed = killed or (ended.status or 0) < 0 or _BY_SIGNAL in raw.qemu_log
    return replace(raw, killed=killed)


def _passed(monitor: Monitor, fd: int) -> str:
    """What QEMU calls a file that was opened here: it has no way to it of its own.

    ``fd:`` is deprecated for files from 9.1 on and refused by 11.1; ``file:`` is there from 8.2 on.
    """
    files = _version(monitor) >= _FILES
    words, uri = ({"fdset-id": 0}, "file:/dev/fdset/0") if files else ({"fdname": "state"}, "fd:state")
    monitor.command("add-fd" if files else "getfd", words, fd=fd)
    return uri


def _version(monitor: Monitor) -> tuple[int, int]:
    said = monitor.command("query-version")["qemu"]
    return said["major"], said["minor"]


def _migrate(monitor: Monitor, target: Path) -> None:
    monitor.command("migrate-set-capabilities", _IGNORE_SHARED)
    monitor.command("migrate-set-parameters", {"max-bandwidth": 1 << 40})
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        monitor.command("migrate", {"uri": _passed(monitor, fd)})
    finally:
        os.close(fd)
    while (state := monitor.command("query-migrate").get("status")) not in ("completed", "failed"):
        time.sleep(0.01)
    if state == "failed":
        raise HostError(f"QEMU could not write the snapshot {target}: is the disk full?")


def _make(guest: GuestSpec, saved: Saved, limit_s: float, same: Callable[[], bool]) -> boot.RawBoot | None:
    """Make the files of ``saved``, each under another name until it is whole; what became of a guest that never pauses.

    ``same`` says whether what was booted is still what ``saved`` is named by.
    """
    state, ram = (path.with_suffix(f"{path.suffix}.part") for path in (saved.state, saved.ram))
    try:
        if died := _save(guest, state, limit_s):
            return died
        if not same():
            raise HostError(f"{qemu.booted(guest)} changed while it was booted: nothing of that boot is kept")
        checksum = _digest(state, guest.path("ram"), copy=ram)
        saved.state.with_suffix(".console").write_bytes(boot.read_output(guest.path("console")))
        saved.state.with_suffix(".sum").write_bytes(_TRAILER + checksum)
        ram.rename(saved.ram)
        state.rename(saved.state)
        _made[saved.state] = _facts(saved)
    except OSError as error:
        raise HostError(f"cannot keep the snapshot {saved.state}: {error.strerror}") from None
    finally:
        for part in (state, ram, guest.path("ram")):
            part.unlink(missing_ok=True)
    return None


def ensure(
    guest: GuestSpec, content: bytes, payload: Callable[[], bytes], folder: Path, limit_s: float
) -> Saved | boot.RawBoot:
    """The snapshot of ``guest``, made now if there is none; what became of the guest where it did not pause.

    ``content`` says what is in its initramfs, which ``payload`` puts together where it is booted. One that died is
    not booted again by this process, if it hung not for ten minutes: it would cost its limit each time.
    Where it ended without a word, as one that has no access to ports, it may run when it is booted otherwise.

    Raises:
        HostError: QEMU refused to run or to save, or the image changed meanwhile.
    """
    made_of = key(guest, content)
    path = folder / f"{made_of[:40]}.state"
    saved = Saved(path, path.with_suffix(".ram"))
    with _locked(path, fcntl.LOCK_SH):
        if valid(saved):
            return saved
    with _locked(path):
        if died := deaths.told(path, limit_s):
            return died
        if valid(saved):
            return saved
        room.make(folder)
        boot.write_file(guest.path("initramfs"), payload())
        ended = _make(guest, saved, limit_s, lambda: key(guest, content) == made_of)
        if ended is None:
            return saved
        deaths.keep(path, ended, limit_s)
        return ended


@contextlib.contextmanager
def _opened(saved: Saved) -> Iterator[tuple[int, int]]:
    """Its state and its memory.

    QEMU asked for a memory that is not there makes one of zeros, or, where a link leads there, tries for ever
    (file_ram_open(), system/physmem.c, v10.0: O_CREAT | O_EXCL follows none).

    Raises:
        Removed: one is not there.
        HostError: one cannot be read.
    """
    with contextlib.ExitStack() as held:
        try:
            state, ram = (held.enter_context(path.open("rb")) for path in (saved.state, saved.ram))
        except FileNotFoundError:
            raise Removed(_REMOVED.format(saved.state.parent)) from None
        except OSError as error:
            raise HostError(f"cannot read {error.filename}: {error.strerror}") from None
        yield state.fileno(), ram.fileno()


def _load(monitor: Monitor, state: int) -> None:
    monitor.command("migrate-set-capabilities", _IGNORE_SHARED)
    monitor.command("migrate-set-parameters", _NOT_ANNOUNCED)
    monitor.command("migrate-incoming", {"uri": _passed(monitor, state)})
    while monitor.command("query-status")["status"] == "inmigrate":
        time.sleep(0.001)


@contextlib.contextmanager
def restored(
    guest: GuestSpec, saved: Saved, limit_s: float, pass_fds: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """A QEMU whose guest goes on where the snapshot was taken.

    Its monitor stays connected: the end of a connection would wake QEMU's main loop while the guest runs.

    Raises:
        Removed: the snapshot was, meanwhile.
        HostError: QEMU refused to run.
    """
    with contextlib.ExitStack() as held:
        state, ram = held.enter_context(_opened(saved))
        guest.path("ram").symlink_to(f"/proc/self/fd/{ram}")
        argv, log = qemu.argv(guest), guest.path("qemu.log")
        running = held.enter_context(process.started(argv, log, (*pass_fds, ram), folder=guest.folder))
        with _explained(guest):
            monitor = held.enter_context(_monitor(guest, running, time.monotonic() + limit_s))
            _load(monitor, state)
            if guest.options.smp > 1:
                turns.shorten(guest.path("qtest.sock"), guest.options.turn_ns, guest.options.smp)
            monitor.command("cont")
        yield running


def restore(guest: GuestSpec, saved: Saved, limit_s: float) -> boot.RawBoot:
    """Run a guest from its snapshot; its jobs are in fw_cfg, or come as an order."""
    with restored(guest, saved, limit_s) as running:
        ended = boot.wait(running, guest, limit_s)
    return boot.collect(guest, tuple(qemu.argv(guest)), ended)
