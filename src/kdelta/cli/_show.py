# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a stored experiment, printed or written, and what it means for the exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from kdelta.cli import _offer
from kdelta.cli._output import OutputArgs, write

if TYPE_CHECKING:
    from kdelta.model import ExperimentResult
    from kdelta.store.store import Store


def _coloured() -> bool:
    """Whether colours are wanted: on a terminal that has them, unless NO_COLOR is set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show(store: Store, experiment_id: str, args: OutputArgs) -> ExperimentResult:
    """Print or write the report of one experiment, rebuilt from the store."""
    from kdelta.report import registry, terminal
    from kdelta.report.view import Options, build
    from kdelta.results import answer

    chosen = registry.find(args.format)
    result, detail = answer.result(store, experiment_id, views=(args.view,) if args.view else ())
    view = build(result, detail, Options(all_metrics=args.all_metrics, causes=args.causes))
    if chosen.name == "terminal" and args.output is None and _coloured():
        text: str | bytes = terminal.render(view, colour=True)
    else:
        text = chosen.render(view)
    write(text, args.output)
    if not args.quiet:
        _offer.to_decide(result)
    return result
