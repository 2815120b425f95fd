# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a stored experiment, whatever its kind is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdelta.cli import _given, _leaks, _output, _passes, _show, _traces
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment, ExperimentResult
    from kdelta.store.store import Store


_OTHER_KINDS = {"trace": "a trace", "leaks": "a check for leaks"}  # than those with figures and verdicts


def _refuse_idle(found: Experiment, args: _output.OutputArgs) -> None:
    """Refuse options that the report of a trace or a leak check does not know.

    Raises:
        UserError: one was given.
    """
    if what := _OTHER_KINDS.get(found.kind):
        _given.refuse(("all_metrics", "causes", "view"), f"would do nothing: experiment {found.id} is {what}")
        if args.bare not in ("terminal", "json"):
            raise UserError(
                f"--format {args.bare}: experiment {found.id} is {what}, which is text, or JSON with --json"
            )


def show(store: Store, found: Experiment, args: _output.OutputArgs) -> None:
    """Print or write it."""
    _refuse_idle(found, args)
    if found.kind == "trace":
        _traces.show(store, _traced(store, found), args.bare == "json", args.output)
    elif found.kind == "leaks":
        _leaks.show(store, found.id, as_json=args.bare == "json", output=args.output)
    else:
        _whole(store, found, args)


def _whole(store: Store, found: Experiment, args: _output.OutputArgs) -> ExperimentResult:
    """Print or write a comparison, and what was traced for it."""
    result = _show.show(store, found.id, args)
    if traces := beside(store, found):
        _traces.show_below(store, traces, args)
    return result


def beside(store: Store, found: Experiment) -> list[str]:
    """The traces that a comparison asked for (``--why``); what a review checked beside is told in its own report."""
    from kdelta.model import BESIDE_TAG

    told = {one.experiment for one in found.annotations.beside}
    rows = store.experiments(kind="trace", tag=f"{BESIDE_TAG}{found.id}")
    return [row.id for row in rows if row.id not in told]


def _traced(store: Store, found: Experiment) -> list[str]:
    """A trace, and what was asked for with it."""
    rest = _passes.traced_beside(store, found)
    return [found.id, *([rest.id] if rest is not None else ())]


def conclude(store: Store, found: Experiment, args: _output.OutputArgs) -> int:
    """``show``, for a command that has just measured; the exit code.

    Raises:
        GuestError: no guest came back at all.
    """
    _refuse_idle(found, args)
    if found.kind == "trace":
        return _traces.conclude(_traces.show(store, _traced(store, found), args.bare == "json", args.output))
    if found.kind == "leaks":
        return _leaks.conclude(_leaks.show(store, found.id, as_json=args.as_json, output=args.output), None)
    _output.refuse_lost(_whole(store, found, args))
    return 0
