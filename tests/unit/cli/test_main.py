# SPDX-License-Identifier: GPL-2.0-or-later
"""The program's face: every subcommand is listed with a word about it, loads, and shows examples."""

import gc
import logging
import re
import shlex
import signal
import sys
from pathlib import Path

import click
import pytest

from kdelta.cli import _help, report
from kdelta.cli._ending import Terminated
from kdelta.cli.main import _modules, main, program, run
from kdelta.report import registry

CONTEXT = click.Context(program)
COMMANDS = sorted(_modules())


def test_every_subcommand_is_listed_with_a_word_about_it() -> None:
    text = program.get_help(CONTEXT)
    for name in COMMANDS:
        (line,) = [line for line in text.splitlines() if line.startswith(f"  {name} ")]
        assert len(line.split()) > 3, line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_subcommand_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert f"kdelta {name}" in capsys.readouterr().out


def test_every_command_stands_in_one_group_of_the_help() -> None:
    assert sorted(name for names in _help.GROUPS.values() for name in names) == sorted(_modules())
    assert _help.grouped(["compare", "new", "why"]) == {
        "Which kernel is faster, and by how much": ["compare"],
        "Why": ["why"],
        "Other commands": ["new"],
    }


def test_the_help_of_a_narrow_terminal_ends_no_line_in_blanks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  compare" in lines
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_typo_is_answered_with_the_close_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["comapre"]) == 1
    assert "did you mean 'compare'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["last", "last~2", "20261126-232203-8a64"])
def test_an_experiment_alone_is_meant_to_be_reported(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--causes"]) == 1
    assert f"did you mean: kdelta report {shlex.quote(name)} --causes?" in capsys.readouterr().err


def test_a_file_that_is_there_is_no_place_for_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second of two patches was answered with -o, which would have written over it."""
    monkeypatch.chdir(tmp_path)
    assert run(["report", "last", "new.html"]) == 1
    assert "did you mean -o new.html?" in capsys.readouterr().err
    Path("mine.patch").write_text("diff")
    for command in ("report last", "review x.mbox"):
        assert run([*command.split(), "mine.patch"]) == 1
        assert "-o" not in capsys.readouterr().err.split()


def test_a_description_of_an_experiment_is_no_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text('kernels = ["debian:6.12", "debian:7.0"]')
    assert run(["compare", str(tmp_path / "mine.toml"), "debian:7.0"]) == 1
    assert f"by --spec {tmp_path / 'mine.toml'}" in capsys.readouterr().err
    assert run(["compare", "src:.", "src:.", "--unsandboxed"]) == 1
    assert "kdelta --unsandboxed compare" in capsys.readouterr().err


def test_the_help_names_every_report_format() -> None:
    (told,) = (one.help for one in report.command.params if isinstance(one, click.Option) and one.name == "fmt")
    assert sorted(re.findall(r"\w+", (told or "").replace(" or ", " "))) == list(registry.formats())


def test_an_end_by_a_signal_is_not_logged_by_a_library_that_cleans_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging, "lastResort", handler)
    monkeypatch.setattr("sys.argv", ["kdelta", "--version"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.unraisablehook", sys.unraisablehook)
    before = gc.get_threshold()
    with pytest.raises(SystemExit):
        main()
    gc.set_threshold(*before)
    for error in (Terminated(signal.SIGTERM), OSError("disk")):
        told = logging.LogRecord("x", logging.ERROR, "", 0, "closing", (), (type(error), error, None))
        handler.handle(told)
    said = capsys.readouterr().err
    assert "disk" in said and "SIGTERM" not in said


def test_a_short_command_looks_for_no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start-up makes some 300000 objects that stay: looking for circles among them was a sixth of it."""
    before = gc.get_threshold()
    monkeypatch.setattr("sys.argv", ["kdelta", "--version"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.unraisablehook", sys.unraisablehook)
    try:
        with pytest.raises(SystemExit):
            main()
        assert gc.get_threshold()[0] >= 50_000
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
