# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as a part of a cover letter: plain text, never wider than 72 columns.

No line looks like one that mbox readers, ``git am`` or mail signatures take as theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kdelta.report.registry import Format
from kdelta.report.sections import opening, parts, tables
from kdelta.report.text import WIDTH
from kdelta.report.view import View

_TAKEN = re.compile(r"^(>?From |---|diff |Index: |-- ?$)")


def safe(line: str) -> str:
    """A line that nothing takes as its own, one column wider at most."""
    if line and not line.strip("-"):
        return line.replace("-", "=")  # a rule of dashes would end the commit message
    return f" {line}" if _TAKEN.match(line) else line


def render(view: View) -> str:
    """A table for a cover letter with legend, method, how to reproduce and what was not measured."""
    width = WIDTH - 1  # one column is kept for safe
    lines = [*opening(view, width), *tables(view, width)]
    for heading, text in parts(view, width):
        lines += [f"{heading}:", *text, ""]
    return "\n".join(map(safe, lines)).rstrip() + "\n"


def joined(texts: Iterable[str]) -> str:
    """Texts of 72 columns below each other, as the body of a mail."""
    return "\n".join("\n".join(map(safe, text.strip("\n").split("\n"))) + "\n" for text in texts)


FORMAT = Format(name="mail", suffix=".mail.txt", render=render, help="cover-letter text, 72 columns")
