# SPDX-License-Identifier: GPL-2.0-or-later
"""All effects of a report with their intervals around zero, for the figures of all formats; and the one in text."""

from __future__ import annotations

from itertools import product

from rich.cells import cell_len

from kdelta.report.figures import drawable
from kdelta.report.text import WIDTH, ends, fit, pad
from kdelta.report.view import Cell, View

_ROWS = 24  # a longer figure in text is no figure any more: the table has all
NAME = 24  # cells
_LETTERS = {"(I)": "I", "(R)": "R", "=": "=", "?": "?"}
_OTHER = "*"  # without a verdict


def bounds(cell: Cell) -> tuple[float, ...]:
    """Everything that the plot of a cell must hold: interval and, last, the estimate; () where there is none."""
    estimate = drawable(cell.source.effect_percent)
    if estimate is None:
        return ()
    ends = [bound for bound in cell.source.interval_percent or () if drawable(bound) is not None]
    return (*ends, estimate)


def rows(view: View) -> list[tuple[str, Cell]]:
    """The cells that can be drawn, each under a name that no other has."""
    alone = len({group.title for group, _, _ in view.cells()}) == 1
    named = [
        (row.metric if alone else g.title if len(g.rows) == 1 else f"{g.title}, {row.metric}", cell)
        for g, row, cell in view.cells()
    ]
    found = [(name, cell) for name, cell in named if cell.source.state == "ok" and bounds(cell)]
    several = len({cell.kernel for _, cell in named}) > 1
    return [(f"{name}, {cell.kernel}" if several else name, cell) for name, cell in found]


def _without_suite(names: list[str], most: int) -> list[str]:
    """Names of one suite without it, where one of them is wider than ``most``."""
    suite = "".join(names[0].partition("/")[:2])
    of_one = suite.endswith("/") and all(name.startswith(suite) for name in names)
    return [name.removeprefix(suite) for name in names] if of_one and max(map(cell_len, names)) > most else names


def _cut(name: str, most: int) -> str:
    """``name`` in at most ``most`` cells: the metric or kernel behind its case is the last to go."""
    case, comma, which = name.rpartition(", ")
    if cell_len(name) <= most or not comma:
        return fit(name, most)
    room = most - cell_len(comma + which)
    return ends(name, most) if room < most // 3 else fit(case, room) + comma + which


def _without_suites(names: list[str]) -> list[str]:
    """Names of several suites without these: what is left may be apart where whole names have no room."""
    return [name.partition("/")[2] or name for name in names]


def short_names(names: list[str], most: int) -> list[str]:
    """Names of rows in at most ``most`` cells, apart as long as that can be."""
    whole = _without_suite(names, most)
    ways = (
        [shorten(name, most) for name in found]
        for found, shorten in product((whole, _without_suites(whole)), (_cut, ends))
    )
    return next((one for one in ways if len(set(one)) == len(set(whole))), [ends(name, most) for name in whole])


def figure(view: View, width: int = WIDTH) -> list[str]:
    """The figure as text, a line for each effect; [] where there is one effect alone, or where they are too many.

    The letter is the estimate and its verdict, as the legend has it, the dashes are the interval, the bar is zero.
    """
    found = rows(view)
    every = [0.0, *(bound for _, cell in found for bound in bounds(cell))]
    low, high = min(every), max(every)
    if not 1 < len(found) <= _ROWS or low == high:
        return []
    names = short_names([name for name, _ in found], min(NAME, width // 3 + 1))
    label = max(map(cell_len, names))
    room = width - label - 2

    def place(value: float) -> int:
        return round((value - low) / (high - low) * (room - 1))

    lines = [" " * (label + 2) + _axis(low, high, place(0.0), room)]
    for name, (_, cell) in zip(names, found, strict=True):
        drawn = [" "] * room
        drawn[place(0.0)] = "|"
        places = [place(bound) for bound in bounds(cell)]
        for at in range(min(places), max(places) + 1):
            drawn[at] = "-"
        drawn[places[-1]] = _LETTERS.get(cell.mark, _OTHER)
        lines.append(f"{pad(name, label)}  {''.join(drawn)}".rstrip())
    return lines


def legend(view: View, width: int = WIDTH) -> str:
    """What the signs of ``figure`` say, "" where there is none."""
    if not figure(view, width):
        return ""
    marks = {_LETTERS.get(cell.mark, _OTHER) for _, cell in rows(view)}
    if marks == {_OTHER}:
        return "In the figure * is an estimate without a verdict, and | is zero."
    other = ", * without a verdict" if _OTHER in marks else ""
    return (
        f"In the figure a letter is an estimate (I, R, =, ? as above{other}), dashes are its interval, and | is zero."
    )


def _end(percent: float) -> str:
    """An end of the axis, in three digits or more, as the rows have it: 1102 %, not 1.1e+03."""
    return f"{percent:+.0f}" if 1000 <= abs(percent) < 1e5 else f"{percent:+.3g}"


def _axis(low: float, high: float, zero: int, room: int) -> str:
    """The ends of the axis and its zero, as far as there is room between them."""
    left, right = (f"{_end(end)} %" if end else "" for end in (low, high))
    text = left.ljust(room)
    text = text[: room - len(right)] + right
    if not text[max(0, zero - 1) : zero + 2].strip():
        text = f"{text[:zero]}0{text[zero + 1 :]}"
    return text.rstrip()
