# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine that is no guest of kdelta: kexec and GRUB over labgrid, and what becomes of it when things go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boot.conftest import Program
from boot.lab_machine import Box, image, lacking

pytestmark = pytest.mark.full
OLD, NEW = "debian:6.1/cloud", "debian:6.12/cloud"
PANICS = f'panics={NEW},cmdline="rdinit=/gone"'
SILENT = f'silent={NEW},cmdline="rdinit=/gone panic=0 8250.nr_uarts=0"'  # no console, no records, no reset


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


def test_two_kernels_and_a_machine_whose_plug_is_pulled(
    box: Box, lab: str, kdelta: Program, tmp_path: Path, cache: Path
) -> None:
    environment = {**os.environ, "KDELTA_STATE": str(tmp_path / "state"), "KDELTA_CACHE": str(cache)}
    program = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
    words = [*program, "compare", OLD, NEW, "--on", lab, "--blocks", "1", "--json"]
    known = box.console.stat().st_size
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as running:
        while b"\nkd1 0 " not in box.console.read_bytes()[known:]:
            assert running.poll() is None
            time.sleep(0.2)
        box.off()
        first = json.loads(running.communicate(timeout=3000)[0])
    assert [line for line in first["experiment"]["boots_faulty"] if "lost" in line]
    done = json.loads(kdelta("resume", "last", "--json", "-q", timeout=3000).stdout)
    primary = [row for row in done["results"] if row["primary"]]
    assert len(primary) == 5
    assert {row["state"] for row in primary} == {"ok"}
    assert all(row["baseline"] and row["patched"] for row in primary)
    assert done["host"]["machine"] == "box"


def test_panics_and_silence_are_named_and_the_machine_comes_back(lab: str, kdelta: Program) -> None:
    words = ("compare", OLD, PANICS, SILENT, "--on", lab, "--blocks", "1", "--case", "getppid", "--limit", "10s")
    found = json.loads(kdelta(*words, "--json", "-q", timeout=3000, check=None).stdout)
    states = {row["patched_kernel"]: (row["state"], row["why"]) for row in found["results"] if row["primary"]}
    assert states["panics"][0] == "panicked"
    assert "Kernel panic - not syncing" in states["panics"][1]
    assert states["silent"][0] == "hung"
    assert not any("set aside" in line or "did not come back" in line for line in found["experiment"]["boots_faulty"])


def test_an_entry_of_grub_for_one_boot(box: Box, kdelta: Program, tmp_path: Path) -> None:
    box.described(tmp_path / "lab.toml", "grub")
    words = ("run", OLD, "--on", f"{tmp_path / 'lab.toml'}:box", "--boots", "1", "--case", "getppid", "--json", "-q")
    found = json.loads(kdelta(*words, timeout=3000).stdout)
    assert {row["state"] for row in found["results"]} == {"ok"}
    assert "next_entry=kdelta" not in box.ssh("grub-editenv list", limit_s=300)
