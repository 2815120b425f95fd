# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule that everything is printed one way finds each other way, and the tree keeps it."""

from __future__ import annotations

import ast

import pytest

import check_output

OTHER_WAYS = (
    "import click\nclick.echo(text)",
    "import click\nclick.secho(text, err=True)",
    "from click import echo as out\nout(text)",
    "print(text)",
    "import sys\nsys.stdout.write(text)",
    "import sys\nsys.stderr.buffer.write(text)",
    "from sys import stdout\nstdout.writelines(text)",
    "self._bar.console.print(text)",
)


@pytest.mark.parametrize("code", OTHER_WAYS)
def test_another_way_to_print_is_found(code: str) -> None:
    assert list(check_output.breaches(ast.parse(code)))


def test_saying_is_none() -> None:
    clean = "say(text)\nself.console.print(harmless(text), markup=False)\nsys.stdout.isatty()\nfile.write(text)"
    assert not list(check_output.breaches(ast.parse(clean)))


def test_the_tree_keeps_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_output.main() == 0, capsys.readouterr().out
