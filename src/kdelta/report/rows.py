# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of names, figures and a remark each. No figure runs into the one before, however large it is."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len

from kdelta.report.text import PROSE, pad, wrap

FIGURE = 9  # columns, where figures need no more
_REMARK = 6  # columns, where names leave no more: a remark is "gone" at least, with the space before it


class Row(Struct, frozen=True):
    """A line of a table; the first one holds the headings. All rows have as many figures."""

    name: str
    figures: tuple[str, ...]
    remark: str = ""


def laid_out(rows: Sequence[Row], names: int, width: int | None, least: Sequence[int] = ()) -> list[str]:
    """The lines of a table. Without the ``width`` of a terminal each row is one, of ``names`` columns for the name, or
    more where it is longer.

    On a terminal, a name that is longer than its column, and a remark that is too long, have lines of their own.
    ``least``: columns of the figures, where that is not FIGURE each.
    """
    least = least or (FIGURE,) * len(rows[0].figures)
    sizes = [max(size, *(1 + cell_len(row.figures[at]) for row in rows)) for at, size in enumerate(least)]

    def figures(row: Row) -> str:
        return "".join(pad(text, size, right=True) for text, size in zip(row.figures, sizes, strict=True))

    if width is None:
        return [f"{row.name:{names - 1}} {figures(row)}  {row.remark}".rstrip() for row in rows]
    longest = 1 + max(cell_len(row.name) for row in rows)
    column = max(1, min(longest, width - sum(sizes) - _REMARK))
    return [line for row in rows for line in _lines(row, figures(row), column, width)]


def _lines(row: Row, figures: str, column: int, width: int) -> list[str]:
    long = cell_len(row.name) >= column
    line = pad("" if long else row.name, column) + figures
    lines = [*(wrap(row.name, width) if long else []), line]
    if row.remark and cell_len(line) + 2 + cell_len(row.remark) > width:
        return [*lines, *wrap(row.remark, min(width, PROSE), first="      ", then="        ")]
    return [*lines[:-1], f"{line}  {row.remark}".rstrip()]


def said(text: str, width: int | None) -> list[str]:
    """A sentence below a table: one line, on a terminal as many as it needs."""
    return [text] if width is None else wrap(text, min(width, PROSE), then="  ")
