# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's console as text that is safe to show: whatever bytes it wrote, none of them acts on the reader. Pure."""

from __future__ import annotations

import re
import unicodedata

# ANSI control sequences colour a console; as text they would only be in the way.
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_SHOWN_BYTES = 1 << 20


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures
    return "\u2421" if code == 0x7F else f"\\u{code:04x}"


def _is_unsafe(char: str) -> bool:
    return char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def readable(console: bytes) -> str:
    """All of ``console`` as text: UTF-8 where it is, controls and invisible characters as visible ones."""
    text = console.decode("utf-8", "replace").replace("\r\n", "\n").replace("\n\r", "\n")
    text = _SEQUENCE.sub("", text)
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    odd = {char for char in set(text) if _is_unsafe(char)}
    return text.translate({ord(char): _visible(char) for char in odd})


def tail(console: bytes, limit: int = _SHOWN_BYTES) -> tuple[str, int]:
    """The last ``limit`` bytes as text, from the start of a line where one starts there; and the bytes left out."""
    if len(console) <= limit:
        return readable(console), 0
    start = len(console) - limit
    line = console.find(b"\n", start, start + 4096)
    start = start if line < 0 else line + 1
    return readable(console[start:]), start
