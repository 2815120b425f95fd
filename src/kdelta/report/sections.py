# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts that plain-text reports share, in order: a heading and lines that fit the width."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len

from kdelta.report import system_calls
from kdelta.report.table import sweep_lines, table_lines
from kdelta.report.text import WIDTH, wrap, wrap_command
from kdelta.report.view import View


def bullets(texts: Iterable[str], width: int = WIDTH) -> list[str]:
    """Each text as ``- text``."""
    return [line for text in texts for line in wrap(text, width, first="- ")]


def opening(view: View, width: int = WIDTH) -> list[str]:
    """The gate above everything, the title, the counts."""
    lines = [*wrap(f"GATE: {view.gate}", width), ""] if view.gate else []
    refs = f" [{','.join(map(str, view.general_notes))}]" if view.general_notes else ""
    return [*lines, *wrap(view.title, width), *wrap(view.summary + refs, width), ""]


def tables(view: View, width: int = WIDTH) -> list[str]:
    """All tables and sweeps with an empty line after each."""
    lines: list[str] = []
    for table in view.tables:
        lines += [*table_lines(table, width), ""]
    for sweep in view.sweeps:
        lines += [*sweep_lines(sweep, width), ""]
    for calls in view.system_calls:
        lines += [*system_calls.lines(calls, width), ""]
    return lines or ["Nothing was measured.", ""]


def notes(view: View, width: int = WIDTH) -> list[str]:
    """Numbered footnotes."""
    lines: list[str] = []
    for number, text in enumerate(view.footnotes, 1):
        lines += wrap(text, width, first=f"[{number}] ")
    return lines


def kernels(view: View, width: int = WIDTH) -> list[str]:
    """What each label stands for."""
    return [line for label, text in view.kernels for line in wrap(f"{label}: {text}", width, first="- ")]


def reproduce(view: View, width: int = WIDTH) -> list[str]:
    """The command, pasteable, and what stands beside it."""
    return [*(wrap_command(view.command, width) if view.command else []), *bullets(view.reproduce, width)]


def legacy(view: View, width: int = WIDTH) -> list[tuple[str, list[str]]]:
    """Other tools' views, each labelled as not deciding."""
    title = "Legacy view {} (does not decide)"
    return [
        (title.format(name), [line for text in texts for line in wrap_fixed(text, width)])
        for name, texts in view.legacy
    ]


def wrap_fixed(text: str, width: int) -> list[str]:
    """A line that was laid out elsewhere: kept as it is, broken only where it is too long."""
    return [text.rstrip()] if cell_len(text) <= width else wrap(text.strip(" "), width, then="    ")


def parts(view: View, width: int = WIDTH) -> list[tuple[str, list[str]]]:
    """(heading, lines) of everything after the tables; parts without lines are left out."""
    found = [
        ("Legend", [line for text in view.legend for line in wrap(text, width)]),
        ("Notes", notes(view, width)),
        ("Kernels", kernels(view, width)),
        ("How it was measured", bullets(view.measured, width)),
        ("How to reproduce", reproduce(view, width)),
        ("What was not measured", bullets(view.not_measured, width)),
        ("Faulty boots", bullets(view.faulty, width)),
        *legacy(view, width),
    ]
    return [(heading, lines) for heading, lines in found if lines]
