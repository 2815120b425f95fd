# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a stored experiment, printed or written, and what it means for the exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from kdelta.cli import _offer, _terminal
from kdelta.cli._output import OutputArgs, write
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import ExperimentResult
    from kdelta.report.view import View
    from kdelta.store.store import Store


_LARGE = 500  # figures, of which 80 a second are explained


def _coloured() -> bool:
    """Whether colours are wanted: on a terminal that has them, unless NO_COLOR is set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def origin() -> str:
    """The CI system that submits to KCIDB, of ``$KDELTA_ORIGIN``.

    Raises:
        UserError: not a name that KCIDB takes.
    """
    from kdelta.report import kcidb

    name = os.environ.get("KDELTA_ORIGIN") or "kdelta"
    if not kcidb.ORIGIN.match(name):
        raise UserError(f"KDELTA_ORIGIN={name!r}: KCIDB takes small letters, digits and underscores, as in my_ci")
    return name


def view_of(
    store: Store,
    experiment_id: str,
    *,
    all_metrics: bool = False,
    causes: bool = False,
    readings: tuple[str, ...] = (),
    hidden: bool = True,
) -> tuple[ExperimentResult, View]:
    """The report of one experiment, rebuilt from the store; ``readings``: of other tools, by name.

    ``hidden``: with the rows of a sweep that its steps stand for.
    """
    from kdelta.report.view import Options, build
    from kdelta.results import answer

    result, detail = answer.result(store, experiment_id, views=readings, hidden=hidden or all_metrics)
    return result, build(result, detail, Options(all_metrics=all_metrics, causes=causes, origin=origin()))


def _say_large(store: Store, experiment_id: str) -> None:
    """One line where what follows takes more than two seconds."""
    experiment = store.experiment(experiment_id)
    cases, kernels = len(experiment.cases), len(experiment.kernels)
    if cases * kernels >= _LARGE:
        say(f"working out what changed in {cases} cases on {kernels} kernels", err=True)


def show(store: Store, experiment_id: str, args: OutputArgs) -> ExperimentResult:
    """Print or write the report of one experiment."""
    from kdelta.report import registry, terminal

    chosen = registry.find(args.format)
    readings = (args.view,) if args.view else ()
    if not args.quiet:
        _say_large(store, experiment_id)
    result, view = view_of(
        store, experiment_id, all_metrics=args.all_metrics, causes=args.causes, readings=readings, hidden=chosen.hidden
    )
    if chosen.name == "terminal" and args.output is None:
        text: str | bytes = terminal.render(view, colour=_coloured(), width=_terminal.columns())
    else:
        text = chosen.render(view)
    write(text, args.output)
    if not args.quiet:
        _offer.to_decide(result)
        if chosen.name == "html":
            _offer.to_draw(result, bool(view.detail.stacks))
    return result
