# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as one comment of a pull or merge request: the line, what to look at, and the whole report folded away."""

from __future__ import annotations

from kdelta.report import markdown
from kdelta.report.markdown import escape
from kdelta.report.standing import standing
from kdelta.report.view import View

_MOST_CHARS = 60_000  # GitHub takes 65536
_MOST_FINDINGS = 20
_WORDS = {"fail": "regression", "warning": "to look at", "success": "nothing became worse"}


def marker(context: str) -> str:
    """The first line, by which the comment is found again; it does not show."""
    return f"<!-- kdelta {context} -->"


def render(view: View, context: str) -> str:
    """Markdown of at most ``_MOST_CHARS`` characters; a whole report that does not fit is left out with a word."""
    found = standing(view)
    head = [
        marker(context), f"### kdelta: {_WORDS[found.word]}", "", escape(found.line), "",
        *(f"- **{escape(one.title)}**: {escape(one.text)}" for one in found.findings[:_MOST_FINDINGS]),
    ]  # fmt: skip
    if len(found.findings) > _MOST_FINDINGS:
        head.append(f"- and {len(found.findings) - _MOST_FINDINGS} more")
    whole = ["", "<details><summary>The whole report</summary>", "", str(markdown.render(view)), "</details>", ""]
    if sum(map(len, (*head, *whole))) + len(head) + len(whole) <= _MOST_CHARS:
        return "\n".join([*head, *whole])
    return "\n".join([*head, "", "The whole report is too long for a comment; it is among the job's files.", ""])[
        :_MOST_CHARS
    ]
