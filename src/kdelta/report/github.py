# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as workflow commands of GitHub Actions, which shows them as annotations of the job.

Syntax: docs.github.com, "Workflow commands for GitHub Actions": ``::error file=F,line=N,title=T::message``; %, CR and
LF are escaped everywhere, ``:`` and ``,`` in properties too.
"""

from __future__ import annotations

from kdelta.report.located import WHOLE_TREE, Located, located
from kdelta.report.registry import Format
from kdelta.report.standing import standing
from kdelta.report.view import View

_COMMANDS = {"fail": "error", "warning": "warning", "success": "notice"}


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _command(one: Located) -> str:
    place, known = one.location, one.location is not WHOLE_TREE
    where = f"file={_property(place.path)},line={place.line}," if known else ""
    title = f"title={_property(f'kdelta {one.finding.title}')}"
    return f"::{_COMMANDS[one.finding.word]} {where}{title}::{_message(one.finding.text)}"


def render(view: View) -> str:
    """One annotation for each thing to look at, and a notice with the counts at the end."""
    lines = [_command(one) for one in located(view)]
    return "\n".join([*lines, f"::notice title=kdelta::{_message(standing(view).line)}"]) + "\n"


FORMAT = Format(name="github", suffix=".github.txt", render=render, help="annotations of GitHub Actions")
