# SPDX-License-Identifier: GPL-2.0-or-later
"""Indentation of C lines that lost theirs, by kernel style (Documentation/process/coding-style.rst). Pure.

Only the look of a repaired patch hangs on it, never which line goes where.
"""

from __future__ import annotations

import re

_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_CONTROL = re.compile(
    r"^(?:\}\s*)?(?:else\s+)?(?:if|for|while|switch|[a-z_]*for_each[a-z_]*)\s*\(.*\)$|^(?:\}\s*)?(?:else|do)$"
)
_LABEL = re.compile(r"^[A-Za-z_]\w*:$")
_CASE = re.compile(r"^(?:case\b.*|default\s*):$")


def depth_of(line: str) -> int:
    """Depth in tabs of eight."""
    blanks = line[: len(line) - len(line.lstrip())]
    return len(blanks.expandtabs(8)) // 8


class Indenter:
    """Reads the lines of a file's new side in order, and says how deep the next one stands."""

    def __init__(self) -> None:
        self._depth = 0
        self._statement = 0  # depth of the statement that is open
        self._blocks: list[int] = []
        self._parens = 0
        self._bare: int | None = None  # depth of a control statement without a brace, waiting for its body
        self._comment = False

    def suggest(self, text: str) -> str:
        """The blanks to stand before ``text`` (already stripped)."""
        if text.startswith("#") or (_LABEL.match(text) and not _CASE.match(text)):
            return ""
        if self._comment and text.startswith("*"):
            return "\t" * self._depth + " "
        if self._parens > 0:
            return "\t" * (self._statement + 2)
        if text.startswith("}") or _CASE.match(text):
            return "\t" * (self._blocks[-1] if self._blocks else max(0, self._depth - 1))
        return "\t" * self._depth

    def read(self, line: str) -> None:
        """Take note of ``line``, whose indentation is right."""
        text = _STRING.sub('""', line).strip()
        if not text or text.startswith("#"):
            return
        depth = depth_of(line)
        if self._comment or text.startswith("/*"):
            self._depth = depth
            self._comment = "*/" not in text
            return
        if self._parens <= 0:
            self._statement = depth
        self._parens = max(0, self._parens + text.count("(") - text.count(")"))
        if not self._parens:
            self._close(text)

    def _close(self, text: str) -> None:
        depth = self._statement
        if text.startswith("}") and self._blocks:
            self._blocks.pop()
        if text.endswith("{"):
            self._blocks.append(depth)
            self._depth, self._bare = depth + 1, None
        elif _CONTROL.match(text):
            self._depth, self._bare = depth + 1, depth if self._bare is None else self._bare
        elif _CASE.match(text) or _LABEL.match(text):
            self._depth = depth + 1
        elif self._bare is not None:
            self._depth, self._bare = self._bare, None
        else:
            self._depth = depth
