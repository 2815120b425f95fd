# SPDX-License-Identifier: GPL-2.0-or-later
"""The help: commands by what one wants to know; on a narrow terminal, what an option does stands below its name."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import click

_NARROW = 60  # columns
_LEAST = 30
# The commands as they are told, by what one wants to know; a command that is in no group stands at the end.
GROUPS = {
    "Which kernel is faster, and by how much": ("compare", "run", "sweep", "bisect", "scale"),
    "Why": ("why", "code", "trace", "leaks"),
    "A patch, a series, a published claim": ("review", "check", "reach", "watch"),
    "What was measured": ("report", "history", "resume", "export", "import", "findings"),
    "For others": ("serve", "publish", "post", "triage", "fleet", "worker"),
    "This machine": ("doctor", "kernels", "cases", "calibrate", "completion", "bisect-step"),
}


def grouped(commands: Iterable[str]) -> dict[str, list[str]]:
    """The commands by group, in the order in which they are told."""
    left = sorted(commands)
    found = {title: [name for name in names if name in left] for title, names in GROUPS.items()}
    told = {name for names in found.values() for name in names}
    found["Other commands"] = [name for name in left if name not in told]
    return {title: names for title, names in found.items() if names}


class Formatter(click.HelpFormatter):
    """click's, which takes no terminal to be narrower than 50 columns and gives 32 of them to names."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        columns = shutil.get_terminal_size().columns
        self._narrow = columns < _NARROW
        if self._narrow:
            width = max(columns - 2, _LEAST)
        super().__init__(indent_increment, width, max_width)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        if self._narrow:
            rows, col_max = [(name.rstrip(), about) for name, about in rows], 2
        super().write_dl(rows, col_max, col_spacing)
