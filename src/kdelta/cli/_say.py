# SPDX-License-Identifier: GPL-2.0-or-later
"""The way of every text to a terminal: what a guest, a patch or a file said cannot move its cursor or change its title."""

from __future__ import annotations

import click


def harmless(text: str) -> str:
    """``text`` with its lines and tabs, every other control or format character as a visible escape."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    from kdelta.report.scrub import escaped

    return "".join(char if char in "\n\t" else escaped(char) for char in text)


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print ``text`` to standard output, or with ``err`` to standard error."""
    click.echo(harmless(str(text)), err=err, nl=nl)
