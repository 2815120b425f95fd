# SPDX-License-Identifier: GPL-2.0-or-later
"""The definitions of functions in C and assembly, by the name of their symbol. Pure.

Found by the kernel's layout: bodies of C as in ``locations``, stubs on one line, and what stands between
``SYM_FUNC_START(name)`` and ``SYM_FUNC_END(name)`` (Documentation/core-api/asm-annotation.rst). No preprocessor runs,
so a name may have several definitions, of which one is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from kdelta.kernel import locations

_STUB = re.compile(
    r"^(?:static|extern|inline|__always_inline|notrace)\b[^;={}]*?\b(\w+)\([^;{}]*\)[^;={}()]*\{.*\}\s*$"
)
_ASM_START = re.compile(r"^\s*SYM_(?:FUNC|CODE|TYPED_FUNC)_START\w*\(\s*(\w+)")
_ASM_END = re.compile(r"^\s*SYM_(?:FUNC|CODE)_END\(\s*(\w+)")
_TOKENS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_SIMPLE = re.compile(r"[^;]*;?[^;]*")
_SPACED = bytes(c if c < 128 and (chr(c).isalnum() or c == ord("_")) else ord(" ") for c in range(256))


class Definition(Struct, frozen=True):
    """A function's text in a file, from its head to its end; ``first`` is its line, counted from 1."""

    path: str
    first: int
    text: str


def _without(match: re.Match[str]) -> str:
    """A comment's lines stay as empty ones; a text is none."""
    found = match[0]
    return found if found[0] in "\"'" else "\n" * found.count("\n") or " "


def code(text: str) -> list[str]:
    """The lines of ``text`` that hold code, without comments and blanks at their ends."""
    lines = (line.rstrip() for line in _TOKENS.sub(_without, text).split("\n"))
    return [line for line in lines if line.strip()]


def base(symbol: str) -> str:
    """The name in the source of a function's symbol: gcc adds ``.isra.0``, ``.constprop.0``, ``.part.0``, ``.cold``."""
    return symbol.partition(".")[0]


def _assembly(lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    opened: dict[str, int] = {}
    for index, line in enumerate(lines, 1):
        if match := _ASM_START.match(line):
            opened[match[1]] = index
        elif (match := _ASM_END.match(line)) and match[1] in opened:
            yield (match[1],), opened.pop(match[1]), index


def _spans(path: str, text: str, lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """(names, first line, last line) of every definition."""
    if path.endswith(".S"):
        yield from _assembly(lines)
        return
    for body in locations.bodies(text):
        yield body.names, body.first, body.last
    for index, line in enumerate(lines, 1):
        if line.endswith("}") and (match := _STUB.match(line)):
            yield (match[1],), index, index


@lru_cache(maxsize=256)  # a finding's functions are often of few files, each asked for by several
def every(path: str, text: str) -> Mapping[str, Sequence[Definition]]:
    """All definitions of a file by name, in order."""
    lines = text.split("\n")
    found: dict[str, list[Definition]] = {}
    for called, first, last in sorted(_spans(path, text, lines), key=lambda span: span[1]):
        for name in called:
            found.setdefault(name, []).append(Definition(path, first, "\n".join(lines[first - 1 : last])))
    return found


def names(path: str, text: str) -> frozenset[str]:
    """The functions that a file defines."""
    return frozenset(name for found, _, _ in _spans(path, text, text.split("\n")) for name in found)


def of(name: str, path: str, text: str) -> Sequence[Definition]:
    """All definitions of ``name`` in a file, in order."""
    return every(path, text).get(name, [])


def is_stub(text: str) -> bool:
    """Whether a body holds one statement at most: what a header has for a configuration without the feature."""
    body = " ".join(code(text)).partition("{")[2].rpartition("}")[0]
    return "{" not in body and _SIMPLE.fullmatch(body) is not None


def only(found: Iterable[Definition]) -> Definition | None:
    """The one definition that runs: the only one, or the only one that is no stub; None where that is not certain."""
    every = list(found)
    bodies = every if len(every) == 1 else [one for one in every if not is_stub(one.text)]
    return bodies[0] if len(bodies) == 1 else None


def words(text: bytes) -> set[bytes]:
    """Every identifier and number that occurs in ``text``, in comments too."""
    return set(text.translate(_SPACED).split())
