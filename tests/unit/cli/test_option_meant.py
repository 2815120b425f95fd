# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of options that kdelta has not names those that it has, and is told by the commands it is meant for."""

import re

import click
import pytest

from kdelta.cli import _option_meant
from kdelta.cli.main import program


def _options(group: click.Group, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], set[str]]:
    context = click.Context(group)
    found: dict[tuple[str, ...], set[str]] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found |= _options(command, (*path, name))
        options = {opt for param in command.params if isinstance(param, click.Option) for opt in param.opts}
        found[(*path, name)] = options
    return found


OPTIONS = _options(program)
EVERY = {"--help"}.union(*OPTIONS.values(), *(param.opts for param in program.params))


@pytest.mark.parametrize("row", _option_meant._ROWS, ids=lambda row: row.words.split()[0] + row.where)
def test_rows_speak_of_what_there_is(row: _option_meant._Row) -> None:
    commands = {path[-1] for path in OPTIONS}
    assert {word for word in row.where.split() if word not in EVERY | commands} == set()
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", row.text))
    assert named <= EVERY


@pytest.mark.parametrize("row", _option_meant._ROWS, ids=lambda row: row.words.split()[0] + row.where)
def test_each_row_is_told_by_some_command_for_each_word(row: _option_meant._Row) -> None:
    def told(word: str, path: tuple[str, ...]) -> bool:
        command: click.Command = program
        for name in path:
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), name)
            assert found is not None
            command = found
        return bool(_option_meant.meant(word, click.Context(command, info_name=path[-1])))

    for word in row.words.split():
        where = [
            path
            for path, has in OPTIONS.items()
            if word not in has and (not row.where or (has | {path[-1]}) & set(row.where.split()))
        ]
        assert any(told(word, path) for path in where), word


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--export-json", "write --format json -o FILE"),
        ("--prepare", "--between COMMAND after each"),
        ("--ignore-failure", "did you mean --expect-status?"),
        ("--input", "did you mean --stdin?"),
        ("--rwdir", "did you mean --writable?"),
        ("--chdir", "did you mean --cwd?"),
        ("--min-runs", "did you mean --seeds or --blocks?"),
    ],
)
def test_options_of_hyperfine_and_virtme_ng_are_known(word: str, told: str) -> None:
    command = program.get_command(click.Context(program), "compare")
    assert command is not None
    assert told in _option_meant.meant(word, click.Context(command, info_name="compare"))
