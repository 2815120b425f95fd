# SPDX-License-Identifier: GPL-2.0-or-later
"""Text in columns: widths are terminal cells, so that wide characters keep the table straight."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from rich.cells import cell_len

WIDTH = 72
LEAST, PROSE = 40, 100  # columns of a terminal: what every text fits, and where sentences end however wide it is
_BREAKS = re.compile(r"(?<!\d) | (?!(?:%|[KMG]i?B|B|[num]?s)(?![\w/]))")  # not between a figure and its unit


def note_numbers(numbers: Iterable[int]) -> str:
    """``1,3-6``: four and more in a row as their ends, as a sweep of a suite has a hundred notes."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 3 else ",".join(map(str, run)) for run in runs)


def pad(text: str, width: int, right: bool = False) -> str:
    """``text`` filled up with spaces to ``width`` cells."""
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space


def head(text: str, width: int) -> tuple[str, str]:
    """The longest start of ``text`` that fits ``width`` cells (at least one character), and the rest."""
    used = 0
    for index, char in enumerate(text):
        used += cell_len(char)
        if used > width and index:
            return text[:index], text[index:]
    return text, ""


def fit(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, with an ellipsis where it was cut."""
    if cell_len(text) <= width:
        return text
    return head(text, width - 1)[0] + "…" if width > 1 else "…"


def ends(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells; of a long one both ends, because long names often begin alike."""
    if cell_len(text) <= width:
        return text
    start = head(text, width // 2)[0]
    room = width - cell_len(start) - 1
    return f"{start}…" + next(text[at:] for at in range(len(text) + 1) if cell_len(text[at:]) <= room)


def rule(used: int, width: int) -> str:
    """The line below a table's head: as wide as the text, in more than 72 columns as wide as the table."""
    return "-" * min(width, max(used, WIDTH))


def _pieces(text: str, width: int) -> Iterator[str]:
    for word in _BREAKS.split(text):
        rest = word
        while cell_len(rest) > width:
            start, rest = head(rest, width)
            yield start
        yield rest


def wrap(text: str, width: int = WIDTH, first: str = "", then: str | None = None) -> list[str]:
    """Lines of at most ``width`` cells: ``first`` before the first, ``then`` (its blank) before the others.

    A word longer than a line is broken; a figure and its unit are one.
    """
    then = " " * cell_len(first) if then is None else then
    room = width - max(cell_len(first), cell_len(then))
    lines: list[str] = []
    line = ""
    for word in _pieces(text, room):
        joined = f"{line} {word}" if line else word
        if line and cell_len(joined) > room:
            lines.append(line)
            joined = word
        line = joined
    lines.append(line)
    return [((then if index else first) + line).rstrip() for index, line in enumerate(lines)]


def _shell_pieces(word: str, width: int) -> list[str]:
    """``word`` quoted for a shell, in pieces of at most ``width`` cells that stand for one word when joined."""
    pieces = []
    while cell_len(shlex.quote(word)) > width:
        size = len(head(word, width - 2)[0])
        while size > 1 and cell_len(shlex.quote(word[:size])) > width:
            size -= 1
        pieces.append(shlex.quote(word[:size]))
        word = word[size:]
    return [*pieces, shlex.quote(word)]


def _balanced(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def wrap_command(command: str, width: int = WIDTH) -> list[str]:
    """A shell command over lines that can still be pasted: they end in a backslash where one goes on.

    Commands that follow each other (``&&``) begin a line each; one with unbalanced quotes is only broken into lines.
    """
    first, both, then = command.partition(" && ")
    if both and _balanced(first):  # else it stands within quotes
        return [*wrap_command(first, width), *wrap_command(then, width)]
    if cell_len(command) <= width:
        return [command]
    try:
        words = shlex.split(command)
    except ValueError:
        return wrap(command, width)
    lines, line = [], ""
    for word in words:
        pieces = _shell_pieces(word, width - 4)
        if line and cell_len(line) + 1 + cell_len(pieces[0]) > width - 2:
            lines.append(f"{line} \\")
            line = f"  {pieces[0]}"
        else:
            line = f"{line} {pieces[0]}" if line else pieces[0]
        for piece in pieces[1:]:  # the same word: no space may come between
            lines.append(f"{line}\\")
            line = piece
    return [*lines, line]
