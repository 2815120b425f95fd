# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages by the names of the distribution that a machine runs, in doctor and in set-up, from one table."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta import distributions
from kdelta.cli import doctor
from kdelta.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
SET_UP = ROOT / "tools" / "system-packages.sh"


@pytest.mark.parametrize(
    ("os_release", "family"),
    [
        ({"ID": "debian"}, "debian"),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "debian"),
        ({"ID": "fedora"}, "fedora"),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "fedora"),
        ({"ID": "endeavouros", "ID_LIKE": "arch"}, "arch"),
        ({"ID": "nixos"}, ""),
        ({}, ""),
    ],
)
def test_a_distribution_is_known_by_its_family(os_release: dict[str, str], family: str) -> None:
    assert distributions.family_of(os_release) == family


def test_the_line_has_the_names_of_the_distribution() -> None:
    line = distributions.install
    assert line("gcc libc6-dev", "debian") == "apt-get install gcc libc6-dev"
    assert line("gcc libc6-dev", "fedora") == "dnf install gcc glibc-devel glibc-static"
    assert line("qemu-system-arm", "arch") == "pacman -S --needed qemu-system-aarch64"
    assert line("python3 python3-venv", "arch") == "pacman -S --needed python"
    assert line("libc6-dev-arm64-cross", "fedora").startswith("build libc6-dev-arm64-cross from source")
    assert line("gcc make", "") == "install what Debian calls gcc, make"


def test_every_package_that_set_up_and_doctor_name_is_in_the_table(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "from kdelta.cli.main import main; main()", "doctor", "--json"]
    env = {"PATH": "/nonexistent", "HOME": str(tmp_path)}
    said = subprocess.run(argv, env=env, capture_output=True, check=True).stdout
    named = {package for finding in json.loads(said)["findings"] for package in finding["packages"]}
    script = SET_UP.read_text(encoding="utf-8")
    for words in re.findall(r"^\s*(?:case.*)?(?:packages|optional|full)\+?=\(([^)]+)\)", script, re.MULTILINE):
        named |= set(words.split())
    assert len(named) > 30
    for package in named:
        rows = [line for line in _table() if line[0] == package]
        assert len(rows) == 1 and len(rows[0]) == len(distributions.FAMILIES), package


def _table() -> list[list[str]]:
    text = (ROOT / "src" / "kdelta" / "packages.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]


@pytest.mark.parametrize(
    ("os_release", "said"),
    [
        ("ID=fedora\n", r"sudo dnf install qemu-system-x86-core .*glibc-static"),
        ("ID=manjaro\nID_LIKE=arch\n", r"sudo pacman -S --needed qemu-system-x86 .*\bpython\b"),
        ("ID=nixos\n", r"Debian, Fedora and Arch: install the equivalents of: qemu-system-x86"),
    ],
)
def test_set_up_prints_the_line_to_run_elsewhere(tmp_path: Path, os_release: str, said: str) -> None:
    (tmp_path / "os-release").write_text(os_release)
    nothing = tmp_path / "bin"  # a machine with nothing of it: rpm and pacman know no package
    nothing.mkdir()
    for name in ("rpm", "pacman"):
        (nothing / name).write_text("#!/bin/sh\nexit 1\n")
        (nothing / name).chmod(0o755)
    env = {"PATH": f"{nothing}:/usr/bin:/bin", "OS_RELEASE": str(tmp_path / "os-release")}
    done = subprocess.run([SET_UP], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and re.search(said, done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


def test_doctor_prints_one_line_to_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (lambda: doctor._lacks("compiler", "none", "gcc libc6-dev"),) * 2)
    assert run(["doctor", "--fix"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.removeprefix("sudo ") == distributions.install("gcc libc6-dev")
    monkeypatch.setattr(doctor, "CHECKS", ())
    monkeypatch.setattr(doctor, "_suites", list)
    assert run(["doctor", "--fix"]) == 0
    shown = capsys.readouterr()
    assert not shown.out and "every package that kdelta uses is here" in shown.err


def test_doctor_names_what_few_need_beside_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (lambda: doctor._could("lab", "no adb", "fastboot adb"),))
    monkeypatch.setattr(doctor, "_suites", lambda: [doctor._could("suite fio", "none", "fio", "missing")])
    assert run(["doctor", "--fix"]) == 0
    shown = capsys.readouterr()
    needed, optional = shown.err.splitlines()
    assert not shown.out and needed == "nothing to install: no package that kdelta needs is missing"
    assert optional.startswith("optional (lab, suite fio): ")
    assert optional.endswith(distributions.install("fastboot adb fio"))


def test_an_extra_is_named_for_the_environment_that_kdelta_runs_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip = tmp_path / "pip"
    pip.write_text("#!/bin/sh\n")
    pip.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python3"))
    assert distributions.extra("lab") == "pip install 'kdelta[lab]'"
    monkeypatch.setattr("sys.executable", "/opt/k/bin/python3")
    assert distributions.extra("lab") == "/opt/k/bin/python3 -m pip install 'kdelta[lab]'", "another environment's pip"
    monkeypatch.setattr("sys.prefix", "/usr/lib/kdelta")
    assert distributions.extra("lab") == "in kdelta's sources: pipx install '.[lab]'", "no part of the package"
    assert "pip" not in distributions.extra("fleet")
