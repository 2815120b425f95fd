# SPDX-License-Identifier: GPL-2.0-or-later
"""What a case is called amid a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

_LONG, _BRIEF = 40, 32  # characters of a command in a sentence: more than the first are told by so many


def quoted(case: str) -> str:
    """A command in quotes, so that the dot of ``tar c .`` and a full stop behind it are told apart."""
    return f'"{case}"' if " " in case.partition(" (")[0] or case.endswith(".") else case


def brief_of(titles: Iterable[str]) -> dict[str, str]:
    """Long commands by their first words without a quote: the table has all of them. Those alike stay long."""
    found = {}
    for title in set(titles):
        command, _, rest = title.partition(" (")
        words = list(takewhile(lambda word: not set(word) & set("'\""), command.split(" ")))
        while words and len(" ".join(words)) > _BRIEF:
            words.pop()
        if words and len(command) > _LONG:
            found[title] = " ".join([*words, "..."]) + (f" ({rest}" if rest else "")
    return {title: brief for title, brief in found.items() if list(found.values()).count(brief) == 1}
