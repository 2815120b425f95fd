# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells that have no verdict because the patched kernel, and it alone, did not come to its end. Pure.

That is no measurement, and no less a fault of the patch than a slower one. What was lost is the host's, and what a
kernel does not support is an answer.
"""

from __future__ import annotations

from kdelta.model import BOOTING, CellResult, State
from kdelta.verdict.warnings import Dropped

ENDED: tuple[State, ...] = ("panicked", "hung", "failed")  # gravest first


def ended_alone(row: CellResult) -> State | None:
    """How the patched kernel ended in ``row``, in all of its boots or in some; None where the baseline ended so too."""
    if row.verdict is not None or not row.patched_label or (row.state != "ok" and row.state not in ENDED):
        return None
    faults = [fault for warning in row.warnings if isinstance(warning, Dropped) for fault in warning.faults]
    states = {(fault.kernel, fault.state) for fault in faults}
    if row.baseline is None or any((row.baseline_label, state) in states for state in ENDED):
        return None
    if row.state != "ok":
        return row.state if row.patched is None else None
    return next((state for state in ENDED if (row.patched_label, state) in states), None)


def at_boot(row: CellResult) -> bool:
    """Whether a kernel did not come as far as the case."""
    return row.state in ("panicked", "hung") and BOOTING in row.why
