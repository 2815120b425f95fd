# SPDX-License-Identifier: GPL-2.0-or-later
"""Recreated snapshots, under load: the counts are the same to the byte."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta import digests
from kdelta.report import json_

CASES = ("pidfd_open", "pipe", "thread_spawn")
ONE_KERNEL = ("a=debian:6.12/cloud", "b=debian:6.12/cloud", "--case", "pidfd_open", "--seeds", "1")  # one snapshot


@pytest.fixture
def busy() -> Iterator[None]:
    """Another program beside it."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(1)]
    yield
    for burner in burners:
        burner.kill()
        burner.wait()


PROGRAM = "from kdelta.cli.main import main; main()"

# A restored guest's monitor is asked and asked again until the guest has ended.
ASKED = f"""
import threading
from kdelta.errors import HostError
from kdelta.machine import qmp

def ask(monitor):
    try:
        while True:
            monitor.command("query-status")
    except (HostError, OSError):
        monitor._socket.close()

qmp.Monitor.__exit__ = lambda monitor, *_: threading.Thread(target=ask, args=(monitor,), daemon=True).start()
{PROGRAM}
"""


def _run(program: str, state: Path, cache: Path, *words: str) -> bytes:
    """The result part of a comparison."""
    environment = {**os.environ, "KDELTA_STATE": str(state), "KDELTA_CACHE": str(cache)}
    argv = [sys.executable, "-c", program, "compare", *words, "--json", "-q"]
    done = subprocess.run(argv, capture_output=True, timeout=600, env=environment, check=True)
    result = json_.result_part(done.stdout)
    assert json.loads(result)["results"]
    return result


def _without_snapshots(cache: Path, folder: Path) -> Path:
    folder.mkdir()
    for part in cache.iterdir():
        if part.name != "snapshots":
            (folder / part.name).symlink_to(part)
    return folder


