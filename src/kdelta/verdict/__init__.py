# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics and noise floor -> verdicts. Pure; never reads attribution."""

from kdelta.verdict.correction import gate_holm
from kdelta.verdict.ended import ENDED, at_boot, ended_alone
from kdelta.verdict.judge import adjacent, floor_of, judge
from kdelta.verdict.pairing import CellData, Observation
from kdelta.verdict.stopping import open_cells

__all__ = [
    "ENDED",
    "CellData",
    "Observation",
    "adjacent",
    "at_boot",
    "ended_alone",
    "floor_of",
    "gate_holm",
    "judge",
    "open_cells",
]
