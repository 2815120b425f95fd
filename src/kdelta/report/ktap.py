# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as KTAP version 1 (Documentation/dev-tools/ktap.rst): one test per cell, figures in ``#`` lines.

improved and same are ok; regressed, lost, panicked, hung and failed are not ok; inconclusive, unsupported and
descriptive cells are SKIP: nothing was found out, and that is not a pass.
"""

from __future__ import annotations

from kdelta.report.registry import Format
from kdelta.report.view import Cell, Row, View

PASS = frozenset({"improved", "same"})
SKIP = frozenset({"inconclusive", "unsupported", "descriptive"})


def _plain(text: str) -> str:
    """Text that holds no directive: ``#`` starts one."""
    return " ".join(text.replace("#", "_").replace("\\", "/").split())


def test_name(title: str, row: Row, cell: Cell) -> str:
    """One name per cell, in every format for machines."""
    return f"{title}: {row.metric}" + (f" on {cell.kernel}" if cell.kernel else "")


def _result(number: int, name: str, cell: Cell) -> str:
    word = cell.verdict
    if word in SKIP:
        reason = cell.sentence or word
        return f"ok {number} {_plain(name)} # SKIP {_plain(reason)}"
    return f"{'ok' if word in PASS else 'not ok'} {number} {_plain(name)}"


def _figures(name: str, row: Row, cell: Cell) -> list[str]:
    lines = [f"# {_plain(name)}: baseline {row.baseline}, effect {cell.figure}, {cell.verdict}"]
    lines += [f"# {_plain(text)}" for text in (*row.aside, cell.sentence) if text]
    return lines + [f"# see note {number}" for number in cell.notes]


def render(view: View) -> str:
    """One flat list of tests; a closed gate is a failed test of its own, first."""
    body: list[str] = []
    number = 0
    if view.gate:
        number += 1
        body += [f"# {_plain(view.gate)}", f"not ok {number} gate"]
    for group, row, cell in view.cells():
        number += 1
        name = test_name(group.title, row, cell)
        body += [*_figures(name, row, cell), _result(number, name, cell)]
    notes = [f"# note {index}: {_plain(text)}" for index, text in enumerate(view.footnotes, 1)]
    head = ["KTAP version 1", f"1..{number}", f"# {_plain(view.title)}", f"# {_plain(view.summary)}"]
    return "\n".join([*head, *body, *notes]) + "\n"


FORMAT = Format(name="ktap", suffix=".ktap", render=render, help="KTAP version 1 for test systems")
