# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of code that changed because functions lie elsewhere, not because something else runs. Pure.

A function that grew by some bytes moves all behind it, and what lies across a border of cache lines is another
function. Any change of the code in front of it does that, so it is nobody's doing, and no news of a patch. Nor is
which pages the allocator hands out to who fills them.
"""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.attribution import profiles
from kdelta.model import EXACT_COUNTERS, CellResult, Profile
from kdelta.results.warnings import Carried, Layout

CODE_LINES, DATA_LINES = "code_lines", "data_lines"
_PAGE_BYTES, _LINE_BYTES, _COPIES = 4096, 64, 2  # a copy touches two lines for each that it moves


def changes(before: Profile, after: Profile, metric: str = CODE_LINES) -> tuple[dict[str, float], dict[str, float]]:
    """Differences in lines, by function: of those that do something else, and of those that do the same elsewhere."""
    old, new = (profiles.column(side, metric) for side in (before, after))
    deltas = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in old | new}
    same = profiles.runs_alike if metric == CODE_LINES else _fills_pages
    moved = {name for name in deltas if same(before, after, name)}
    mine = {name: delta for name, delta in deltas.items() if name not in moved}
    return mine, {name: deltas[name] for name in moved}


def _fills_pages(before: Profile, after: Profile, function: str) -> bool:
    """Whether a function does the same to whole pages: which of them it gets again is the allocator's affair."""
    if not profiles.runs_alike(before, after, function):
        return False
    filled = before.functions[function][EXACT_COUNTERS.index("rep_bytes")]
    lines = max(side.data_lines.get(function, 0) for side in (before, after))
    return filled >= _PAGE_BYTES and lines * _LINE_BYTES <= _COPIES * filled


def told(row: CellResult, before: Profile, after: Profile) -> CellResult:
    """The ``row``; where most of a change in lines of code is of functions that only moved, it is called that.

    A warning that they carry an effect loses them then, and goes where it tells of nothing else. So it loses lines of
    data most of which are in other pages.
    """
    for metric in (CODE_LINES, DATA_LINES):
        row = _told(row, before, after, metric)
    return row


def _told(row: CellResult, before: Profile, after: Profile, metric: str) -> CellResult:
    carrying = [w for w in row.warnings if isinstance(w, Carried) and any(name == metric for name, _ in w.columns)]
    laid = row.metric == metric == CODE_LINES and row.verdict in ("improved", "regressed")
    if not carrying and not laid:
        return row
    mine, moved = (sum(found.values()) for found in changes(before, after, metric))
    if abs(moved) < abs(mine) or moved * (mine + moved) <= 0:
        return row
    if not carrying:
        return replace(row, warnings=(*row.warnings, Layout(moved, mine)))
    kept = [_without(w, metric) if w in carrying else w for w in row.warnings]
    return replace(row, warnings=tuple(w for w in kept if not isinstance(w, Carried) or w.columns or w.new))


def _without(warning: Carried, metric: str) -> Carried:
    return replace(warning, columns=tuple(column for column in warning.columns if column[0] != metric))
