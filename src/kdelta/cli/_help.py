# SPDX-License-Identifier: GPL-2.0-or-later
"""The help on a narrow terminal: what an option does stands below its name, not in a column of one word."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import click

_NARROW = 60  # columns
_LEAST = 30


class Formatter(click.HelpFormatter):
    """click's, which takes no terminal to be narrower than 50 columns and gives 32 of them to names."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        columns = shutil.get_terminal_size().columns
        self._narrow = columns < _NARROW
        if self._narrow:
            width = max(columns - 2, _LEAST)
        super().__init__(indent_increment, width, max_width)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl(rows, 2 if self._narrow else col_max, col_spacing)
