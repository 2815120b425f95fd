# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said below a row of the tables whose calls were followed: where they part, beside what it is because of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from kdelta.model import CellResult
from kdelta.report.parted import told
from kdelta.results.types import CellName, StackDiff

if TYPE_CHECKING:
    from kdelta.report.view import Cell, Group, Table

_Place: TypeAlias = tuple[str, str, str, str, str]


def below(tables: Sequence[Table], followed: Sequence[StackDiff]) -> tuple[Table, ...]:
    """``tables`` with that in the sentences of the cells of which ``followed`` has the call stacks."""
    said = {_place(one.cell, one.patched_label): told(one.before, one.after) for one in followed}
    said = {place: text for place, text in said.items() if text}
    if not said:
        return tuple(tables)
    return tuple(replace(table, groups=tuple(_group(one, said) for one in table.groups)) for table in tables)


def _place(cell: CellResult | CellName, patched_label: str) -> _Place:
    return (cell.case, cell.metric, cell.cgroup, cell.mitigations, patched_label)


def _group(group: Group, said: Mapping[_Place, str]) -> Group:
    rows = (replace(row, cells=tuple(_cell(cell, said) for cell in row.cells)) for row in group.rows)
    return replace(group, rows=tuple(rows))


def _cell(cell: Cell, said: Mapping[_Place, str]) -> Cell:
    text = said.get(_place(cell.source, cell.kernel), "")
    if not text or cell.source.state != "ok":
        return cell
    before = f"{cell.sentence}; " if cell.sentence else f"{cell.source.verdict}: " if cell.source.verdict else ""
    return replace(cell, sentence=f"{before}by calls {text}")
