# SPDX-License-Identifier: GPL-2.0-or-later
"""A boot of a machine, from its first command until it is back: what becomes of it, and when its power is cycled.

The machine here is a script in virtual time, below what labgrid gives; tests/boot/test_machine.py has a real one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.lab import boot
from kdelta.lab.describe import Described, Options
from kdelta.model import Kernel
from unit.lab.test_hearing import _build, _hello, _line

_NONCE = "77"


class Box:
    """A machine: what its line says at which second after the start, and when its own system answers again."""

    def __init__(self, line: dict[float, bytes], back_s: float | None, power: bool = True) -> None:
        self.now, self.started_at = 0.0, float("inf")
        self.line, self.back_s, self.power, self.cycles = line, back_s, power, 0
        self.boot_id, self.files, self.commands = "old", dict[str, str](), list[str]()
        self.machine = Described(
            name="box", path=Path("/lab.toml"), options=Options(start_limit_s=200, return_limit_s=100)
        )
        self.deaf_s = 0.0
        self.arch = "x86_64"
        self.unheard, self.refused = "", False

    def __str__(self) -> str:
        return "machine box"

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def since_s(self) -> float:
        return self.now - self.started_at

    def connected(self, limit_s: float) -> bool:
        if self.since_s < 0:
            return True
        if self.back_s is None or self.since_s + limit_s < self.back_s:
            self.now += limit_s
            return False
        self.now = max(self.now, self.started_at + self.back_s)
        self.boot_id = "new"
        return True

    def disconnected(self) -> None:
        pass

    def run(self, script: str, *, root: bool = False, limit_s: float = 0) -> str:
        self.commands.append(script)
        if script.startswith("cat /proc/sys/kernel/random/boot_id"):
            return self.boot_id
        if script.startswith("uname"):
            return f"{self.arch}\n0"
        if "sha256sum" in script:
            return "whole" if any(name in script for name in self.files) else ""
        if root:
            self.started_at = self.now
        return ""

    def put(self, path: Path, there: str) -> None:
        self.files[hashlib.sha256(path.read_bytes()).hexdigest()] = there

    def listening(self) -> None:
        pass

    def heard(self, wait_s: float) -> bytes:
        self.now += wait_s
        due = [at for at in self.line if at <= self.since_s]
        return b"".join(self.line.pop(at) for at in sorted(due))

    def cycled(self) -> bool:
        if self.power:
            self.cycles += 1
            self.back_s = self.since_s + 30
        return self.power


def _whole(kernel: Kernel) -> bytes:
    cmdline = "console=ttyS0,115200 panic=10 quiet loglevel=4 cryptomgr.notests=1 random.trust_cpu=on kdelta.boot=77"
    return _line([_hello(cmdline=cmdline), _build(), {"t": "win", "j": 0, "i": 0, "ops": 1, "ns": 1}])


def _machine(box: Box, monkeypatch: pytest.MonkeyPatch) -> boot.Machine:
    @contextmanager
    def opened(*_: object) -> Iterator[Box]:
        yield box

    monkeypatch.setattr(boot, "opened", opened)
    return boot.Machine(box.machine, lambda: box.now, box.sleep, lambda: _NONCE)


def _order(kernel: Kernel, jobs: bytes = b"jobs") -> boot.Order:
    return boot.Order(kernel=kernel, mitigations_off=False, initramfs=b"base", jobs=jobs, limit_s=60)


def test_a_boot_that_ends_well(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _whole(kernel)
    box = Box({5: b"GRUB\n" + whole[:200], 20: whole[200:]}, back_s=50)
    machine = _machine(box, monkeypatch)
    raw = machine.boot(_order(kernel), tmp_path)
    assert (raw.state, raw.why, len(raw.records)) == ("ok", "", 4)
    assert (raw.console, box.cycles) == (b"GRUB\n", 0)
    assert raw.first_sample_s == pytest.approx(20, abs=1.5)
    sent = set(box.files)
    box.line, box.boot_id, box.started_at, box.back_s = {1: whole}, "old", float("inf"), 5
    assert machine.boot(_order(kernel, b"other"), tmp_path).state == "ok"
    assert len(set(box.files) - sent) == 1, "kernel and program were there already"


@pytest.mark.parametrize(
    ("line", "back_s", "state", "why", "cycles"),
    [
        ({5: b"Kernel panic - not syncing: Fatal exception\n"}, 40, "panicked", "Fatal exception", 0),
        ({5: b"Kernel panic - not syncing: Fatal exception\n"}, None, "panicked", "Fatal exception", 1),
        ({}, None, "hung", "within its time limit", 1),
        ({}, 35, "lost", "its own system again", 0),
    ],
)
def test_what_goes_wrong_has_its_name_and_the_machine_comes_back(
    line: dict[float, bytes],
    back_s: float | None,
    state: str,
    why: str,
    cycles: int,
    kernel: Kernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = Box(line, back_s)
    raw = _machine(box, monkeypatch).boot(_order(kernel), tmp_path)
    assert raw.state == state
    assert why in raw.why
    assert "set aside" not in raw.why and "did not come back" not in raw.why
    assert (box.cycles, box.boot_id) == (cycles, "new")


def test_a_machine_that_does_not_come_back_is_set_aside(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box({}, back_s=None, power=False)
    machine = _machine(box, monkeypatch)
    raw = machine.boot(_order(kernel), tmp_path)
    assert raw.state == "hung"
    assert "did not come back within 100 s, and its description has no power switch" in raw.why
    asked = len(box.commands)
    with pytest.raises(HostError, match=r"machine box did not come back .*: it is set aside"):
        machine.boot(_order(kernel), tmp_path)
    assert len(box.commands) == asked


def test_a_machine_without_a_switch_is_brought_back_by_its_watchdog(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is armed for longer than kdelta waits, so that what hangs is called so."""
    box = Box({}, back_s=200 + 60 + 60 + 90, power=False)  # limits of start and order, a margin, its own start
    box.machine = replace(box.machine, options=replace(box.machine.options, watchdog="arm $seconds"))
    raw = _machine(box, monkeypatch).boot(_order(kernel), tmp_path)
    assert (raw.state, box.boot_id) == ("hung", "new")
    assert "come back" not in raw.why
    (script,) = [script for script in box.commands if "arm $seconds" in script]
    assert script.index("--load") < script.index("seconds=320\narm $seconds") < script.rindex("kexec")


