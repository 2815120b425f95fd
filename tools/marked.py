# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of documents that a tool makes, between two marks that name it."""

from __future__ import annotations


def marks(tool: str) -> tuple[str, str]:
    """The lines before and after what ``make TOOL`` has made."""
    return f"<!-- made by make {tool}: begin -->", f"<!-- made by make {tool}: end -->"


def written(text: str, made: str, tool: str) -> str:
    """``text`` with ``made`` between the marks of ``tool``.

    Raises:
        ValueError: there are none.
    """
    first, last = marks(tool)
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not (begin and end):
        raise ValueError(f"no marks {first} ... {last}")
    return f"{before}{begin}\n{made}\n{end}{after}"
