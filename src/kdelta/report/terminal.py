# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a terminal: 72 columns of plain text, or as many as the terminal has, coloured only when asked."""

from __future__ import annotations

import re

from kdelta.report.registry import Format
from kdelta.report.sections import opening, parts, tables
from kdelta.report.text import LEAST, PROSE, WIDTH, wrap
from kdelta.report.view import View

_GREEN, _RED, _YELLOW, _BOLD, _DIM, _RESET = "\033[32m", "\033[1;31m", "\033[33m", "\033[1m", "\033[2m", "\033[0m"
_PAINT = (
    (re.compile(r"\(I\)"), _GREEN),
    (re.compile(r"\(R\)"), _RED),
    (re.compile(r"(?<=  )\?(?= |$)"), _YELLOW),
    (re.compile(rf"^-{{{LEAST},}}$"), _DIM),
)


def _paint(line: str) -> str:
    for pattern, colour in _PAINT:
        line = pattern.sub(f"{colour}\\g<0>{_RESET}", line)
    return line


def _has_causes(view: View) -> bool:
    """Whether functions are known behind any row or step."""
    steps = [step for table in view.sweeps for step in table.source.steps]
    rows = [cell.source for _, _, cell in view.cells(explaining=True)]
    return any(row.because_line or row.because for row in rows) or any(s.because_line or s.because for s in steps)


def render(view: View, colour: bool = False, width: int = WIDTH) -> str:
    """The verdicts, the legend, and what a reader must know beside them; the rest is in the other formats.

    ``width``: tables take all of it, where they need it; sentences end at 100 columns.
    """
    width = max(width, LEAST)
    prose = min(width, PROSE)
    lines = [*opening(view, prose), *tables(view, width)]
    if colour:
        lines = [_paint(line) for line in lines]
        gate = len(wrap(f"GATE: {view.gate}", prose)) if view.gate else 0
        lines[:gate] = [f"{_RED}{line}{_RESET}" for line in lines[:gate]]
        start = gate + 1 if gate else 0
        end = start + len(wrap(view.headline.text, prose)) if view.headline.text else start
        lines[start:end] = [f"{_BOLD}{line}{_RESET}" for line in lines[start:end]]
    if not view.options.causes and _has_causes(view):
        what = "step" if view.sweeps else "case"
        causes = f"What is behind each {what}: kdelta report {view.result.experiment.id} --causes"
        lines += [*wrap(causes, prose), ""]
    for heading, text in parts(view, prose):
        lines += [f"{_BOLD}{heading}{_RESET}" if colour else heading, *text, ""]
    return "\n".join(lines).rstrip() + "\n"


FORMAT = Format(name="terminal", suffix=".txt", render=render, help="plain text, as wide as the terminal")
