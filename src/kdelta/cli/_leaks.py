# SPDX-License-Identifier: GPL-2.0-or-later
"""The leak check of a stored experiment, printed, and what it means for the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdelta.cli import _output, _terminal
from kdelta.errors import RegressionFound

if TYPE_CHECKING:
    from kdelta.results.leaks import Finding
    from kdelta.store.store import Store


def show(store: Store, experiment_id: str, *, as_json: bool, output: Path | None) -> tuple[Finding, ...]:
    """Print the leak check of a stored experiment."""
    from kdelta.report import leaks as layout
    from kdelta.results import leaks

    experiment = store.experiment(experiment_id)
    found = leaks.findings(experiment, store)
    text = layout.to_json(experiment, found) if as_json else layout.render(experiment, found, _terminal.of(output))
    _output.write(text, output)
    return found


def conclude(found: Sequence[Finding], fail_on: str | None) -> int:
    """The exit code.

    Raises:
        RegressionFound: something leaks and ``fail_on`` asks for it. GuestError: nothing could be checked.
    """
    leaking = [f for f in found if f.verdict == "leak"]
    if fail_on and leaking:
        names = "; ".join(f"{f.case} on {f.kernel}" for f in leaking)
        raise RegressionFound(f"--fail-on leak: {names}")
    _output.refuse_all_lost([(f.case, f.state, f.why) for f in found], "checked")
    return 0
