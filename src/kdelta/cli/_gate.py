# SPDX-License-Identifier: GPL-2.0-or-later
"""--fail-on: the exit code of a comparison in which a case regressed, or ended badly on the patched kernel alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdelta.errors import RegressionFound

if TYPE_CHECKING:
    from kdelta.model import ExperimentResult
    from kdelta.results.gates import Gate


def parsed(text: str | None) -> Gate | None:
    """What ``--fail-on`` asks for; raises UserError before anything is measured."""
    from kdelta.results import gates

    return gates.parse(text) if text else None


def refuse(result: ExperimentResult, gate: Gate | None, text: str | None) -> None:
    """Raises:
    RegressionFound: a case of ``result`` is what ``gate``, written as ``text``, forbids.
    """
    from kdelta.results import gates

    if gate is not None and (hits := gates.hits(result, gate)):
        raise RegressionFound(f"--fail-on {text}: " + "; ".join(hits))
