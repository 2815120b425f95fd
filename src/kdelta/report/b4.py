# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as b4 reads a per-patch check (``prep-perpatch-check-cmd``): a line for each thing to look at.

b4 0.16, ``LoreMessage.run_local_check``: a line with "ERROR:" fails the patch, any other line is a warning, no output
with exit code 0 is "passed all checks"; "-:" at the start of a line is cut off.
"""

from __future__ import annotations

from kdelta.report.registry import Format
from kdelta.report.standing import Finding, standing
from kdelta.report.view import View


def _line(one: Finding) -> str:
    text = f"{one.title}: {one.text}"
    return f"ERROR: {text}" if one.word == "fail" else text.replace("ERROR:", "ERROR")


def render(view: View) -> str:
    """Regressions, then what was not found out; "" where there is nothing to look at."""
    return "".join(f"{_line(one)}\n" for one in standing(view).findings)


FORMAT = Format(name="b4", suffix=".b4.txt", render=render, help="lines for b4's per-patch checks")
