# SPDX-License-Identifier: GPL-2.0-or-later
"""--hardware on the command line, and what a killed kdelta left, in doctor."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.cli import doctor, main
from kdelta.machine import kept
from kdelta.paths import state_dir


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    monkeypatch.delenv("KDELTA_STORE", raising=False)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["run", "--hardware", "tubro=off"], "'tubro=off' is none of governor=NAME"),
        (["run", "debian:6.12", "--hardware", "turbo=off"], "sets the running machine: name no kernel"),
    ],
)
def test_what_cannot_be_set_is_one_line(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*words, "--case", "getppid"]) == 1
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1


def test_doctor_says_what_was_left() -> None:
    assert doctor._hardware().level == "ok"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    change = '{"path":"/sys/x","before":"0","after":"1"}'
    kept.state_path().write_text(f'{{"boot_id":"{boot_id}","writes":[{change}]}}')
    assert kept.state_path().parent == state_dir()
    assert "1 settings are not as they were (/sys/x)" in doctor._hardware().text
