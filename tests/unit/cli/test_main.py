# SPDX-License-Identifier: GPL-2.0-or-later
"""The program's face: every subcommand is listed with a word about it, loads, and shows examples."""

import click
import pytest

from kdelta.cli.main import _modules, program, run

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


def test_a_typo_is_answered_with_the_close_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["comapre"]) == 1
    assert "did you mean 'compare'" in capsys.readouterr().err
