# SPDX-License-Identifier: GPL-2.0-or-later
"""The way of every text to a terminal: what a guest, a patch or a file said cannot move its cursor or change its title."""

from __future__ import annotations

import sys

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


def put(made: str | bytes) -> None:
    """Print a report as its format made it, which cleans what it shows, or bytes that a guest wrote.

    Bytes go to a file or pipe as they are, and to a terminal as harmless text.
    """
    if isinstance(made, str):
        click.echo(made, nl=bool(made) and not made.endswith("\n"))
    elif sys.stdout.isatty():
        shown = made.decode("utf-8", "replace").replace("\r\n", "\n")
        click.echo("".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown))
    else:
        sys.stdout.buffer.write(made)
