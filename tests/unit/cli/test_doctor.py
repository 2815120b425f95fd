# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta doctor: what it says of this machine, and how it stands on a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.cli import doctor
from kdelta.cli.main import run
from kdelta.machine import plugin

REFUSED = "plugin requires API version 7, but this QEMU supports only up to version 6"


def test_noise_says_what_it_means_for_whom() -> None:
    quiet = doctor._noise_said(1.012, 0.1)
    assert (quiet.level, quiet.remedy) == ("ok", "")
    assert quiet.text == "quiet: one run in ten of the same work takes 1.2 % longer, load 0.10"
    busy = doctor._noise_said(50.83, 5.4)
    assert busy.text == "not quiet: one run in ten of the same work takes 51 times as long, load 5.40"
    assert busy.remedy.startswith("counts do not mind; stop other work before --timed")
    assert doctor._noise_said(1.0, 3.0).level == "limited"


@pytest.mark.parametrize("width", [34, 59, 60, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    found = doctor.Finding("build sandbox", "limited", "src: kernels are built " * 9, "allow namespaces " * 7)
    lines = doctor._lines(found, width)
    assert max(map(len, lines)) <= width
    assert " ".join(" ".join(lines).split()) == " ".join(
        f"limited build sandbox {found.text} -> {found.remedy}".split()
    )


def test_a_pipe_gets_whole_lines() -> None:
    found = doctor.Finding("noise", "limited", "word " * 99 + "end", "remedy " * 99 + "end")
    assert [line.split()[-1] for line in doctor._lines(found, 0)] == ["end", "end"]


def test_a_qemu_that_does_not_take_the_plugin_is_no_exact_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A QEMU between those that are known takes no plugin of ours; doctor called exact mode good."""
    program = tmp_path / "qemu-system-x86_64"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--version*) echo "QEMU emulator version 11.0.2 (Debian)";;\n'
        '*-plugin*) echo "Could not load plugin a.so: ' + REFUSED + '" >&2; exit 1;;\n'
        "*) echo '-plugin [file=]<file>';; esac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = doctor._qemu("qemu x86-64", "x86_64", "qemu-system-x86")
    assert (found.level, found.remedy) == ("limited", plugin.COUNTS_IN)
    assert found.text == f"QEMU 11.0.2 (Debian): no exact mode ({REFUSED})"


def test_a_cache_that_cannot_be_written_is_no_fault_of_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor advised another QEMU, and nowhere to set KDELTA_CACHE."""
    program = tmp_path / "qemu-system-x86_64"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--version*) echo "QEMU emulator version 7.2.22 (Debian)";;\n'
        "*) echo '-plugin [file=]<file>';; esac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "file" / "cache"))
    found = doctor._qemu("qemu x86-64", "x86_64", "qemu-system-x86")
    assert (found.level, found.remedy) == ("limited", "")
    assert "no exact mode (plugin: " in found.text
    told = doctor._cache()
    assert (told.level, told.remedy) == ("limited", "set KDELTA_CACHE to a directory that you can write to")


def test_help_on_a_narrow_terminal_stands_below_the_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert run(["doctor", "--help"]) == 0
    said = capsys.readouterr().out
    assert "  --json\n      Print the findings as JSON.\n" in said
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["doctor", "--help"]) == 0
    assert "  --json      Print the findings as JSON.\n" in capsys.readouterr().out
