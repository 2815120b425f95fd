# SPDX-License-Identifier: GPL-2.0-or-later
"""What --pressure takes, what is packed, and how it reaches a guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.guest import image, pressure
from kdelta.guest.jobs import case_jobs
from kdelta.model import Case, Effort

LDD = """\
\tlinux-vdso.so.1 (0x00007fecb4493000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fecb3260000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fecb4495000)
"""


@pytest.mark.parametrize(("text", "canonical"), [("2x60%", "2x60%"), ("2x60", "2x60%"), (" 4x50% ", "4x50%")])
def test_workers_and_percent_are_taken(text: str, canonical: str) -> None:
    assert pressure.parse(text) == canonical


@pytest.mark.parametrize("text", ["", "2", "60%", "0x60%", "2x0%", "2x96%", "65x10%", "2x60%x", "2x60% -c", "2×60%"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match="2x60%"):
        pressure.parse(text)


def test_libraries_go_where_the_guest_looks_for_them() -> None:
    assert pressure.libraries(LDD) == {
        "pressure/lib/libm.so.6": Path("/lib/x86_64-linux-gnu/libm.so.6"),
        "lib64/ld-linux-x86-64.so.2": Path("/lib64/ld-linux-x86-64.so.2"),
    }


def test_a_host_without_stress_ng_is_told_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(HostError, match="apt-get install stress-ng"):
        pressure.programs(["x86_64"])


def test_a_foreign_guest_cannot_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(HostError, match="arm64"):
        pressure.programs(["x86_64", "arm64"])


def test_pressure_is_part_of_the_case_and_of_its_job() -> None:
    case = Case(workload="pipe", label="pipe", pressure="2x60%")
    assert case.name == "pipe (pressure 2x60%)"
    text = case_jobs({0: case}, mode="timed", efforts={0: Effort()}, exact_ops={0: 1}).text()
    assert " pressure=2x60%" in text


def test_a_leak_check_is_lives_of_operations() -> None:
    case = Case(workload="pipe", label="pipe")
    text = case_jobs({0: case}, mode="timed", efforts={0: Effort(batches=3, batch_ops=200)}, exact_ops={0: 16}).text()
    assert "batches=3 ops=200" in text
    assert "windows=" not in text


def test_programs_may_be_executed_in_the_guest(tmp_path: Path) -> None:
    for name in ("init", "tool"):
        (tmp_path / name).write_bytes(name.encode())
    packed = image.payload(tmp_path / "init", {}, "jobs", {"pressure/tool": tmp_path / "tool"})
    at = packed.index(b"pressure/tool\0")
    assert packed[at - 110 + 14 : at - 110 + 22] == b"000081ed"  # a file, 0755
