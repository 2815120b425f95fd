# SPDX-License-Identifier: GPL-2.0-or-later
"""--fail-on: the exit code of a comparison in which a case regressed, or ended badly on the patched kernel alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdelta.cli._say import say
from kdelta.errors import RegressionFound
from kdelta.units import counted

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

    if gate is None:
        return
    if weak := gates.weak(result, gate):
        them = "it" if weak == 1 else "each of them"
        say(
            f"--fail-on {text}: {counted(weak, 'case')} regressed and did not close the gate: among so many results "
            f"{them} may be chance (Holm); with fewer cases, or more --seeds or --blocks, it is told",
            err=True,
        )
    if hits := gates.hits(result, gate):
        raise RegressionFound(f"--fail-on {text}: " + "; ".join(hits))
