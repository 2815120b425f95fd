# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the calls of two kernels part, as a table: who is called otherwise, and who costs otherwise, and for whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kdelta.attribution import stack_diff
from kdelta.attribution.because import differences, homes
from kdelta.attribution.partings import Parting, partings
from kdelta.attribution.stacks import ROOT
from kdelta.model import FunctionDelta, Profile
from kdelta.report.figures import count
from kdelta.report.rows import Row, laid_out, said
from kdelta.report.scrub import clean
from kdelta.units import counted

TITLE = "where the calls part"
_SHOWN = 15
_ROWS = 30  # of a page
_TOLD = 3  # in a line
_NAME_WIDTH = 34
_CALLERS = 3  # the nearest
_LEAST = (9, 9, 9, 7)


def caption(each: str) -> str:
    """What the figures are, counted for ``each`` operation, or each part of one."""
    return (
        f"instructions per {each} of a function itself where it is called as often, and with all that it calls where "
        "it is called otherwise: the places add up to the whole difference"
    )


def parted_lines(
    before: Profile, after: Profile, everything: bool, width: int | None = None, each: str = "operation"
) -> list[str]:
    """The table, [] where calls were not followed or part nowhere.

    ``width``: of a terminal; without one each row is a line.
    """
    if not (before.stacks and after.stacks):
        return []
    places = partings(_tree(before, after))
    if not places:
        return []
    shown = places if everything else places[:_SHOWN]
    notes = notes_of(differences(before, after))
    table = [Row("function", ("before", "after", "delta", "calls"), "where")]
    for one in shown:
        old, new = one.cost
        figures = (f"{old:.1f}", f"{new:.1f}", f"{one.delta:+.1f}", calls(one))
        table.append(Row(clean(one.name), figures, where(one, notes)))
    lines = [
        "",
        *said(f"{TITLE}: {caption(each)}", width),
        "",
        *laid_out(table, _NAME_WIDTH, width, _LEAST),
    ]
    if rest := places[len(shown) :]:
        lines += said(f"{counted(len(rest), 'other place')}: {sum(one.delta for one in rest):+.1f} (--all)", width)
    return lines


def told(before: Profile, after: Profile) -> str:
    """The largest places in a line: ``"alloc -940586 (called less often by vm_area_dup), 258 others +541177"``.

    Empty where the calls part nowhere.
    """
    places = partings(_tree(before, after))
    parts = [f"{clean(one.name)} {count(one.delta, signed=True)} ({_how(one, 1)})" for one in places[:_TOLD]]
    if rest := places[_TOLD:]:
        parts.append(f"{counted(len(rest), 'other')} {count(sum(one.delta for one in rest), signed=True)}")
    return ", ".join(parts)


def calls(one: Parting) -> str:
    """How often it is called, on both kernels."""
    old, new = (f"{round(number, 2):.7g}" for number in one.calls)
    return old if old == new else f"{old}->{new}"


def where(one: Parting, notes: Mapping[str, str]) -> str:
    """How it is called, and by whom: the nearest callers, the outermost first."""
    with_it = f"with {', '.join(map(clean, one.joined))}" if one.joined else ""
    was = f"{clean(one.was)} before" if one.was else ""
    return "; ".join(filter(None, [_how(one, _CALLERS), with_it, was, notes.get(one.name, "") if one.whole else ""]))


def _how(one: Parting, most: int) -> str:
    """``"called less often by fork > copy"``, ``"itself in fork"``; of its callers the nearest, ``most`` at most."""
    old, new = one.calls
    how, by = "itself", "in"
    if one.whole:
        more = "more" if new > old else "less"
        how = "now called" if not one.cost[0] else "no longer called" if not one.cost[1] else f"called {more} often"
        by = "by"
    callers = [clean(name) for name in one.path[:-1] if name != ROOT][-most:]
    elsewhere = f" and at {counted(one.places - 1, 'other place')}" if one.places > 1 else ""
    return (f"{how} {by} {' > '.join(callers)}" if callers else how) + elsewhere


def notes_of(deltas: Iterable[FunctionDelta]) -> dict[str, str]:
    """By function, where its code went to, or is from."""
    split = ((delta.function, delta.note.partition(", ")[2]) for delta in deltas)
    return {name: note for name, note in split if note}


def rows(before: Profile, after: Profile, path: Sequence[str] = ()) -> tuple[tuple[str, ...], ...]:
    """The places below the call stack ``path``, as far as it leads: function, both costs, their change, calls, where;
    the largest difference first.
    """
    notes = notes_of(differences(before, after))
    root = stack_diff.at(_tree(before, after), path)[-1]
    return tuple(
        (clean(one.name), *map(count, one.cost), count(one.delta, signed=True), calls(one), where(one, notes))
        for one in partings(root)[:_ROWS]
    )


def _tree(before: Profile, after: Profile) -> stack_diff.Frame:
    return stack_diff.compared(before, after, homes(before, after))
