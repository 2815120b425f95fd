# SPDX-License-Identifier: GPL-2.0-or-later
"""What a machine's sysfs says of frequency and threads, on trees as its drivers make them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.experiment import templates
from kdelta.experiment.templates import Asked
from kdelta.machine import hardware
from kdelta.machine.kept import Here
from unit.store.store_builders import kernel


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    return tmp_path


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / "sys/devices/system/cpu" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_machine_that_says_nothing_has_no_state(root: Path) -> None:
    put(root, smt__control="notsupported\n", isolated="\n")
    assert hardware.state(Here(root)) == {}
    put(root, isolated="(null)\n")  # before Linux 5.0 with no such CPU
    assert hardware.state(Here(root)) == {}


def test_all_that_a_driver_says_is_told(root: Path) -> None:
    put(root, cpufreq__policy0__scaling_governor="performance\n", cpufreq__policy4__scaling_governor="powersave\n")
    put(root, intel_pstate__no_turbo="1\n", smt__control="off\n", isolated="2-3\n")
    told = {"governor": "performance+powersave", "turbo": "off", "smt": "off", "isolated": "2-3"}
    assert hardware.state(Here(root)) == told


@pytest.mark.parametrize(("boost", "turbo"), [("1\n", "on"), ("0\n", "off")])
def test_turbo_of_a_driver_other_than_intel_pstate(root: Path, boost: str, turbo: str) -> None:
    put(root, cpufreq__boost=boost)
    assert hardware.state(Here(root)) == {"turbo": turbo}
    put(root, intel_pstate__no_turbo="0\n")
    assert hardware.state(Here(root))["turbo"] == "on"


@pytest.mark.parametrize("native", [True, False])
def test_it_is_stored_with_what_is_measured_on_the_running_kernel_alone(
    monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    monkeypatch.setattr(hardware, "state", lambda _: {"governor": "powersave"})
    template = templates.run(Asked(cases=()), (kernel("6.12"),), "timed", 1)
    placed = replace(template, machine=replace(template.machine, native=native))
    made = templates.created(placed, 1, lambda: datetime(2026, 11, 22, tzinfo=UTC))
    assert ("governor" in made.host) == native
