# SPDX-License-Identifier: GPL-2.0-or-later
"""The one place where guests are started and ended.

A guest dies with kdelta (PR_SET_PDEATHSIG), is not reached by the terminal's Ctrl-C, and cannot fill the disk with
console output.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from kdelta import distributions
from kdelta.errors import HostError
from kdelta.machine.denied import without_rings

OUTPUT_LIMIT = 64 << 20
COUNTS_LIMIT = 8 << 30  # the plugin's file, about 1 MiB for each interval that the guest marks
_POLL_MS = 20  # while the first sample is waited for, whose time is told
_WATCH_MS = 250  # else: an end is seen at once, a flood early enough
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PRCTL: Callable[..., int] = ctypes.CDLL(None).prctl


class Running(Protocol):
    """A process that can be waited for, as subprocess.Popen is one."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Its status once it has ended."""


class Ended(Struct, frozen=True, kw_only=True):
    """How a guest's process ended: ``status`` None when it was killed at its limit."""

    status: int | None
    timed_out: bool
    flooded: bool
    elapsed_s: float
    first_record_s: float | None
    first_sample_s: float | None


def find_program(name: str, package: str) -> Path:
    """The absolute path of ``name``.

    Raises:
        HostError: it is not installed; names the Debian package.
    """
    found = shutil.which(name)
    if found is None:
        raise HostError(f"{name} is not installed: {distributions.install(package)}")
    return Path(found).absolute()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def dying_with(parent: int) -> Callable[[], None]:
    """What a child does first: ask to be killed when its parent ends (prctl(2)), and end where that was too late.

    It runs between fork and exec, beside other threads' locks: all it calls was looked up before, and takes none.
    """

    def ask(prctl: Callable[..., int] = _PRCTL, getppid: Callable[[], int] = os.getppid) -> None:
        if prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) or getppid() != parent:
            os._exit(1)

    return ask


def _prepared(parent: int) -> Callable[[], None]:
    """What a guest's process does first: die with its parent, and do without rings (denied.py)."""
    die = dying_with(parent)

    def prepare() -> None:
        die()
        without_rings(_PRCTL)

    return prepare


@contextlib.contextmanager
def started(
    argv: Sequence[str],
    log: Path,
    pass_fds: Sequence[int] = (),
    cpu: int | str | None = None,
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a guest, on one ``cpu`` or a list of them; however the block is left, its process is gone afterwards.

    ``folder`` is where it starts, and makes its sockets: their addresses are too short for whole paths (links.py).
    """
    words = [*argv]
    if cpu is not None:
        words = [str(find_program("taskset", "util-linux")), "-c", str(cpu), *argv]
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=tuple(pass_fds),
                cwd=folder,
                start_new_session=True,
                preexec_fn=_prepared(os.getpid()),
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise HostError(f"cannot start {argv[0]}: {error}") from None
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextlib.contextmanager
def _ending(process: Running) -> Iterator[select.poll]:
    """What a poll of returns as soon as ``process`` ends (pidfd_open(2)), and at its limit where it has already."""
    poller = select.poll()
    if process.poll() is not None:
        yield poller
        return
    fd = os.pidfd_open(process.pid)
    poller.register(fd, select.POLLIN)
    try:
        yield poller
    finally:
        os.close(fd)


def wait(
    process: Running,
    *,
    stream: Path,
    console: Path,
    counts: Path,
    limit_s: float,
    sampled: bool = True,
    given_up: Callable[[], bool] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Ended:
    """Wait for the guest's end or its limit, noting when its first record and first sample arrived.

    Args:
        sampled: whether it is asked for these two; a guest that counts has no use for them.
        given_up: asked now and then, whether its end comes before the limit.
    """
    start = clock()
    first_record: float | None = None
    first_sample: float | None = None
    timed_out = flooded = False
    with _ending(process) as ending:
        while process.poll() is None:
            elapsed = clock() - start
            if sampled and first_sample is None and _size(stream):
                first_record = first_record if first_record is not None else elapsed
                head = stream.read_bytes()[:65536]
                if b'"t":"win"' in head or b'"t":"rep"' in head:
                    first_sample = elapsed
            if elapsed > limit_s or (given_up is not None and given_up()):
                timed_out = True
                break
            if _size(stream) + _size(console) > OUTPUT_LIMIT or _size(counts) > COUNTS_LIMIT:
                flooded = True
                break
            left_ms = max(1, int(1000 * (limit_s - elapsed)) + 1)
            ending.poll(min(left_ms, _POLL_MS if sampled and first_sample is None else _WATCH_MS))
    return Ended(
        status=process.poll(),
        timed_out=timed_out,
        flooded=flooded,
        elapsed_s=clock() - start,
        first_record_s=first_record,
        first_sample_s=first_sample,
    )
