# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of Kconfig that a patch brings, and defaults that a .config which was made before does not follow. Pure.

A default counts where what it stands under holds: ``default y if ARM64`` is none for x86-64. A ``choice`` has one of
its options as its default. What a hunk does not show, an earlier default or a ``depends on``, is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from kdelta.kernel.diff import Change
from kdelta.kernel.hunk import Hunk

_KCONFIG = re.compile(r"(^|/)Kconfig[^/]*$")
_ENTRY = re.compile(r"^\s*(?:(?:menu)?config\s+([A-Za-z0-9_]+)|(choice))\s*(?:#.*)?$")
_ENDS = re.compile(r"^\s*(?:endchoice|menu|endmenu|comment|if|endif|source)\b")
_DEFAULT = re.compile(r"^\s*(?:default|def_bool|def_tristate)\s+\"?([A-Za-z0-9_]+)\"?\s*(?:if\b(.*))?$")
_TOKEN = re.compile(r"\s*(\|\||&&|!=|[<>]=?|[()!=]|\"[^\"]*\"|'[^']*'|[A-Za-z0-9_]+)")
_CONSTANTS = ("y", "m", "n")
_DEEPEST = 64  # brackets and ! in a condition


class _Default(Struct, frozen=True):
    """A line that gives an entry a default: its sign in the diff, the value, and under what."""

    sign: str
    value: str
    condition: str


class _Entry(Struct):
    """A ``config`` (or a ``choice``, without a name) with the defaults that a hunk shows of it."""

    name: str
    choice: bool
    own: bool  # the patch brings it
    defaults: list[_Default]


def not_followed(changes: Iterable[Change], options: Mapping[str, str]) -> tuple[str, ...]:
    """``NAME=VALUE`` of the options for which the changes bring another default than ``options`` has.

    A .config that was made before keeps its value; an option that the changes declare is none of these.
    """
    hunks = (hunk for change in changes if _KCONFIG.search(change.path) for hunk in change.hunks)
    entries = (entry for hunk in hunks for entry in _entries(hunk) if not entry.own)
    return tuple(dict.fromkeys(told for entry in entries if (told := _told(entry, options))))


def brought(changes: Iterable[Change]) -> tuple[str, ...]:
    """Names of the options that the changes declare, without those that they only move."""
    lines = [line for change in changes if _KCONFIG.search(change.path) for hunk in change.hunks for line in hunk.lines]
    gone = set(declared(line[1:] for line in lines if line[:1] == "-"))
    found = declared(line[1:] for line in lines if line[:1] == "+")
    return tuple(dict.fromkeys(name for name in found if name not in gone))


def declared(lines: Iterable[str]) -> Iterator[str]:
    """The options that lines of Kconfig files declare, one for each declaration."""
    return (match[1] for line in lines if (match := _ENTRY.match(line)) and match[1])


def is_kconfig(path: str) -> bool:
    """Whether the file at ``path`` declares options."""
    return _KCONFIG.search(path) is not None


def _entries(hunk: Hunk) -> Iterator[_Entry]:
    entry = _begun(hunk.section, own=False)
    for line in hunk.lines:
        sign, text = line[:1], line[1:]
        if _ENTRY.match(text):
            if sign == "-":
                continue
            if entry is not None:
                yield entry
            entry = _begun(text, own=sign == "+")
        elif _ENDS.match(text):
            if entry is not None:
                yield entry
            entry = None
        elif entry is not None and (match := _DEFAULT.match(text)):
            entry.defaults.append(_Default(sign, match[1], match[2] or ""))
    if entry is not None:
        yield entry


def _begun(text: str, *, own: bool) -> _Entry | None:
    match = _ENTRY.match(text)
    return _Entry(name=match[1] or "", choice=bool(match[2]), own=own, defaults=[]) if match else None


def _told(entry: _Entry, options: Mapping[str, str]) -> str:
    """What the entry has by default from now on, where ``options`` have it otherwise and it was otherwise; else ""."""
    was = _applying((one for one in entry.defaults if one.sign != "+"), options)
    now = _applying((one for one in entry.defaults if one.sign != "-"), options)
    if was == now:
        return ""
    if entry.choice:
        return f"{now}=y" if options.get(now) == "n" else ""
    has = options.get(entry.name, "")
    if not now:
        now = "n" if has in ("y", "m") else ""  # of a number no default is known
    return f"{entry.name}={now}" if has and now and has.strip('"') != now else ""


def _applying(defaults: Iterable[_Default], options: Mapping[str, str]) -> str:
    """The value of the first default whose condition holds, as far as that can be told; "" where none does."""
    return next((one.value for one in defaults if not one.condition or holds(one.condition, options)), "")


def holds(condition: str, options: Mapping[str, str]) -> bool:
    """Whether an expression of Kconfig holds with ``options``; one that cannot be read does.

    Numbers are not compared by size (``GCC_VERSION >= 120000``): such an expression cannot be read.
    """
    tokens, at = [], 0
    condition = condition.partition("#")[0].rstrip()
    while at < len(condition):
        match = _TOKEN.match(condition, at)
        if match is None:
            return True
        tokens.append(match[1])
        at = match.end()
    try:
        parser = _Parser(tokens, options)
        found = parser.either(0)
    except _Unread:
        return True
    return found if parser.done else True


class _Unread(Exception):
    """An expression that is not of the known kinds."""


class _Parser:
    """Documentation/kbuild/kconfig-language.rst, "Menu dependencies", without tristate arithmetic: m counts as y."""

    def __init__(self, tokens: list[str], options: Mapping[str, str]) -> None:
        self._tokens, self._options, self._at = tokens, options, 0

    @property
    def done(self) -> bool:
        return self._at == len(self._tokens)

    def _next(self) -> str:
        return "" if self.done else self._tokens[self._at]

    def _take(self) -> str:
        token = self._next()
        self._at += 1
        return token

    def either(self, depth: int) -> bool:
        found = self._both(depth)
        while self._next() == "||":
            self._at += 1
            found = self._both(depth) or found
        return found

    def _both(self, depth: int) -> bool:
        found = self._one(depth)
        while self._next() == "&&":
            self._at += 1
            found = self._one(depth) and found
        return found

    def _one(self, depth: int) -> bool:
        token = self._take()
        if depth > _DEEPEST or token in ("", ")", "&&", "||", "=", "!=") or token[0] in "<>":
            raise _Unread
        if token == "!":
            return not self._one(depth + 1)
        if token == "(":
            found = self.either(depth + 1)
            if self._take() != ")":
                raise _Unread
            return found
        sign = self._next()
        if sign in ("=", "!="):
            self._at += 1
            other = self._take()
            return (self._value(token) == self._value(other)) == (sign == "=")
        if sign[:1] in ("<", ">"):
            raise _Unread
        return self._value(token) in ("y", "m")

    def _value(self, token: str) -> str:
        if token[:1] in "\"'" or token in _CONSTANTS or token.isdigit():
            return token.strip("\"'")
        return self._options.get(token, "n")
