# SPDX-License-Identifier: GPL-2.0-or-later
"""--fail-on for CI: which results close the gate. Pure; Holm's correction guards the whole family of cells.

A case that only the patched kernel does not come to the end of closes it too: it has no figure that could be worse.
"""

from __future__ import annotations

import math

from msgspec import Struct

from kdelta import verdict
from kdelta.errors import UserError
from kdelta.model import CellResult, ExperimentResult


class Gate(Struct, frozen=True):
    """Fail on regressions of at least ``percent``."""

    percent: float = 0.0


def parse(text: str) -> Gate:
    """``regressed`` or ``regressed:2%``.

    Raises:
        UserError: neither.
    """
    word, colon, amount = text.partition(":")
    if word != "regressed":
        raise UserError(f"--fail-on {text!r}: only regressed or regressed:PERCENT, as in regressed:2%")
    if not colon:
        return Gate()
    try:
        percent = float(amount.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent < math.inf:
        raise UserError(f"--fail-on {text!r}: {amount!r} is not a percentage such as 2%")
    return Gate(percent)


def hits(result: ExperimentResult, gate: Gate) -> list[str]:
    """One phrase for each cell that closes the gate: regressed, large enough, and kept by Holm's correction.

    And one for each primary case that panicked, hung or failed on the patched kernel alone, whatever the percentage.
    """
    found = verdict.gate_holm(result.results, delta_percent=gate.percent)
    lines = [f"{row.case} {row.patched_label} {_effect(row)}" for row in found]
    ended = [(row, state) for row in result.results if row.primary and (state := verdict.ended_alone(row))]
    lines += dict.fromkeys(f"{row.case} {row.patched_label} {state}" for row, state in ended)
    return ([result.gate] if result.gate else []) + lines


def weak(result: ExperimentResult, gate: Gate) -> int:
    """How many primary cells regressed by so much and close no gate: Holm does not keep them among all cells."""
    closing = {id(row) for row in verdict.gate_holm(result.results, delta_percent=gate.percent)}
    large = (row for row in result.results if row.effect_percent is None or abs(row.effect_percent) >= gate.percent)
    return sum(row.primary and row.verdict == "regressed" and id(row) not in closing for row in large)


def _effect(row: CellResult) -> str:
    return "from zero" if row.effect_percent is None else f"{row.effect_percent:+.1f} %"
