# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures that a mail gives itself: the sentences and the rows of tables that hold them, as they were written. Pure.

None is judged. What is quoted should be whole: a sentence over several lines is one, and of a table the line of its
columns is told before its rows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from kdelta.kernel import tables
from kdelta.kernel.figure_words import FIGURE

_INDEX = re.compile(r"\w\)?\s*[:=]\s*(\d[\d,]*(?:\.\d+)?)(?![\w:;])")  # of a benchmark without a unit: "name: 841.8"
_SIDES = r"before|after|with|without|base|baseline|patched|unpatched|vanilla|mainline|old|new"
_SIDE = re.compile(  # "Before:", "8 jobs, after the patchset:", "*** before, 1000 files ***"
    rf"(?:(?:[^:.]{{1,24}},\s)?(?:{_SIDES})\b[^:]{{0,40}}:|([*=#~-]{{2,}})\s*(?:{_SIDES})\b[^:]{{0,80}}[*=#~-]{{2,}})$",
    re.I,
)
_VERB = re.compile(r"\b(?:gets?|got|is|are|was|were|becomes?|goes?|went|takes?|took|costs?|drops?|needs?|improves?)\b")
_ONE = r"(?<![\w.])\d[\d,]*(?:\.\d+)?[kKMGT]?(?![\w.])"
_SIDED = re.compile(  # "Before: 125.3", and the row of one kernel in a table whose columns are of something else
    rf"(?:\|\s*)?({_SIDES})\b(?:(?:[^:]{{0,40}}:|[^:|]{{0,40}}(?:\s\s|\t|\|))[^:]*{_ONE}|\s{_ONE}$)", re.I
)
_VERSION = r"\bv?\d+\.\d+(?:\.\d+|-rc\d+)[\w.+-]*"
_TWO = rf"\b(?:{_SIDES}|patch|delta|diff)\b|{_VERSION}[\s|]+{_VERSION}"
_COLUMNS = re.compile(_TWO, re.I)  # of a table of two kernels
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?[kKMGT]?(?![\w.])")
_GAP = re.compile(r"[^\s.!?:](?:[ \t]{2,}|\t)\S")
_CSV = re.compile(r"[^,;:!?(){}]{1,40}(?:, ?[^,;:!?(){}\s]{1,24}){1,15}")
_VALUE = re.compile(r"[-+]?\d+(?:\.\d+)?%?")
_BAR = re.compile(r"[^|\s].*\|[@*#\s]*\|$")  # of a histogram
_MARK = re.compile(r"^[-*+]\s")  # of a list
_BULLET = re.compile(r"(?:[-*+o]|\d+[.)]|\[\d+\])\s")
_TRAILER = re.compile(r"[A-Z][A-Za-z-]+(?:-by|-id)?: ")
_OF_GIT = re.compile(r"(?:[A-Z][A-Za-z]*(?:-[A-Za-z]+)*-[Bb]y|Fixes|Link|Closes|Cc|Message-I[Dd]|Change-Id): ")
_OF_LOG = re.compile(r"(?:<\d>)?\[ *\d+\.\d{6}\]")  # of the kernel, with the time
_OF_C = re.compile(r"\s.*(?:\);|\*/|[{}])$")  # a program that is shown
_LIST = re.compile(r"[^:]{1,60}:\s+~?\d[^:]*(?:->|=>|\u2192)\s*\d")  # "NAME: 4.1 us -> 3.9 us", an item of a list
_ALIGNED = re.compile(r"\s*[^:]{1,40}:\s{2,}\S")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z]|\w+\(\d?\))")
_LINE_CHARS = 200
_SENTENCE_CHARS = 400
_WRAPPED_CHARS = 50  # of a line that its writer broke off; shorter ones are rows of a table
_MOST_LINES = 12  # of a paragraph


def told(text: str) -> Iterator[str]:
    """Sentences and rows of ``text`` with a figure; no quotes of other mails.

    Figures below a line such as ``Before:`` are told with it, and a table below what says of what its figures are.
    """
    lines = _apart(text.split("\n"))
    side, below, columns, above, at = "", False, "", "", 0  # below: something of that side was told
    of_two = begun = unsaid = False  # the table under way has columns of two kernels; it has had a row
    while at < len(lines):
        said, taken, found = " ".join(lines[at].split()), 1, list[str]()
        if not said:
            goes_on = lines[at + 1 : at + 2] and lines[at + 1][:1].isspace()
            side, columns, of_two, begun = side if goes_on or not below else "", "", False, False
        elif _is_side(said):
            side, below = f"{said.strip('*=#~- :')}:", False
        elif _foreign(said) or _OF_GIT.match(said) or _OF_C.match(lines[at].rstrip()):
            pass
        elif _is_of_pair(lines, at):
            found, columns = [*([columns] if columns else []), f"{side} {said}".strip()], ""
        elif not _is_row(lines[at]):
            taken = _paragraph(lines[at : at + _MOST_LINES])
            whole = " ".join(" ".join(lines[at : at + taken]).split())
            sentences = [one for one in _SENTENCE.split(whole) if len(one) <= _SENTENCE_CHARS]
            found = [one for one in sentences if _has_figure(one, side)]
            above = _above(sentences)
            unsaid = above not in found
        elif _has_figure(said, side) or _is_measured(said, of_two or tables.are_two_sides(above), begun):
            found, columns = [*([columns] if columns else []), said], ""
        elif _COLUMNS.search(said) or (not begun and _names_columns(said)):
            columns, of_two = said, bool(_COLUMNS.search(said))
        if above and found and taken == 1 and found[-1] != above:
            found, of_two = [*([above] if unsaid else []), *found], of_two or tables.are_two_sides(above)
            above = ""
        yield from (f"{'' if of_two else side} {_MARK.sub('', one)}".strip() for one in found)
        side = side if found or taken == 1 else ""  # text goes on
        begun = begun or (bool(said) and _is_row(lines[at]))
        below = below or bool(found)
        at += taken


