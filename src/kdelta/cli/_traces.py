# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces as subcommands make and print them: collector sets named, experiments run, results shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdelta.cli import _output, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.attribution.traces import SetResult
    from kdelta.cli._session import Session
    from kdelta.model import Experiment, Progress
    from kdelta.store.store import Store


def split(what: str) -> list[tuple[str, ...]]:
    """``locks,hold`` -> one group of collector sets for each experiment; an empty group stands for exact holds.

    Raises:
        UserError: one of them is not known.
    """
    from kdelta.results.traces import HOLD
    from kdelta.spec import collectors

    names = [name.strip() for name in what.split(",")]
    rest = [name for name in names if name != HOLD]
    if names.count(HOLD) > 1:
        raise UserError(f"{HOLD!r} is given twice")
    groups = [tuple(one.name for one in collectors.choose(",".join(rest), collectors.catalogue()))] if rest else []
    return [*groups, ()] if HOLD in names else groups


def run(session: Session, template: Experiment, progress: Progress) -> str:
    """One experiment, made and run; its id."""
    from kdelta.experiment import trace

    trace.refuse_endless(template.cases, common.load_workloads(tuple(map(Path, template.folders))))
    experiment = session.begin(template, 0)
    session.run(experiment, progress)
    return experiment.id


def show(store: Store, names: Sequence[str], as_json: bool, output: Path | None) -> tuple[SetResult, ...]:
    """Print what stored traces found, rebuilt from the store."""
    from kdelta.report import traces
    from kdelta.results.traces import results

    parts = [results(store, name) for name in names]
    render = traces.to_json if as_json else traces.render
    _output.write(render(parts), output)
    return tuple(result for _, found in parts for result in found)


def show_below(store: Store, names: Sequence[str], args: _output.OutputArgs) -> None:
    """Print traces after the report that they belong to; where that is no text for people, only where they are."""
    if args.output is None and args.format == "terminal":
        click.echo()
        show(store, names, False, None)
    else:
        click.echo("traced: " + "; ".join(f"kdelta report {name}" for name in names), err=True)


def beside(session: Session, measured: Experiment, what: str, progress: Progress) -> list[str]:
    """Trace the kernels and cases of a finished experiment (``compare --why``); the ids of the traces."""
    from kdelta.experiment import templates

    asked = templates.asked_in(measured)
    return [run(session, templates.trace(asked, measured.kernels, sets, None), progress) for sets in split(what)]


def conclude(found: Sequence[SetResult]) -> int:
    """The exit code of a trace.

    Raises:
        GuestError: no guest came back at all.
    """
    _output.refuse_all_lost([(result.kernel, result.state, result.why) for result in found], "traced")
    return 0
