# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of code that changed because functions lie elsewhere, not because something else runs. Pure.

A function that grew by some bytes moves all behind it, and what lies across a border of cache lines is another
function. Any change of the code in front of it does that, so it is nobody's doing, and no news of a patch.
"""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.attribution import profiles
from kdelta.model import CellResult, Profile
from kdelta.results.warnings import Carried, Layout

CODE_LINES = "code_lines"


def changes(before: Profile, after: Profile) -> tuple[dict[str, float], dict[str, float]]:
    """Differences in lines of code, by function: of those that run something else, and of those that only moved."""
    old, new = (profiles.column(side, CODE_LINES) for side in (before, after))
    deltas = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in old | new}
    moved = {name for name in deltas if profiles.runs_alike(before, after, name)}
    mine = {name: delta for name, delta in deltas.items() if name not in moved}
    return mine, {name: deltas[name] for name in moved}


def told(row: CellResult, before: Profile, after: Profile) -> CellResult:
    """The ``row``; where most of a change in lines of code is of functions that only moved, it is called that.

    A warning that they carry an effect loses them then, and goes where it tells of nothing else.
    """
    carrying = [w for w in row.warnings if isinstance(w, Carried) and any(name == CODE_LINES for name, _ in w.columns)]
    if not carrying and (row.metric != CODE_LINES or row.verdict not in ("improved", "regressed")):
        return row
    mine, moved = (sum(found.values()) for found in changes(before, after))
    if abs(moved) < abs(mine) or moved * (mine + moved) <= 0:
        return row
    if not carrying:
        return replace(row, warnings=(*row.warnings, Layout(moved, mine)))
    kept = [_without(w) if w in carrying else w for w in row.warnings]
    return replace(row, warnings=tuple(w for w in kept if not isinstance(w, Carried) or w.columns or w.new))


def _without(warning: Carried) -> Carried:
    return replace(warning, columns=tuple(column for column in warning.columns if column[0] != CODE_LINES))