def _above(sentences: Sequence[str]) -> str:
    """The line above a table that says of what its figures are: ``microseconds:``, ``ops/s, before and after:``."""
    last = sentences[-1] if sentences else ""
    return last if tables.is_heading(last) and (tables.unit_of(last) or tables.are_two_sides(last)) else ""


def _apart(lines: Sequence[str]) -> list[str]:
    """``lines`` with the fields of tables whose columns are parted by commas apart, as those of other tables are."""
    found, fields = list(lines), [_fields(line) for line in lines]
    for at, mine in enumerate(fields):
        around = [one for one in fields[max(at - 1, 0) : at] + fields[at + 1 : at + 2] if len(one) == len(mine)]
        if mine and any(all(map(_VALUE.fullmatch, one[1:])) for one in (mine, *around)) and around:
            found[at] = "  ".join(mine)
    return found


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")] if _CSV.fullmatch(line.strip()) else []


def _foreign(said: str) -> bool:
    """Whether a line is of another mail, or of something else than text."""
    apart = _OF_LOG.match(said) or _BAR.match(said)
    return bool(apart) or len(said) > _LINE_CHARS or said[0] == ">" or (said[0] == "|" and said.count("|") == 1)


def _is_row(line: str) -> bool:
    said = line.strip()
    return said.startswith("|") or said.count(" | ") > 1 or bool(_GAP.search(said))


def _is_measured(row: str, of_two: bool, begun: bool) -> bool:
    """Whether a row without a unit has figures: any two below two kernels, two with decimals below whatever columns."""
    numbers = _NUMBER.findall(row)
    return len(numbers) > 1 and (of_two or (begun and sum("." in number for number in numbers) > 1))


def _names_columns(row: str) -> bool:
    """Whether a row with figures of no kind may be the first of a table: names, or the sizes that were tried."""
    return len(row) <= _LINE_CHARS and len(re.findall(r"\w+", row)) > 1


def _is_of_pair(lines: Sequence[str], at: int) -> bool:
    """Whether the line has a number of one side, and the one before or after it one of another."""
    around = (_SIDED.match(line.strip()) for line in lines[max(at - 1, 0) : at + 2])
    mine = _SIDED.match(lines[at].strip())
    return mine is not None and any(side[1].lower() != mine[1].lower() for side in around if side)


def _paragraph(lines: Sequence[str]) -> int:
    """How many of ``lines`` the paragraph has that begins with the first, as its writer broke them off."""
    for index, (line, following) in enumerate(itertools.pairwise(lines), 1):
        said = following.strip()
        ends = len(line.strip()) < _WRAPPED_CHARS or line.rstrip().endswith(":") or _begins_side(said)
        ends = ends or bool(_ALIGNED.match(line) and _ALIGNED.match(following))
        ends = ends or bool(_LIST.match(line.strip()) and (_LIST.match(said) or line.rstrip().endswith(")")))
        if ends or not said or _foreign(said) or _is_row(said) or _BULLET.match(said) or _TRAILER.match(said):
            return index
    return len(lines)


def _begins_side(said: str) -> bool:
    """Whether a line below another is of the figures that follow it, rather than the end of a sentence."""
    return _is_side(said) and (not said[0].islower() or " " not in said)


def _is_side(said: str) -> bool:
    """Whether what follows is of one kernel; "Without it waits get cheaper:" is a sentence."""
    return bool(_SIDE.match(said)) and not tables.are_two_sides(said) and not _VERB.search(said)


def _has_figure(line: str, side: str) -> bool:
    """``side``: of which kernel the lines here are. One index without a unit is a figure then (``Time: 12.412``)."""
    indexes = _INDEX.findall(line)
    enough = len(indexes) > (0 if side else 1)
    return bool(FIGURE.search(line)) or (enough and any("." in index for index in indexes))
