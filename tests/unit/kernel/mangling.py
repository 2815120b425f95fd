# SPDX-License-Identifier: GPL-2.0-or-later
"""What mailers, archives and readers do to a patch, as functions from the lines of a diff to the bytes of a mail."""

from __future__ import annotations

import difflib
import quopri
import re
from collections.abc import Callable

Lines = list[str]
Mangle = Callable[[Lines], Lines]
_HEADER = ("@@", "---", "+++", "diff --git")


def diff(old: str, new: str, path: str) -> Lines:
    """The lines of a unified diff as git writes it."""
    lines = difflib.unified_diff(old.split("\n")[:-1], new.split("\n")[:-1], f"a/{path}", f"b/{path}", lineterm="")
    return [f"diff --git a/{path} b/{path}", *lines]


def _by_line(change: Callable[[str], str]) -> Mangle:
    return lambda lines: [line if line.startswith(_HEADER) else change(line) for line in lines]


def _collapsed(line: str) -> str:
    return line[:1] + re.sub(r"[ \t]+", " ", line[1:]) if line[:1] in ("+", "-", " ") else line


def _expanded(line: str) -> str:
    return line[:1] + line[1:].expandtabs(8) if line[:1] in ("+", "-", " ") else line


def _pasted(line: str) -> str:
    """From a terminal: the sign takes a column."""
    return line.expandtabs(8)


def _without_blank_ends(lines: Lines) -> Lines:
    """Blank context lines at the end of hunks are gone."""
    out: Lines = []
    for line in [*lines, "@@ end"]:
        if line.startswith("@@"):
            while out and not out[-1].strip() and out[-1][:1] in ("", " "):
                out.pop()
        out.append(line)
    return out[:-1]


def _without_blanks(lines: Lines) -> Lines:
    """All blank context lines are gone, as in a page's text."""
    return [line for line in lines if line.strip()]


def _wrapped(lines: Lines) -> Lines:
    out: Lines = []
    for line in lines:
        while len(line) > 76 and not line.startswith(_HEADER) and (at := line.rfind(" ", 60, 76)) > 0:
            out.append(line[:at])
            line = line[at + 1 :].lstrip(" ")
        out.append(line)
    return out


def _quoted(mark: str) -> Mangle:
    return lambda lines: ["On some day somebody wrote:", *(mark + line for line in lines)]


# What loses nothing that the tree does not give back: the result is the same to the byte.
EXACT: dict[str, Mangle] = {
    "clean": lambda lines: lines,
    "no leading blank": _by_line(lambda line: line.removeprefix(" ")),
    "no leading white space": _by_line(lambda line: line.lstrip() if line.startswith(" ") else line),
    "no trailing white space": _by_line(
        lambda line: line[:1] + line[1:].rstrip() if line[:1] == "+" else line.rstrip()
    ),
    "blank ends lost": _without_blank_ends,
    "carriage returns": lambda lines: [line + "\r" for line in lines],
    "quoted": _quoted("> "),
    "quoted twice": _quoted("> > "),
    "quoted closely": _quoted(">"),
}
# The white space of added lines is lost with that of all others.
SPACES: dict[str, Mangle] = {
    "tabs collapsed": _by_line(_collapsed),
    "tabs expanded": _by_line(_expanded),
    "pasted from a terminal": _by_line(_pasted),
}
# Where the file has blank lines beside added ones, nothing says on which side they stood.
BLANKS: dict[str, Mangle] = {"blank lines lost": _without_blanks}
WRAPS: dict[str, Mangle] = {"wrapped": _wrapped}


def mail(lines: Lines, headers: str = "") -> bytes:
    """A mail with ``lines`` in it."""
    text = "\n".join(
        ["From: a@b.c", "Subject: [PATCH] x", *headers.splitlines(), "", "words", "---", *lines, "-- ", "2.43"]
    )
    return (text + "\n").encode("utf-8", "surrogateescape")


def flowed(lines: Lines) -> bytes:
    """The mail as format=flowed (RFC 3676)."""
    out: Lines = []
    for line in lines:
        line = line if line.strip() else line.rstrip(" ")
        stuffed = f" {line}" if line.startswith((" ", ">", "From ")) else line
        while len(stuffed) > 78 and (at := stuffed.rfind(" ", 40, 78)) > 0:
            out.append(stuffed[: at + 1])
            rest = stuffed[at + 1 :]
            stuffed = f" {rest}" if rest.startswith((" ", ">", "From ")) else rest
        out.append(stuffed.rstrip(" ") if stuffed.endswith(" ") else stuffed)
    return mail(out, "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8; format=flowed")


def undecoded(lines: Lines) -> bytes:
    """The mail saved with its quoted-printable left as it is."""
    return mail(quopri.encodestring("\n".join(lines).encode("utf-8", "surrogateescape")).decode().split("\n"))
