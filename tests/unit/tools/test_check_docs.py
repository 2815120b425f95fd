# SPDX-License-Identifier: GPL-2.0-or-later
"""What the documents say of options is held against the program, in sentences too."""

from __future__ import annotations

import click

import check_docs
from kdelta.cli.main import program


def test_an_option_that_no_subcommand_has_is_found_in_a_sentence() -> None:
    known = check_docs.options(program, click.Context(program))
    text = "`--json` and\n`--csv`, `--send=now`, `--context` of `kdelta post`, `--vm 2 --vm-keep` of stress-ng"
    assert check_docs.unknown_options(text, known) == [(2, "--csv")]


def test_a_line_that_does_not_parse_says_why() -> None:
    assert "No such option" in check_docs.parse_error("kdelta report --csv")
    assert not check_docs.parse_error("kdelta report last --format csv")
