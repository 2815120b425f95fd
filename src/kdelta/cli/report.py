# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta report: any stored experiment, in any format, rebuilt from the store alone."""

from __future__ import annotations

from typing import Any

import click

from kdelta.cli import common, leaks, trace
from kdelta.errors import UserError

EPILOG = """\b
Examples:
  kdelta report                          the last experiment
  kdelta report 20261121-1530 --format mail
  kdelta report last --format html -o result.html
  kdelta report last --console 0.1       the console of block 0, slot 1
"""


@click.command(epilog=EPILOG)
@click.argument("experiment", default="last", metavar="[EXPERIMENT]")
@click.option("--console", metavar="BLOCK.SLOT", help="Print the saved console of one boot instead.")
@common.output_options
def command(experiment: str, console: str | None, **options: Any) -> int:
    """Print the report of a stored EXPERIMENT (an id, the start of one, or last)."""
    from kdelta.store.store import Store

    args = common.OutputArgs(**options)
    with Store() as store:
        if console is not None:
            common.write(_console(store, experiment, console), args.output)
        elif store.experiment(experiment).kind == "leaks":
            leaks.show(store, experiment, as_json=args.as_json, output=args.output)
        elif store.experiment(experiment).kind == "trace":
            trace.show(store, experiment, args.format == "json", args.output)
        else:
            common.show(store, experiment, args)
    return 0


def _console(store: Any, experiment: str, where: str) -> bytes:
    block, dot, slot = where.partition(".")
    if not (dot and block.isdigit() and slot.isdigit()):
        raise UserError(f"--console {where!r}: give block and slot, as in 0.1")
    content: bytes = store.console(experiment, int(block), int(slot))
    return content
