# SPDX-License-Identifier: GPL-2.0-or-later
"""What stored traces found, printed, and what it means for the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdelta.cli import _output, _terminal
from kdelta.cli._say import say

if TYPE_CHECKING:
    from kdelta.attribution.traces import SetResult
    from kdelta.store.store import Store


def show(store: Store, names: Sequence[str], as_json: bool, output: Path | None) -> tuple[SetResult, ...]:
    """Print what stored traces found, rebuilt from the store."""
    from kdelta.report import traces
    from kdelta.results.traces import results

    parts = [results(store, name) for name in names]
    _output.write(traces.to_json(parts) if as_json else traces.render(parts, _terminal.of(output)), output)
    return tuple(result for _, found in parts for result in found)


def show_below(store: Store, names: Sequence[str], args: _output.OutputArgs) -> None:
    """Print traces after the report that they belong to; where that is no text for people, only where they are."""
    if args.output is None and args.format == "terminal":
        say()
        show(store, names, False, None)
    else:
        say("traced: " + "; ".join(f"kdelta report {name}" for name in names), err=True)


def conclude(found: Sequence[SetResult]) -> int:
    """The exit code of a trace.

    Raises:
        GuestError: no guest came back at all.
    """
    _output.refuse_all_lost([(result.kernel, result.state, result.why) for result in found], "traced")
    return 0
