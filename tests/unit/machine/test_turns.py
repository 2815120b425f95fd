# SPDX-License-Identifier: GPL-2.0-or-later
"""Short turns, set in the HPET of a real QEMU that runs no guest."""

from __future__ import annotations

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
    guests = turns.AFTER_MS * 100_000  # in ticks of 10 ns: when a guest whose clock is right thinks that they are
    assert first >= guests * 0.9
    assert first <= guests * 0.99, "short in time for a guest whose clock is wrong by a hundredth"
    assert upper == 0, "the reset value is ones, which is in the past"


def test_what_qemu_refuses_is_said(qtest: Path) -> None:
    link = turns.Link(qtest)
    with pytest.raises(HostError, match="QEMU refused 'nonsense'"):
        link.ask("nonsense")
    link.close()


def test_qemu_that_exports_nothing_to_ask_is_told_of(tmp_path: Path) -> None:
    qemu = shutil.which("qemu-system-x86_64")
    assert qemu is not None
    assert not turns.unchecked(Path(qemu))
    assert turns.unchecked(Path(sys.executable).resolve())
    script = tmp_path / "qemu"
    script.write_text("#!/bin/sh\nexec qemu\n")
    assert not turns.unchecked(script)
