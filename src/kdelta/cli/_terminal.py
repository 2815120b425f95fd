# SPDX-License-Identifier: GPL-2.0-or-later
"""How wide the terminal is that is printed to."""

from __future__ import annotations

import shutil
import sys

from kdelta.report.text import LEAST, WIDTH


def columns() -> int:
    """The columns of standard output, at least 40; 72 of a file or pipe, whose bytes hang on no window."""
    return seen() or WIDTH


def seen() -> int | None:
    """The columns of a terminal, at least 40; None where standard output is none."""
    if not sys.stdout.isatty():
        return None
    return max(LEAST, shutil.get_terminal_size(fallback=(WIDTH, 24)).columns)