def _measured(folder: Path, cache: Path, *words: str) -> bytes:
    """As ``_run``, with snapshots that are made now."""
    return _run(PROGRAM, folder / "state", _without_snapshots(cache, folder), *words)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--case", "pipe", "--seeds", "4"], id="one CPU", marks=pytest.mark.full),
        pytest.param(
            ["--smp", "4", "--case", "thread_spawn:mode=threads", "--seeds", "3"],
            id="several CPUs",
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_main_loop_that_never_sleeps_counts_the_same(tmp_path: Path, cache: Path, words: list[str]) -> None:
    """It lets virtual time pass where it finds all CPUs halted; two of five such guests were others (plugin/idle.c)."""
    words = ["debian:6.12/cloud", "debian:7.0/cloud", *words]
    asked = {_run(ASKED, tmp_path / "state", cache, *words) for _ in range(2)}
    assert asked == {_run(PROGRAM, tmp_path / "state", cache, *words)}


# Somebody removes its files as the first guest is started from it.
REMOVED = f"""
import contextlib, itertools, os, pathlib
from kdelta.machine import snapshot

started, times = snapshot.process.started, itertools.count()

@contextlib.contextmanager
def emptied(argv, *rest, **more):
    if "-incoming" in argv and not next(times):
        files = [*pathlib.Path(os.environ["KDELTA_CACHE"], "snapshots").glob("*.[rs]*")]
        pathlib.Path(os.environ["KDELTA_STATE"], "removed").write_text(str(len(files)))
        for path in files:
            path.unlink()
    with started(argv, *rest, **more) as running:
        yield running

snapshot.process.started = emptied
{PROGRAM}
"""


def test_a_snapshot_that_somebody_removes_as_guests_start_from_it_gives_the_same_counts(
    tmp_path: Path, cache: Path
) -> None:
    """QEMU made a memory of zeros, or looked for it for ever: such a guest was waited for until its limit."""
    own = _without_snapshots(cache, tmp_path / "cache")
    removed = _run(REMOVED, tmp_path / "state", own, *ONE_KERNEL)
    assert (tmp_path / "state" / "removed").read_text() == "3"  # state, ram, sum
    assert removed == _run(PROGRAM, tmp_path / "state", own, *ONE_KERNEL)


def _booting(parent: int) -> list[int]:
    """The QEMUs of a process that boot guests for snapshots."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if b"counted=off" in words and f"PPid:\t{parent}\n" in (entry / "status").read_text():
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("cpus", ["1", pytest.param("2", marks=pytest.mark.full)])
@pytest.mark.parametrize("by", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_qemu_that_is_killed_as_it_boots_for_a_snapshot_is_started_again(
    tmp_path: Path, cache: Path, cpus: str, by: signal.Signals
) -> None:
    """It ended the experiment; or its seed was counted from a cold boot, which counts up to 0.6 % otherwise."""
    own = _without_snapshots(cache, tmp_path / "cache")
    environment = {**os.environ, "KDELTA_STATE": str(tmp_path / "state"), "KDELTA_CACHE": str(own)}
    argv = [sys.executable, "-c", PROGRAM, "compare", *ONE_KERNEL, "--smp", cpus]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        while not (at := _booting(running.pid)) and running.poll() is None:
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(at[0], by)
        out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    assert "measured again" in err and "2 of 2 boots" in out, err + out


# While a guest boots for its snapshot, too.
ASKED_AT_BOOT = f"""
from kdelta.machine import qmp

def wait_event(monitor, names):
    while not names.intersection(monitor.events):
        monitor.command("query-status")
    return next(event for event in monitor.events if event in names)

qmp.Monitor.wait_event = wait_event
{PROGRAM}
"""


@pytest.mark.full
def test_a_snapshot_made_with_a_main_loop_that_never_sleeps_is_the_same_guest(tmp_path: Path, cache: Path) -> None:
    """Without plugin/idle.c the memory of three of twelve was another.

    The devices' state may differ where a timer of the local APIC is due at the very instant at which QEMU stops: fired
    or about to, which no guest can tell apart. So memory is compared to the byte, and what is counted from it.
    """
    words = ["debian:6.12/cloud", "debian:7.0/cloud", "--seeds", "2", "--case", "pidfd_open", "--case", "pipe"]
    seen = set()
    for turn in range(6):
        folder = tmp_path / str(turn)
        folder.mkdir()
        own = _without_snapshots(cache, folder / "cache")
        counted = _run(ASKED_AT_BOOT if turn else PROGRAM, folder / "state", own, *words)
        made = sorted((own / "snapshots").glob("*.ram"))
        assert len(made) == 2
        seen.add((counted, *((path.name, digests.of_file(path)) for path in made)))
    assert len(seen) == 1


@pytest.mark.full
def test_a_snapshot_made_anew_gives_the_same_bytes(tmp_path: Path, cache: Path, busy: None) -> None:
    words = ["debian:6.12/cloud", "debian:7.0/cloud", "--seeds", "2"]
    words += [word for case in CASES for word in ("--case", case)]
    assert _measured(tmp_path / "one", cache, *words) == _measured(tmp_path / "two", cache, *words)


@pytest.mark.full
@pytest.mark.parametrize("qemu", ["", "alternative"])
def test_snapshots_made_again_and_again_agree_on_several_kernels(
    tmp_path: Path, cache: Path, busy: None, qemu: str
) -> None:
    if qemu and "KDELTA_QEMU_ALT" not in os.environ:
        pytest.skip("KDELTA_QEMU_ALT names no QEMU")
    words = ["debian:6.1", "debian:6.12", "debian:7.0", "debian:7.3", "--seeds", "2"]
    words += ["--qemu", os.environ["KDELTA_QEMU_ALT"]] if qemu else []
    assert len({_measured(tmp_path / str(turn), cache, *words) for turn in range(4)}) == 1


def test_a_case_counts_the_same_whatever_was_measured_before_it(answer) -> None:  # type: ignore[no-untyped-def]
    def rows(*cases: str) -> list[dict]:  # type: ignore[type-arg]
        words = [word for case in cases for word in ("--case", case)]
        got = answer("compare", "debian:6.12/cloud", "debian:7.0/cloud", "--seeds", "2", *words)
        return [row for row in got["results"] if row["case"] == "pipe"]

    alone = rows("pipe")
    assert len(alone) > 1
    assert alone == rows("thread_spawn", "path_lookup:tasks=2", "pipe")


@pytest.mark.full
def test_a_qemu_whose_clock_is_not_known_boots_at_one_ns(tmp_path: Path, cache: Path) -> None:
    unknown = f'from kdelta.machine import icount; icount._HEAD = b"another"; {PROGRAM}'
    own = _without_snapshots(cache, tmp_path / "cache")
    words = ("debian:6.12/cloud", "debian:7.0/cloud", "--case", "pidfd_open")
    found = [
        json.loads(_run(*run, *words))["results"]
        for run in ((unknown, tmp_path / "1", own), (PROGRAM, tmp_path / "2", cache))
    ]
    assert {row["state"] for rows in found for row in rows} == {"ok"}
    assert found[0][0]["verdict"] == found[1][0]["verdict"]