def test_another_architecture_is_told(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box({}, back_s=None)
    box.arch = "aarch64"
    with pytest.raises(HostError, match="machine box is aarch64, and kernel a is of x86_64"):
        _machine(box, monkeypatch).boot(_order(kernel), tmp_path)


def test_a_machine_is_of_one_experiment_at_a_time(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box({1: _whole(kernel)}, back_s=5)
    with boot.held(box.machine):
        with pytest.raises(HostError, match="machine box is in use by another kdelta"):
            _machine(box, monkeypatch).boot(_order(kernel), tmp_path)
        assert not box.commands
    mine = _machine(box, monkeypatch)
    mine.boot(_order(kernel), tmp_path)
    with pytest.raises(HostError, match="in use"):
        boot.held(box.machine)


def test_a_machine_that_is_on_its_way_back_is_waited_for(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box({1: _whole(kernel)}, back_s=90)
    box.started_at = 0.0  # by a kdelta that was interrupted
    box.arch = "aarch64"
    with pytest.raises(HostError, match="is aarch64"):  # it answered, and nothing was started
        _machine(box, monkeypatch).boot(_order(kernel), tmp_path)
    assert (box.cycles, box.boot_id) == (0, "new")


def test_a_machine_that_never_answers_is_said(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box({}, back_s=None, power=False)
    box.started_at = 0.0
    with pytest.raises(HostError, match="does not answer on ssh, and its description has no power switch"):
        _machine(box, monkeypatch).boot(_order(kernel), tmp_path)


def test_a_power_switch_that_does_not_obey_is_told_with_what_it_was_for(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box({}, back_s=None)
    box.started_at, box.unheard = 0.0, "No route to host"

    def cycled() -> bool:
        raise HostError("machine box: its power could not be cycled: it is unplugged")

    monkeypatch.setattr(box, "cycled", cycled)
    with pytest.raises(HostError, match=r"does not answer on ssh \(No route to host\); .* could not be cycled"):
        _machine(box, monkeypatch).boot(_order(kernel), tmp_path)


def test_a_machine_that_lets_us_not_in_is_not_switched_off(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may be at work there, and no reset would mend a wrong key."""
    box = Box({}, back_s=None)
    box.started_at = 0.0
    box.unheard, box.refused = "lab@192.0.2.7: Permission denied (publickey).", True
    with pytest.raises(HostError, match=r"machine box does not let us in \(lab@192.0.2.7: Permission denied") as told:
        _machine(box, monkeypatch).boot(_order(kernel), tmp_path)
    assert box.cycles == 0 and "\n" not in str(told.value)


def test_a_machine_that_comes_back_and_refuses_at_first_is_waited_for(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose users come from the network may: before it was started it let us in."""
    box = Box({1: _whole(kernel)}, back_s=20)
    answers, refusals = box.connected, iter(range(5))

    def connected(limit_s: float) -> bool:
        return answers(limit_s) if box.since_s < 0 or next(refusals, None) is None else False

    monkeypatch.setattr(box, "connected", connected)
    assert (_machine(box, monkeypatch).boot(_order(kernel), tmp_path).state, box.cycles) == ("ok", 0)


def test_a_slow_start_is_no_hang(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _whole(kernel)
    slow = Box({150: whole[:200], 205: whole[200:]}, back_s=260)  # 55 s after its first word, of 60
    assert _machine(slow, monkeypatch).boot(_order(kernel), tmp_path).state == "ok"


def test_a_program_that_goes_silent_is_hung(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _whole(kernel)
    silent = Box({10: whole[:200], 75: whole[200:]}, back_s=None)
    assert _machine(silent, monkeypatch).boot(_order(kernel), tmp_path).state == "hung"
    assert silent.cycles == 1
