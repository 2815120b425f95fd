# SPDX-License-Identifier: GPL-2.0-or-later
"""Short turns, set in the HPET of a real QEMU that runs no guest."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.machine import turns

HPET = 0xFED00000


@pytest.fixture
def qtest(tmp_path: Path) -> Iterator[Path]:
    """The qtest socket of a stopped machine."""
    qemu = shutil.which("qemu-system-x86_64")
    if qemu is None:
        pytest.skip("no qemu-system-x86_64")
    path = tmp_path / "qtest.sock"
    argv = [qemu, "-S", "-M", "pc", "-nodefaults", "-display", "none", "-qtest-log", "none"]
    process = subprocess.Popen([*argv, "-qtest", f"unix:{path},server=on,wait=off"], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield path
    finally:
        process.kill()
        process.wait(30)


def test_a_turn_is_a_share_of_the_timers_period() -> None:
    assert turns.period_ticks(200, 4) == 80
    assert turns.period_ticks(200, 64) == 1280
    assert turns.period_ticks(1, 1) == 1, "no period is none"


def test_timer_2_is_periodic_without_an_interrupt_and_the_clock_runs(qtest: Path) -> None:
    turns.shorten(qtest, 200, 8)
    link = turns.Link(qtest)
    config, timer = link.ask(f"readl {HPET + 0x10:#x}"), link.ask(f"readl {HPET + 0x140:#x}")
    link.close()
    assert config & 1
    assert timer & 8 and not timer & 4


def test_turns_are_long_until_the_guest_has_warmed_up(qtest: Path) -> None:
    turns.shorten(qtest, 200, 8)
    link = turns.Link(qtest)
    now, first, upper = (link.ask(f"readl {HPET + at:#x}") for at in (0xF0, 0x148, 0x14C))
    link.close()
    assert now < 100, "the clock of a stopped machine"
    assert first >= turns.AFTER_MS * 100_000, "in ticks of 10 ns"
    guests = (turns.AFTER_MS + 50) * 100_000  # when a guest whose clock is right thinks that they are
    assert first <= guests * 0.99, "short in time for a guest whose clock is wrong by a hundredth"
    assert upper == 0, "the reset value is ones, which is in the past"


def test_what_qemu_refuses_is_said(qtest: Path) -> None:
    link = turns.Link(qtest)
    with pytest.raises(HostError, match="QEMU refused 'nonsense'"):
        link.ask("nonsense")
    link.close()


def test_a_guest_keeps_to_one_core_its_main_loop_behind_its_cpus() -> None:
    two_threads = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); print(flush=True)"
    cores = os.sched_getaffinity(0)
    guests = [
        subprocess.Popen([sys.executable, "-c", two_threads], stdout=subprocess.PIPE) for _ in range(min(2, len(cores)))
    ]
    try:
        for guest in guests:
            assert guest.stdout is not None and guest.stdout.readline()
        places = []
        with contextlib.ExitStack() as held:
            for guest in guests:
                held.enter_context(turns.on_one_core(guest.pid))
                threads = [int(name) for name in os.listdir(f"/proc/{guest.pid}/task")]
                (place,) = {tuple(os.sched_getaffinity(thread)) for thread in threads}
                assert len(threads) == 2 and len(place) == 1
                assert [os.sched_getscheduler(thread) for thread in sorted(threads)] == [os.SCHED_BATCH, os.SCHED_OTHER]
                places.append(place)
        assert len(set(places)) == len(guests), "one core each while there are enough"
        with turns.on_one_core(guests[0].pid):
            assert tuple(os.sched_getaffinity(guests[0].pid)) == places[0], "the others are gone"
    finally:
        for guest in guests:
            guest.kill()
            guest.communicate()
    with turns.on_one_core(guests[0].pid):  # one that has ended: nothing to do, and nothing to fail on
        pass
