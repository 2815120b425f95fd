# SPDX-License-Identifier: GPL-2.0-or-later
"""--spec FILE: the options of a subcommand from a TOML file, so that an experiment can be kept and shared.

A key is an option's long name without the dashes (``max-blocks`` or ``max_blocks``), ``kernels`` are the arguments.
What is typed on the command line wins over the file.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click
import msgspec

from kdelta import paths
from kdelta.errors import UserError
from kdelta.spec import toml


def _known(command: click.Command) -> dict[str, click.Parameter]:
    """Parameters by the names that a file may use."""
    return {shown: p for p in command.params if (shown := _shown(p)) not in ("spec", "help", "")}


def _shown(param: click.Parameter) -> str:
    """``max_blocks`` for ``--max-blocks``; an argument by its own name."""
    long = next((word for word in param.opts if word.startswith("--")), param.name or "")
    return long.removeprefix("--").replace("-", "_")


def values(path: Path, command: click.Command) -> dict[str, Any]:
    """What a file says for ``command``, by its parameters' names.

    Raises:
        UserError: it cannot be read, is no TOML, or has a key or a kind of value that the command does not take.
    """
    try:
        document = toml.decode(paths.written(path), dict[str, Any])
    except OSError as error:
        raise UserError(f"--spec {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"--spec {path}: not TOML: {error}") from None
    except ValueError as error:
        raise UserError(f"--spec {path}: {error}") from None
    known = _known(command)
    inside = {p.name: p for p in known.values()}  # as files of before named some of them
    found: dict[str, Any] = {}
    for key, value in document.items():
        name = key.replace("-", "_")
        if name not in known and name not in inside:
            close = difflib.get_close_matches(name, known, n=1)
            names = ", ".join(sorted(shown.replace("_", "-") for shown in known))
            hint = f"did you mean {close[0].replace('_', '-')!r}?" if close else f"one of {names}"
            raise UserError(f"--spec {path}: unknown key {key!r}; {hint}")
        param = known.get(name) or inside[name]
        several = param.nargs == -1 or getattr(param, "multiple", False)
        if isinstance(value, dict) or (isinstance(value, list) and not several):
            raise UserError(f"--spec {path}: {key} takes a single value")
        found[param.name or name] = [value] if several and not isinstance(value, list) else value
    return found


def _load(ctx: click.Context, _param: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.default_map = {**(ctx.default_map or {}), **values(value, ctx.command)}


option = click.option(
    "--spec",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_load,
    is_eager=True,
    expose_value=False,
    help="Read kernels = [...] and options by their long names, as max-blocks = 12 or case = [...], from a TOML file; "
    "the command line takes precedence.",
)
