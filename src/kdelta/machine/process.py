# SPDX-License-Identifier: GPL-2.0-or-later
"""The one place where guests are started and ended.

A guest dies with kdelta (PR_SET_PDEATHSIG through setpriv(1)), is not reached by the terminal's Ctrl-C, and cannot fill
the disk with console output.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from kdelta.errors import HostError

OUTPUT_LIMIT = 64 << 20
COUNTS_LIMIT = 8 << 30  # the plugin's file, about 1 MiB for each interval that the guest marks
_POLL_S = 0.02


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
        raise HostError(f"{name} is not installed: apt-get install {package}")
    return Path(found)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def started(
    argv: Sequence[str], log: Path, pass_fds: Sequence[int] = (), cpu: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a guest; however the block is left, its process is gone afterwards."""
    setpriv = find_program("setpriv", "util-linux")
    words = [str(setpriv), "--pdeathsig", "KILL", "--", *argv]
    if cpu is not None:
        words = [str(find_program("taskset", "util-linux")), "-c", str(cpu), *words]
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
    except OSError as error:
        raise HostError(f"cannot start {argv[0]}: {error}") from None
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def wait(
    process: subprocess.Popen[bytes],
    *,
    stream: Path,
    console: Path,
    counts: Path,
    limit_s: float,
    tick: Callable[[float], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Ended:
    """Wait for the guest's end or its limit, noting when its first record and first sample arrived."""
    start = clock()
    first_record: float | None = None
    first_sample: float | None = None
    timed_out = flooded = False
    while process.poll() is None:
        elapsed = clock() - start
        if first_sample is None and _size(stream):
            first_record = first_record if first_record is not None else elapsed
            head = stream.read_bytes()[:65536]
            if b'"t":"win"' in head or b'"t":"rep"' in head:
                first_sample = elapsed
        if elapsed > limit_s:
            timed_out = True
            break
        if _size(stream) + _size(console) > OUTPUT_LIMIT or _size(counts) > COUNTS_LIMIT:
            flooded = True
            break
        if tick is not None:
            tick(elapsed)
        time.sleep(_POLL_S)
    return Ended(
        status=process.poll(),
        timed_out=timed_out,
        flooded=flooded,
        elapsed_s=clock() - start,
        first_record_s=first_record,
        first_sample_s=first_sample,
    )
