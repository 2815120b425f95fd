# SPDX-License-Identifier: GPL-2.0-or-later
"""What can carry an effect beside instructions, by function: locked operations, and distinct cache lines touched."""

from __future__ import annotations

from kdelta.attribution.profiles import column, runs_alike
from kdelta.model import Profile
from kdelta.report.rows import Row, laid_out, said

_NAME_WIDTH = 34
_LEAST = 0.005  # per operation: what would be shown as no change
_COLUMNS = {"locked": "locked operations", "data_lines": "data lines", "code_lines": "code lines"}


def touched_lines(before: Profile, after: Profile, limit: int | None, width: int | None = None) -> list[str]:
    """The functions in which a column changes most, ``limit`` of each at most; [] where nothing did.

    ``width``: of a terminal; without one each row is a line.
    """
    if not (before.data_lines and after.data_lines):
        return []
    rows: list[tuple[str, str, float, float]] = []
    for counted, title in _COLUMNS.items():
        old, new = column(before, counted), column(after, counted)
        pairs = {name: (old.get(name, 0.0), new.get(name, 0.0)) for name in old | new}
        ranked = sorted(pairs, key=lambda name: (-abs(pairs[name][1] - pairs[name][0]), name))
        kept = [name for name in ranked if abs(pairs[name][1] - pairs[name][0]) >= _LEAST][:limit]
        rows += ((title, name, *pairs[name]) for name in kept)
    if not rows:
        return []
    table = [Row("function", ("before", "after", "delta"), "of")]
    for title, name, one, other in rows:
        alike = title == _COLUMNS["code_lines"] and runs_alike(before, after, name)
        figures = (f"{one:.2f}", f"{other:.2f}", f"{other - one:+.2f}")
        table.append(Row(name, figures, f"{title}{', layout alone' if alike else ''}"))
    title = "locked operations, and cache lines touched first, per operation"
    return ["", *said(title, width), "", *laid_out(table, _NAME_WIDTH, width)]
