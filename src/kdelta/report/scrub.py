# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes every text of a result harmless to print, once, before any format sees it.

Labels, notes, console names and guests' words are untrusted. Control, format (right-to-left marks, zero widths),
surrogate, private and unassigned characters become visible escapes, and lengths are clipped. What a format's own
syntax reserves (``<``, ``|``, quotes) is that format's business.
"""

from __future__ import annotations

import unicodedata
from typing import Any, TypeVar

import msgspec

from kdelta.model import Profile
from kdelta.results.types import Point

T = TypeVar("T", bound=msgspec.Struct)

TEXT_LIMIT = 1000
# Names stand in columns and headings; a command must stay one that can be pasted.
_LIMITS = {
    "label": 64,
    "baseline_label": 64,
    "patched_label": 64,
    "kernel": 64,
    "last": 64,
    "first": 64,
    "case": 120,
    "metric": 64,
    "unit": 24,
    "function": 120,
    "command": 20_000,
    "spec": 300,
}
_LABELS = frozenset({"label", "baseline_label", "patched_label", "kernel", "last", "first"})
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(char: str) -> str:
    """A character that does nothing but show: itself, or its escape."""
    category = unicodedata.category(char)
    if category[0] != "C" and category not in ("Zl", "Zp"):
        return char
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clip(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters; the middle gives way, because both ends tell names apart."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def clean(text: str, limit: int = TEXT_LIMIT) -> str:
    """``text`` on one line, printable in any terminal, at most ``limit`` characters."""
    text = clip(text, limit)  # first, so that a huge text costs little
    if text.isascii() and text.isprintable():
        return text
    return clip("".join(map(escaped, text)), limit)


class Scrubber:
    """Rebuilds structs with clean texts; two labels that differ stay different after clipping."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._texts: dict[tuple[str, int], str] = {}  # most stand in many rows

    def _label(self, text: str) -> str:
        if text not in self._labels:
            taken = set(self._labels.values())
            short, number = clean(text, _LIMITS["label"]), 2
            while short in taken:
                short = f"{clean(text, _LIMITS['label'] - 5)}~{number}"
                number += 1
            self._labels[text] = short
        return self._labels[text]

    def _text(self, text: str, limit: int) -> str:
        if (known := self._texts.get((text, limit))) is None:
            known = self._texts[text, limit] = clean(text, limit)
        return known

    def _value(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            return self._label(value) if name in _LABELS else self._text(value, _LIMITS.get(name, TEXT_LIMIT))
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, Point):
            return value  # numbers only, and there may be many
        if isinstance(value, Profile):
            return value  # a tree of calls is a text of many lines: its names are cleaned where they are drawn
        if isinstance(value, msgspec.Struct):
            return self.struct(value)
        if isinstance(value, tuple):
            return tuple(self._value(item, name) for item in value)
        if isinstance(value, dict):
            return {self._text(key, 64): self._value(item, "") for key, item in value.items()}
        return value

    def struct(self, value: T) -> T:
        """A copy of ``value`` in which every text is clean."""
        fields = {name: self._value(getattr(value, name), name) for name in value.__struct_fields__}
        return type(value)(**fields)
