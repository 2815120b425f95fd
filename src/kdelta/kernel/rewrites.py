# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of a function's text between the sources of two releases. Pure.

Nothing is said where the sources leave a doubt: of a name with several bodies, or one that a macro made.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from kdelta.kernel import definitions
from kdelta.kernel.definitions import Definition

Became = Literal["changed", "same", "both", "new", "gone", "renamed"]  # both: it is there, whatever its text

_NAME = re.compile(r"[A-Za-z_]\w{0,119}")
_INLINE = re.compile(r"\b(?:__always_inline|inline|__inline)\b")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_RESEMBLES = 0.5  # of the lines: of one name in two files, what is less alike may be two functions
_CONTEXT = 1  # lines around a change


class Source(Protocol):
    """The source of one release."""

    def where(self, name: str) -> Sequence[str]:
        """The files that define a function."""

    def read(self, path: str) -> str:
        """The text of a file, "" where there is none."""

    def has_word(self, name: str) -> bool:
        """Whether an identifier occurs anywhere."""


class Rewrite(Struct, frozen=True, kw_only=True):
    """What became of ``function``: the file that defines it on each side, "" without, and how its code differs.

    ``inline``: it is declared so on the two sides; of those that have it.
    ``other``: what it is called on the other side, where it was renamed; where it is the same, the entry of its
    assembly file that names it and changed, whose ``diff`` this is. ``beneath``: the static functions of its file that
    it calls, by others of them too, and that changed: what the compiler may have put into it.
    """

    function: str
    became: Became
    before: str = ""
    after: str = ""
    other: str = ""
    diff: tuple[str, ...] = ()
    inline: tuple[bool, ...] = ()
    beneath: tuple[str, ...] = ()


def _defined(name: str, source: Source, arch: str) -> Definition | None:
    """The one definition of ``name`` that can run on ``arch``."""
    ours = (path for path in source.where(name) if not path.startswith("arch/") or path.startswith(f"arch/{arch}/"))
    return definitions.only(one for path in ours for one in definitions.of(name, path, source.read(path)))


def _code(text: str, name: str = "") -> str:
    """The code of ``text`` without its layout, and without its own ``name``."""
    joined = " ".join(" ".join(definitions.code(text)).split())
    return re.sub(rf"\b{re.escape(name)}\b", "", joined) if name else joined


def _diff(before: str, after: str) -> tuple[str, ...]:
    """The lines of code that differ in more than layout; ``@@`` stands between those that are not neighbours."""
    old, new = definitions.code(before), definitions.code(after)
    plain = [[" ".join(line.split()) for line in side] for side in (old, new)]
    found: list[str] = []
    for group in difflib.SequenceMatcher(None, plain[0], plain[1], autojunk=False).get_grouped_opcodes(_CONTEXT):
        found += ["@@"] if found else []
        for what, i, j, k, m in group:
            if what == "equal":
                found += [f" {line}" for line in old[i:j]]
            else:
                found += [*(f"-{line}" for line in old[i:j]), *(f"+{line}" for line in new[k:m])]
    return tuple(found)


def _is_inline(one: Definition) -> bool:
    return _INLINE.search(one.text.partition("{")[0]) is not None


def of(function: str, before: Source, after: Source, arch: str) -> Rewrite | None:
    """What became of the symbol ``function``; None where that is not certain. ``arch``: a directory of arch/."""
    name = definitions.base(function)
    if not _NAME.fullmatch(name):
        return None
    old, new = _defined(name, before, arch), _defined(name, after, arch)
    if old is not None and new is not None:
        return _both(function, old, new, before, after)
    if old is not None and not after.has_word(name):
        other = _twin(old, name, after, before)
        return Rewrite(function=function, became="renamed" if other else "gone", before=old.path, other=other)
    if new is not None and not before.has_word(name):
        other = _twin(new, name, before, after)
        return Rewrite(function=function, became="renamed" if other else "new", after=new.path, other=other)
    return None


def _both(function: str, old: Definition, new: Definition, before: Source, after: Source) -> Rewrite | None:
    inline = (_is_inline(old), _is_inline(new))
    if _code(old.text) == _code(new.text):
        name = definitions.base(function)
        other, diff = _entry(name, old.path, before, after)
        return Rewrite(
            function=function, became="same", before=old.path, after=new.path, other=other, diff=diff, inline=inline,
            beneath=tuple(_beneath(new, before.read(old.path), after.read(new.path))),
        )  # fmt: skip
    alike = difflib.SequenceMatcher(None, definitions.code(old.text), definitions.code(new.text), autojunk=False)
    if old.path != new.path and alike.ratio() < _RESEMBLES:
        return None
    diff = _diff(old.text, new.text)
    return Rewrite(function=function, became="changed", before=old.path, after=new.path, diff=diff, inline=inline)


def _beneath(one: Definition, before: str, after: str) -> Iterator[str]:
    """The static functions that changed, of those that ``one`` calls in its file, nearest first."""
    old, new = definitions.every(one.path, before), definitions.every(one.path, after)
    seen, waiting = set[str](), [one.text]
    for text in waiting:
        for name in dict.fromkeys(_CALLED.findall("\n".join(definitions.code(text)))):
            last = definitions.only(new.get(name, []))
            if name in seen or last is None or last.text == text or not last.text.startswith("static "):
                continue
            seen.add(name)
            waiting.append(last.text)
            first = definitions.only(old.get(name, []))
            if first is None or _code(first.text) != _code(last.text):
                yield name


def _twin(one: Definition, name: str, there: Source, here: Source) -> str:
    """The function of the same file ``there`` that has the code of ``one`` and is not ``here``; "" without a single."""
    text, wanted = there.read(one.path), _code(one.text, name)
    found = [
        other
        for other in sorted(definitions.names(one.path, text))
        if not here.has_word(other)
        and any(_code(like.text, other) == wanted for like in definitions.of(other, one.path, text))
    ]
    return found[0] if len(found) == 1 and not definitions.is_stub(one.text) else ""


def _entries(name: str, source: Source, path: str) -> Iterator[tuple[str, Definition]]:
    """The functions of an assembly file that name another one: where the CPU's features choose between them."""
    text = source.read(path) if path.endswith(".S") else ""
    for other in sorted(definitions.names(path, text) - {name}):
        for one in definitions.of(other, path, text):
            if re.search(rf"\b{name}\b", "\n".join(definitions.code(one.text))):
                yield other, one


def _entry(name: str, path: str, before: Source, after: Source) -> tuple[str, tuple[str, ...]]:
    """The one entry that names ``name`` on a side, and how its code differs; ("", ()) where none does."""
    sides = [dict(_entries(name, source, path)) for source in (before, after)]
    for other in sorted(sides[0].keys() | sides[1].keys()):
        old, new = (
            side.get(other) or definitions.only(definitions.of(other, path, source.read(path)))
            for side, source in zip(sides, (before, after), strict=True)
        )
        if old is not None and new is not None and _code(old.text) != _code(new.text):
            return other, _diff(old.text, new.text)
    return "", ()
