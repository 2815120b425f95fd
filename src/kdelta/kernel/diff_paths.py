# SPDX-License-Identifier: GPL-2.0-or-later
"""The paths in the header lines of a diff, inside the tree, as hostile input. Pure.

What stands before them depends on its maker: ``a/`` and ``b/``, with git's diff.mnemonicPrefix ``i/`` and ``w/``
(git-config(1)), nothing with --no-prefix, and the names of two directories by diff -r and quilt (``linux.orig/``).
"""

from __future__ import annotations

import re

from kdelta.errors import UserError

_ESCAPE = re.compile(r'\\([0-7]{3}|[\\"tn])')
_PREFIX = re.compile(r"[abciow12]/")  # of git's; no directory of a kernel's tree has one letter
_COPY = re.compile(r"~|[.-](?:orig|old|bak|save|new|mod)")  # how a copy beside a file is named
_NEVER = re.compile(r"\t(?:1970-01-01|1969-12-31) ")  # how diff -N dates what is not there


def _unescaped(quoted: str) -> str:
    """A name as git quotes it: ``"a/\\303\\244"``."""
    table = {"\\": b"\\", '"': b'"', "t": b"\t", "n": b"\n"}
    raw = bytearray()
    position = 0
    body = quoted[1:-1]
    for match in _ESCAPE.finditer(body):
        raw += body[position : match.start()].encode("utf-8", "surrogateescape")
        code = match.group(1)
        raw += table[code] if code in table else bytes([int(code, 8) & 255])
        position = match.end()
    raw += body[position:].encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")


def _plain(field: str) -> str:
    return _unescaped(field) if field.startswith('"') and field.endswith('"') and len(field) > 1 else field


def path(field: str, name: str) -> str | None:
    """A path of a header line without git's prefix; None for /dev/null.

    Raises:
        UserError: it would leave the tree, or touch git's own directory.
    """
    text = _plain(field)
    if text == "/dev/null":
        return None
    stripped = text[2:] if _PREFIX.match(text) else text
    parts = stripped.split("/")
    unsafe = any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)
    if unsafe or "\\" in stripped or any(ord(char) < 32 for char in stripped):
        raise UserError(f"patch {name}: refused, path {text[:200]!r} is outside the kernel tree")
    return stripped


class Sides:
    """The paths of the lines ``--- OLD`` and ``+++ NEW`` of one patch."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tops: set[str] = set()  # directories before the tree's own: of a file that is new one side alone is told

    def of(self, line: str, following: str) -> tuple[str | None, ...]:
        """The two paths of a file's header.

        Raises:
            UserError: as ``path``.
        """
        old, new = ((text[4:].split() or [""])[0] for text in (line, following))
        if old != new and _below(old) == _below(new) != "":
            self._tops |= {old.partition("/")[0], new.partition("/")[0]}
        return _one_file(
            *(
                None if _NEVER.search(text) else path(self._inside(field), self._name)
                for text, field in ((line, old), (following, new))
            )
        )

    def _inside(self, field: str) -> str:
        return f"a/{_below(field)}" if field.partition("/")[0] in self._tops else field


def _one_file(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Both paths; of a file and a copy beside it, kept or changed (``x.c.orig``, ``x.c~``), the file's."""
    shorter, longer = sorted((old or "", new or ""), key=len)
    if shorter and longer.startswith(shorter) and _COPY.fullmatch(longer, len(shorter)):
        return shorter, shorter
    return old, new


def _below(one: str) -> str:
    """``one`` without its first directory; "" of /dev/null, and of a name in quotes: git alone has these."""
    return "" if one.startswith(('"', "/")) else one.partition("/")[2]
