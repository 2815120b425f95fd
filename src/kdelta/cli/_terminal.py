# SPDX-License-Identifier: GPL-2.0-or-later
"""How wide the terminal is that is printed to."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from kdelta.report.text import LEAST, WIDTH

if TYPE_CHECKING:
    from pathlib import Path


def columns() -> int:
    """The columns of standard output, at least 40; 72 of a file or pipe, whose bytes hang on no window."""
    return seen() or WIDTH


def of(output: Path | None) -> int:
    """The columns of what is written to ``output``, without one to standard output."""
    return WIDTH if output is not None else columns()


def seen() -> int | None:
    """The columns of a terminal, at least 40; None where standard output is none."""
    if not sys.stdout.isatty():
        return None
    return max(LEAST, shutil.get_terminal_size(fallback=(WIDTH, 24)).columns)
