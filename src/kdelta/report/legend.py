# SPDX-License-Identifier: GPL-2.0-or-later
"""What the marks of a report mean."""

from __future__ import annotations

_MARKS = (
    "(I) improved   (R) regressed   = same   ? inconclusive",
    "The baseline is absolute; the others are relative to it.",
)


def legend(exact: bool, sweeps: bool, notes: bool, marks: bool = True) -> tuple[str, ...]:
    """What the marks mean, where there are any."""
    lines = [*_MARKS] if marks else []
    if sweeps and exact:
        lines.append("In a sweep, a step is relative to the version before it.")
    elif sweeps:
        lines.append(
            "In a sweep of times, a step lies between two levels; a level covers all versions up to the next step."
        )
    if notes:
        lines.append("[n] refers to the notes.")
    return tuple(lines)
