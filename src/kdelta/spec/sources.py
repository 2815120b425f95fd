# SPDX-License-Identifier: GPL-2.0-or-later
"""What a C file of workloads holds, read from its text: nothing is compiled to list the cases. Pure.

``CASE``, ``CASE_N`` and ``OPS`` of guest/case.h start a line outside of ``#if`` and take plain strings and decimal
numbers; anything else there is refused, so that what is read here is what the compiler registers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from kdelta.errors import UserError

Kind = Literal["cases", "testcase", "workload", ""]

OPS_USUAL = 64  # operations of an exact interval where a case says nothing; as in guest/case.c
OPS_MOST = 1_000_000
NUMBER_MOST = 2**32

# Every alternative is entered by its first character and never given back: linear in the text. No group is possessive:
# such ones match too little before Python 3.11.5 where one of their turns fails half-way (gh-106052).
_TOKEN = re.compile(
    r"""/\*(?s:.*?)(?:\*/|\Z)"""
    r"""|//[^\n]*+"""
    r"""|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"?"""
    r"""|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*'?"""
)
_STRING = r"\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*\""
_LITERAL = r"\"[^\"\\\n]*+(?:\\[\"\\][^\"\\\n]*+)*\""
_CASE = re.compile(
    rf"CASE(?P<n>_N)?\(\s*+(?P<name>[a-z][a-z0-9_]*+)\s*+,\s*+(?P<title>(?:{_LITERAL}\s*+)+)"
    r"(?P<numbers>(?:,\s*+(?:0|[1-9][0-9]{0,9}+)\s*+)*)\)"
)
_OPS = re.compile(r"OPS\(\s*+(?P<name>[a-z][a-z0-9_]*+)\s*+,\s*+(?P<number>[1-9][0-9]{0,9})\s*+(?P<per>/\s*+N\s*+)?\)")
_START = re.compile(
    r"^(?:[ \t]*+#[ \t]*+(?P<condition>if|ifdef|ifndef|endif)\b|(?P<macro>CASE|CASE_N|OPS)\s*+\()", re.MULTILINE
)
_HOOK = re.compile(r"^(?:SETUP|SHARED|AFTER|TEARDOWN|EVERY_CPU)\(\s*+(?P<name>\w++)\s*+(?:\)|,)", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*+#[ \t]*+include\s*+(?:\"|<case\.h>)", re.MULTILINE)
_DESCRIPTION = re.compile(r"char\s*+\*\s*+testcase_description\s*+=\s*+(?P<title>" + _STRING + ")")
_FORMS = 'CASE(name, "title"), CASE_N(name, "title", 1, 10) or OPS(name, 16), OPS(name, 1000 / N), names in lower case'


class CaseSource(Struct, frozen=True, kw_only=True):
    """One case as its source has it: ``number`` is its N where it is one of several."""

    name: str
    title: str
    number: int | None
    exact_ops: int


def without_comments(text: str) -> str:
    """C source with comments blanked; lines keep their numbers."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        return "\n" * token.count("\n") or " " if token.startswith("/") else token

    return _TOKEN.sub(blank, text)


def kind_of(text: str) -> Kind:
    """What the C source ``text`` defines: cases, a will-it-scale testcase, a workload with a TOML file, or none."""
    code = without_comments(text)
    if any(start["macro"] for start in _START.finditer(code)):
        return "cases"
    if _DESCRIPTION.search(code) and re.search(r"\btestcase\s*+\(", code):
        return "testcase"
    return "workload" if re.search(r"^WORKLOAD\(", code, re.MULTILINE) else ""


def description_of(text: str) -> str:
    """The ``testcase_description`` of a will-it-scale testcase, "" where there is none."""
    match = _DESCRIPTION.search(without_comments(text))
    return _unquoted(match["title"]) if match else ""


def _unquoted(literals: str) -> str:
    return "".join(re.sub(r"\\(.)", r"\1", one[1:-1]) for one in re.findall(_STRING, literals))


def _operations(ops: re.Match[str] | None, number: int | None) -> int:
    """As ``operations()`` in guest/case.c."""
    if ops is None:
        return OPS_USUAL
    found = int(ops["number"])
    if ops["per"]:
        found = max(1, found // (number or 1))
    return min(found, OPS_USUAL) if number else found


def _numbers(match: re.Match[str]) -> list[int | None]:
    """The numbers of CASE_N; of CASE the one None.

    Raises:
        ValueError: with the reason, where they do not do.
    """
    found = [int(one) for one in match["numbers"].replace(",", " ").split()]
    if not match["n"]:
        if found:
            raise ValueError("CASE takes a name and a title; a case for each of several numbers is CASE_N")
        return [None]
    if not found or found == [0] or len(set(found)) != len(found) or max(found) > NUMBER_MOST:
        raise ValueError(f"CASE_N takes one number or more behind the title, each once and at most {NUMBER_MOST}")
    return list(found)


_PARENTHESIS, _TEXT = re.compile(r"[()]"), re.compile(r"\S")
_COUNTER = re.compile(
    r"\btestcase\s*\([^()*]{0,80}\*\s*(\w+)"
)  # will-it-scale's: (unsigned long long *iterations, ...)
# Called in a branch that is not taken, or that ends the program.
_UNTAKEN = ("assert", "perror", "exit", "_exit", "abort", "err", "errx", "printf", "fprintf", "sizeof")


def _steps(counter: str) -> re.Pattern[str]:
    """What says where the ``counter`` of a testcase rises, and which calls hang on a condition."""
    return re.compile(
        r"\b(?P<loop>for|while|do)\b|\b(?P<branch>if|else)\b|(?P<open>\{)|(?P<close>\})"
        rf"|(?P<count>\*\s*{counter}(?:\s*\))?\s*(?:\+\+|\+=)|\+\+\s*\(?\s*\*\s*{counter}\b)"
        rf"|\b(?!(?:{'|'.join(_UNTAKEN)})\b)(?P<call>\w+)\s*\("
    )


def _closed(code: str) -> dict[int, int]:
    """Where each parenthesis is closed again: the place behind that, the end of the code where it is not."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for match in _PARENTHESIS.finditer(code):
        if match[0] == "(":
            ends[match.start()] = len(code)
            opened.append(match.start())
        elif opened:
            ends[opened.pop()] = match.end()
    return ends


def _text_from(code: str, at: int) -> int:
    """The first place from ``at`` on that is no white space."""
    match = _TEXT.search(code, at)
    return match.start() if match else len(code)


def _after_head(code: str, at: int, ends: Mapping[int, int]) -> int:
    """Where the body of a loop begins whose keyword ends at ``at``; ``ends``: of ``_closed``."""
    at = _text_from(code, at)
    while at in ends:
        at = ends[at]
    return _text_from(code, at)


class _Body(Struct, frozen=True):
    """The braces around a place: of a loop, or of what is done on a condition."""

    loop: bool = False
    branch: bool = False


def counts_in_inner_loop(text: str) -> bool:
    """Whether the operations of a testcase of will-it-scale are not alike, so that a few do not stand for all.

    It counts iterations in a loop within its endless one, as page_fault1.c does, or makes a call in some of them alone,
    as fallocate1.c, which truncates its file once in 128.
    """
    code = _TOKEN.sub(lambda token: '""' if token[0][0] in "\"'" else token[0], without_comments(text))
    ends, named = _closed(code), _COUNTER.search(code)
    bodies: dict[int, _Body] = {}  # by the brace that begins it
    blocks: list[_Body] = []
    single, until = _Body(), -1  # a body without braces, and its end
    past = -1  # the end of a condition
    for token in _steps(named[1] if named else "iterations").finditer(code, max(0, code.find("testcase"))):
        around = [*blocks, single] if token.start() < until else blocks
        loops = sum(body.loop for body in around)
        if token["loop"] or token["branch"]:
            body, at = (
                _Body(loop=bool(token["loop"]), branch=bool(token["branch"])),
                _after_head(code, token.end(), ends),
            )
            past = at
            if code[at : at + 1] == "{":
                bodies[at] = body
            else:
                single, until = body, code.find(";", at)
        elif token["open"]:
            blocks.append(bodies.get(token.start(), _Body()))
        elif token["close"]:
            del blocks[-1:]
        elif token["call"]:
            if loops and token.start() >= past and any(body.branch for body in around):
                return True
        elif loops > 1:
            return True
    return False


class _Read:
    """What one file says, in order."""

    def __init__(self) -> None:
        self.cases: dict[str, tuple[str, list[int | None]]] = {}
        self.ops: dict[str, re.Match[str]] = {}

    def line(self, code: str, start: re.Match[str]) -> None:
        """Take the CASE or OPS at ``start``; ValueError with the reason where it cannot be."""
        match = (_OPS if start["macro"] == "OPS" else _CASE).match(code, start.start())
        if match is None:
            raise ValueError(f"not of the form {_FORMS}")
        name = match["name"]
        if name in (self.ops if start["macro"] == "OPS" else self.cases):
            raise ValueError(f"a second {start['macro']} of that name: rename or remove it")
        if start["macro"] != "OPS":
            self.cases[name] = (_unquoted(match["title"]), _numbers(match))
        elif int(match["number"]) > (NUMBER_MOST if match["per"] else OPS_MOST):
            raise ValueError(f"OPS takes at most {OPS_MOST} operations")
        else:
            self.ops[name] = match

    def check(self, match: re.Match[str]) -> None:
        """Whether there is a case for the OPS or the hook ``match``."""
        numbers = self.cases.get(match["name"], ("", []))[1]
        if not numbers:
            raise ValueError("no case of that name in this file")
        if match.groupdict().get("per") and (None in numbers or 0 in numbers):
            raise ValueError("divides by N, which the case does not have, or which is 0")


def includes(text: str) -> bool:
    """Whether the C source ``text`` may have case.h: it includes that, or some file of its own."""
    return _INCLUDE.search(without_comments(text)) is not None


def cases_of(text: str, where: str) -> tuple[CaseSource, ...]:
    """The cases of a C source, in order, one for each number.

    Args:
        where: the file's name, for messages.

    Raises:
        UserError: ``FILE:LINE``, what cannot be read there, and what can.
    """
    code = without_comments(text)
    read = _Read()
    at = depth = 0
    try:
        for start in _START.finditer(code):
            at = start.start()
            if start["condition"]:
                depth = max(0, depth + (-1 if start["condition"] == "endif" else 1))
            elif depth:
                raise ValueError("inside of #if, where only a compiler can see it: use NEED() in SETUP")
            else:
                read.line(code, start)
        for match in (*read.ops.values(), *_HOOK.finditer(code)):
            at = match.start()
            read.check(match)
    except ValueError as error:
        line = code.count("\n", 0, at) + 1
        raise UserError(f"{where}:{line}: {code[at : at + 60].splitlines()[0]}: {error}") from None
    return tuple(
        CaseSource(
            name=name if number is None else f"{name}-{number}",
            title=title if number is None else re.sub(r"\bN\b", str(number), title),
            number=number,
            exact_ops=_operations(read.ops.get(name), number),
        )
        for name, (title, numbers) in read.cases.items()
        for number in numbers
    )
