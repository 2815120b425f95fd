# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine that is no guest of kdelta: kexec and GRUB over labgrid, and what becomes of it when things go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boot.conftest import Program
from boot.lab_machine import Box, image, lacking
from kdelta.lab import hearing

pytestmark = pytest.mark.full
OLD, NEW = "debian:6.1/cloud", "debian:6.12/cloud"
PANICS = f'panics={NEW},cmdline="rdinit=/gone"'
SILENT = f'silent={NEW},cmdline="rdinit=/gone panic=0 8250.nr_uarts=0"'  # no console, no records, no reset
ONE_CASE = ("--blocks", "1", "--case", "getppid", "--json")


@pytest.fixture(scope="module")
def box(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    pytest.importorskip("labgrid")
    if why := lacking():
        pytest.skip(why)
    made, folder = image(cache), tmp_path_factory.mktemp("box")
    subprocess.run(["cp", "--sparse=always", made / "disk", folder / "disk"], check=True)
    machine = Box(made, folder, folder / "disk")
    machine.on()
    machine.ssh("true", limit_s=900)
    yield machine
    machine.off()


@pytest.fixture
def lab(box: Box, tmp_path: Path) -> str:
    box.described(tmp_path / "lab.toml", "kexec")
    return f"{tmp_path / 'lab.toml'}:box"


@pytest.fixture
def started(tmp_path: Path, cache: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts kdelta on the store that ``kdelta`` has, and does not wait."""

    def start(*words: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "KDELTA_STATE": str(tmp_path / "state"), "KDELTA_CACHE": str(cache)}
        program = [sys.executable, "-c", "from kdelta.cli.main import main; main()", *words]
        return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def _primary(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in answer["results"] if row["primary"]]


def _spoken(box: Box, running: subprocess.Popen[str]) -> None:
    """Until a kernel under test has said its first record."""
    known = box.console.stat().st_size
    while not hearing.spoken(box.console.read_bytes()[known:]):
        assert running.poll() is None, running.communicate()[1] + repr(box.console.read_bytes()[known:][-2000:])
        time.sleep(0.2)


def test_five_cases_of_two_kernels(lab: str, kdelta: Program) -> None:
    done = json.loads(kdelta("compare", OLD, NEW, "--on", lab, "--blocks", "1", "--json", "-q", timeout=1500).stdout)
    assert len(_primary(done)) == 5
    assert {row["state"] for row in _primary(done)} == {"ok"}
    assert all(row["baseline"] and row["patched"] for row in _primary(done))
    assert done["host"]["machine"] == "box"


def test_a_plug_that_is_pulled_and_resume(
    box: Box, lab: str, kdelta: Program, started: Callable[..., subprocess.Popen[str]]
) -> None:
    with started("run", OLD, "--on", lab, "--boots", "1", "--case", "getppid", "--json") as running:
        _spoken(box, running)
        box.off()
        halfway = json.loads(running.communicate(timeout=1500)[0])
    assert [line for line in halfway["experiment"]["boots_faulty"] if "lost" in line]
    done = json.loads(kdelta("resume", "last", "--json", "-q", timeout=1500).stdout)
    assert {row["state"] for row in done["results"]} == {"ok"}
    assert all(row["baseline"] for row in done["results"])


def test_a_run_that_is_killed_and_resume(
    box: Box, lab: str, kdelta: Program, started: Callable[..., subprocess.Popen[str]]
) -> None:
    with started("run", OLD, "--on", lab, "--boots", "1", "--case", "getppid") as running:
        _spoken(box, running)
        running.kill()  # the machine ends its boot alone
    done = json.loads(kdelta("resume", "last", "--json", "-q", timeout=1500).stdout)
    assert {row["state"] for row in done["results"]} == {"ok"}
    assert all(row["baseline"] for row in done["results"])


def test_a_panic_is_named_and_the_machine_comes_back(lab: str, kdelta: Program) -> None:
    found = json.loads(kdelta("compare", OLD, PANICS, "--on", lab, *ONE_CASE, "-q", timeout=1500, check=None).stdout)
    (row,) = _primary(found)
    assert row["state"] == "panicked"
    assert "Kernel panic - not syncing" in row["why"]
    assert _came_back(found)


def test_a_kernel_that_never_answers_is_named_and_the_machine_comes_back(
    box: Box, kdelta: Program, tmp_path: Path
) -> None:
    box.described(tmp_path / "lab.toml", "kexec", start_limit_s=120)
    words = ("run", SILENT, "--on", f"{tmp_path / 'lab.toml'}:box", "--boots", "1", "--case", "getppid", "--json", "-q")
    found = json.loads(kdelta(*words, timeout=1500, check=None).stdout)
    assert {row["state"] for row in found["results"]} == {"hung"}
    assert _came_back(found)


def test_a_kernel_that_never_answers_is_ended_by_a_watchdog(box: Box, kdelta: Program, tmp_path: Path) -> None:
    """No power switch is described: the machine's own hardware brings it back."""
    armed = box.watchdog(tmp_path)
    box.described(tmp_path / "lab.toml", "kexec", start_limit_s=60, watchdog=armed)
    words = ("run", SILENT, "--on", f"{tmp_path / 'lab.toml'}:box", "--boots", "1", "--case", "getppid", "--json", "-q")
    found = json.loads(kdelta(*words, "--limit", "30s", timeout=1500, check=None).stdout)
    assert {row["state"] for row in found["results"]} == {"hung"}
    assert _came_back(found)


def test_a_kernel_under_the_installed_system(box: Box, kdelta: Program, tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    box.described(path, "kexec", start_limit_s=600)
    path.write_text(
        path.read_text().replace("[box.res", "hardware = { smt = false }\n[box.res", 1)
    )  # it has no threads
    words = ("run", OLD, "--on", f"{path}:box", "--in-system", "--boots", "1", "--case", "getppid", "--json", "-q")
    found = json.loads(kdelta(*words, timeout=1500).stdout)
    assert {row["state"] for row in found["results"]} == {"ok"}, found["experiment"]["boots_faulty"]
    assert all(row["baseline"] for row in found["results"] if not row["metric"].startswith("pmu"))
    assert found["host"]["smt"] == "off (set)"
    assert "kdelta.boot" not in box.ssh("cat /proc/cmdline", limit_s=900)


def _came_back(answer: dict[str, Any]) -> bool:
    return not any("set aside" in line or "did not come back" in line for line in answer["experiment"]["boots_faulty"])


def test_two_kernels_by_an_entry_of_grub_for_one_boot(box: Box, kdelta: Program, tmp_path: Path) -> None:
    box.described(tmp_path / "lab.toml", "grub", start_limit_s=900)  # GRUB reads slowly on an emulated CPU
    words = ("compare", OLD, NEW, "--on", f"{tmp_path / 'lab.toml'}:box", *ONE_CASE, "-q")
    found = json.loads(kdelta(*words, timeout=1500).stdout)
    assert {row["state"] for row in _primary(found)} == {"ok"}
    assert all(row["baseline"] and row["patched"] for row in _primary(found))
    assert "next_entry=kdelta" not in box.ssh("grub-editenv list", limit_s=300)
