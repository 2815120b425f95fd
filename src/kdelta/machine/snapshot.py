# SPDX-License-Identifier: GPL-2.0-or-later
"""Booted, settled guests kept on disk and brought back to life, so that one boot serves many exact runs.

The guest has itself paused while it is idle (guest/init_snapshot.c), its state is migrated to a file, and later runs
start from ``-incoming``. The file's name is a digest of everything that made it: image, command line, payload, QEMU and
its arguments. A snapshot made by anything else has another name; a damaged one fails its checksum and is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from kdelta import digests
from kdelta.errors import HostError
from kdelta.machine import boot, process, qemu
from kdelta.machine.options import GuestSpec
from kdelta.machine.qmp import Monitor

_PAUSED = frozenset({"STOP"})
_ENDED = frozenset({"SHUTDOWN"})
_TRAILER = b"KDSNAP01"


def key(guest: GuestSpec, payload: bytes) -> str:
    """Digest of all that a snapshot depends on; paths are left out, contents are in, as they are on disk now.

    Raises:
        HostError: the image cannot be read.
    """
    image = qemu.booted(guest)
    try:
        content = digests.of_file(Path(image))
    except OSError as error:
        raise HostError(f"cannot read the image {image}: {error.strerror}") from None
    words = [content if word == image else word.replace(str(guest.folder), "FOLDER") for word in qemu.argv(guest)]
    digest = hashlib.sha256()
    status = guest.qemu.stat()
    for part in (*words, f"{guest.qemu_version} {status.st_size} {status.st_mtime_ns}"):
        digest.update(part.encode() + b"\0")
    digest.update(payload)
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of one snapshot, so that two runs do not both make it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _checksum(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def valid(path: Path) -> bool:
    """Whether ``path`` is a whole snapshot: its .sum file holds its checksum."""
    try:
        return path.with_suffix(".sum").read_bytes() == _TRAILER + _checksum(path)
    except FileNotFoundError:
        return False


def _save(guest: GuestSpec, target: Path, limit_s: float) -> bool:
    """Boot until the guest pauses, then write its state; False when it ended instead of pausing."""
    argv = tuple(qemu.argv(guest))
    deadline = time.monotonic() + limit_s
    with process.started(argv, guest.path("qemu.log")) as running:
        try:
            with Monitor(guest.path("qmp.sock"), deadline) as monitor:
                if monitor.wait_event(_PAUSED | _ENDED) in _ENDED:
                    return False
                _migrate(monitor, target)
                monitor.command("quit")
        except HostError:
            if running.poll() is not None or time.monotonic() >= deadline:
                return False  # the guest is gone, or hangs: a boot without a snapshot says how
            raise
    return True


def _migrate(monitor: Monitor, target: Path) -> None:
    monitor.command("migrate-set-parameters", {"max-bandwidth": 1 << 40})
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        monitor.command("getfd", {"fdname": "state"}, fd=fd)
    finally:
        os.close(fd)
    monitor.command("migrate", {"uri": "fd:state"})
    while (state := monitor.command("query-migrate").get("status")) not in ("completed", "failed"):
        time.sleep(0.01)
    if state == "failed":
        raise HostError(f"QEMU could not write the snapshot {target}: is the disk full?")


def ensure(guest: GuestSpec, payload: bytes, folder: Path, limit_s: float) -> Path | None:
    """The snapshot of ``guest``, made now if there is none; None when this guest cannot pause itself.

    Raises:
        HostError: QEMU refused to run or to save, or the image changed meanwhile.
    """
    made_of = key(guest, payload)
    path = folder / f"{made_of[:40]}.state"
    with _locked(path):
        if valid(path):
            os.utime(path)
            return path
        boot.write_file(guest.path("initramfs"), payload)
        partial = path.with_suffix(".part")
        try:
            if not _save(guest, partial, limit_s):
                return None
            if key(guest, payload) != made_of:
                raise HostError(f"{qemu.booted(guest)} changed while it was booted: nothing of that boot is kept")
            path.with_suffix(".sum").write_bytes(_TRAILER + _checksum(partial))
            partial.rename(path)
        except OSError as error:
            raise HostError(f"cannot keep the snapshot {path}: {error.strerror}") from None
        finally:
            partial.unlink(missing_ok=True)
    return path


def restore(guest: GuestSpec, limit_s: float) -> boot.RawBoot:
    """Run a guest from ``guest.incoming_fd``; its jobs are in fw_cfg."""
    argv = tuple(qemu.argv(guest))
    deadline = time.monotonic() + limit_s
    fds = () if guest.incoming_fd is None else (guest.incoming_fd,)
    with process.started(argv, guest.path("qemu.log"), pass_fds=fds) as running:
        with Monitor(guest.path("qmp.sock"), deadline) as monitor:
            while monitor.command("query-status")["status"] == "inmigrate":
                time.sleep(0.005)
            monitor.command("cont")
        ended = boot.wait(running, guest, limit_s)
    return boot.collect(guest, argv, ended)
