# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's file is read whole, however many intervals it has, and a guest cannot grow it without end."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from kdelta.attribution import profiles
from kdelta.machine import boot, plugin, process
from unit.attribution.counts import HEADER, trailer


def big_interval(records: int) -> bytes:
    """The body of an interval with ascending addresses, each executed once."""
    table = np.zeros((records, 8), dtype="<u8")
    table[:, 0] = np.arange(records)
    table[:, 1] = 1
    return table.tobytes()


def test_more_intervals_than_a_guest_may_write_of_its_own_are_all_read(tmp_path: Path) -> None:
    body = big_interval(200_000)
    number = process.OUTPUT_LIMIT // len(body) + 2
    with (tmp_path / "counts").open("wb") as file:
        file.write(HEADER)
        for ident in range(number):
            file.write(struct.pack("<4s3I", b"KDIV", ident, 200_000, zlib.crc32(body)))
            file.write(body)
        file.write(trailer(number))
    assert (tmp_path / "counts").stat().st_size > process.OUTPUT_LIMIT
    data = boot.read_counts(tmp_path / "counts")
    (tmp_path / "counts").unlink()
    found = profiles.read(data)
    assert len(found) == number and all(int(interval.counts.sum()) == 200_000 for interval in found)


def test_no_file_and_an_empty_one_are_no_counts(tmp_path: Path) -> None:
    assert boot.read_counts(tmp_path / "none") == b""
    (tmp_path / "empty").touch()
    assert boot.read_counts(tmp_path / "empty") == b""


def test_a_guest_that_has_the_plugin_write_without_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "COUNTS_LIMIT", 1 << 20)
    (tmp_path / "counts").write_bytes(bytes(2 << 20))
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as running:
        stream, console, counts = (tmp_path / name for name in ("stream", "console", "counts"))
        ended = process.wait(running, stream=stream, console=console, counts=counts, limit_s=30.0)
        running.kill()
    assert ended.flooded and not ended.timed_out


def test_a_guest_that_counts_is_not_asked_for_its_first_sample(tmp_path: Path) -> None:
    """Looking after it fifty times a second took more of the processor than anything else of ours did."""
    stream, console, counts = (tmp_path / name for name in ("stream", "console", "counts"))
    stream.write_bytes(b'kd1 0 00000000 {"t":"rep"}\n')
    found = []
    for sampled in (True, False):
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as running:
            ended = process.wait(running, stream=stream, console=console, counts=counts, limit_s=0.05, sampled=sampled)
            running.kill()
        found.append((ended.timed_out, ended.first_sample_s is None))
    assert found == [(True, False), (True, True)]


def test_a_qemu_that_refuses_the_plugin_is_told_with_the_remedy() -> None:
    log = (
        "qemu: Could not load plugin x.so: plugin requires API version 7, but this QEMU supports only up to version 6\n"
    )
    assert boot._qemu_refused(1, log, b"", b"") == f"{log.strip()}; {plugin.COUNTS_IN}"
    assert boot._qemu_refused(1, "qemu: no memory\n", b"", b"") == "qemu: no memory"
