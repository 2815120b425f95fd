# SPDX-License-Identifier: GPL-2.0-or-later
"""-o FILE and --format, looked at while the command line is read: hours of measuring must not end in a refusal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kdelta.errors import UserError

F = TypeVar("F", bound=Callable[..., Any])


def check_writable(path: Path, option: str) -> None:
    """Open ``path`` for writing and leave it as it was; devices and pipes are taken at their word.

    Raises:
        UserError: it cannot be written.
    """
    try:
        file = path.resolve()
        fresh = not file.exists()
        if fresh or file.is_file():
            os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666))
        if fresh:
            file.unlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(
            f"{option} {path}: cannot be written ({why}); name a file in a directory you can write to"
        ) from None


def check(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """The callback of an option that names a file to write."""
    if value is not None and not ctx.resilient_parsing:
        check_writable(value, param.opts[0])
    return value


def _format(ctx: click.Context, _param: click.Parameter, value: str) -> str:
    from kdelta.report import registry

    if not ctx.resilient_parsing:
        registry.find(value)
    return value


def output_option(what: str) -> Callable[[F], F]:
    """``-o FILE``; ``what`` is its help."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option("--output", "-o", type=kind, callback=check, help=what)


format_option = click.option(
    "--format",
    "-f",
    "fmt",
    default="terminal",
    show_default=True,
    metavar="FORMAT",
    callback=_format,
    help="terminal, mail, markdown, html, json, csv, ktap, junit or benchfmt.",
)
