# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of a unified diff to changes of files, as hostile input: paths stay inside the tree. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel.diff_paths import Sides, path
from kdelta.kernel.hunk import Hunk
from kdelta.kernel.mail import PatchMail
from kdelta.units import counted

_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)$")
_GIT = re.compile(r'^diff --git (?:("?[abciow12]/.+"?) ("?[abciow12]/.+"?)|(\S+) (\S+))$')
_MODE = re.compile(r"^(?:new file mode|new mode|deleted file mode) (\d{6})$")


class Change(Struct, frozen=True, kw_only=True):
    """What a patch does to one file; a path is None where the file is made or removed."""

    old: str | None
    new: str | None
    executable: bool | None = None  # None: as it was
    hunks: tuple[Hunk, ...] = ()
    copied: bool = False  # ``new`` is made of ``old``, which stays; taken back, ``old`` was a copy

    @property
    def path(self) -> str:
        return self.new or self.old or ""


class _Parser:
    """Collects changes while lines go by."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sides = Sides(name)
        self.changes: list[Change] = []
        self._reset(None, None)

    def _reset(self, old: str | None, new: str | None) -> None:
        self.old, self.new = old, new
        self.executable: bool | None = None
        self.hunks: list[Hunk] = []
        self.body: list[str] = []
        self.match: re.Match[str] | None = None
        self.old_left = self.new_left = 0  # lines that the open hunk still lacks by its counts
        self.copied = self.moved = False  # moved: git says from where to where

    def _close_hunk(self) -> None:
        if self.match is None:
            return
        old_start, old_count, new_start, new_count, section = self.match.groups()
        self.hunks.append(
            Hunk(
                number=len(self.hunks) + 1,
                old_start=int(old_start),
                old_count=1 if old_count is None else int(old_count),
                new_start=int(new_start),
                new_count=1 if new_count is None else int(new_count),
                section=section,
                lines=tuple(self.body),
            )
        )
        self.match, self.body = None, []

    def close(self) -> None:
        self._close_hunk()
        if (self.old or self.new) and (self.hunks or self.executable is not None or self.old != self.new):
            hunks = tuple(self.hunks)
            self.changes.append(
                Change(old=self.old, new=self.new, executable=self.executable, hunks=hunks, copied=self.copied)
            )
        self._reset(None, None)

    def _mode(self, line: str) -> None:
        match = _MODE.match(line)
        if match is None:
            return
        if match.group(1) not in ("100644", "100755"):
            raise UserError(f"patch {self.name}: refused, {self.new or self.old} would become a link or a submodule")
        if line.startswith("new file"):
            self.old = None
        if line.startswith("deleted"):
            self.new = None
        else:
            self.executable = match.group(1) == "100755"

    def header(self, line: str) -> None:
        """A line outside of hunks, after ``diff --git``."""
        self._mode(line)
        if line.startswith(("GIT binary patch", "Binary files ")):
            raise UserError(f"patch {self.name}: {self.new or self.old} is a binary change; only text can be applied")
        for kind in ("rename", "copy"):
            if line.startswith(f"{kind} from "):
                self.old = path("a/" + line.split(" ", 2)[2].strip('"'), self.name)
                self.copied = kind == "copy"
            elif line.startswith(f"{kind} to "):
                self.new = path("b/" + line.split(" ", 2)[2].strip('"'), self.name)
                self.moved = True

    def _begins_file(self, line: str, following: str, after: str) -> bool:
        """Whether ``line`` and the next are a file's header, not a removed "-- x" above "++ y", nor figures."""
        if not (line.startswith("--- ") and following.startswith("+++ ")):
            return False
        named = "/" in (line[4:].split() or [""])[0]
        inside = self.match is not None and (self.old_left > 0 or self.new_left > 0)
        return _HUNK.match(after) is not None or (named and not inside)

    def _take(self, line: str) -> None:
        """A line of the open hunk, counted as what its sign says."""
        self.body.append(line)
        self.old_left -= not line.startswith("+")
        self.new_left -= not line.startswith("-")

    def line(self, line: str, following: str, after: str) -> None:
        git = _GIT.match(line)
        if git:
            self.close()
            self._reset(*(path(field, self.name) for field in git.groups() if field))
        elif self._begins_file(line, following, after):
            old, new = (self.old, self.new) if self.moved and self.match is None else self.sides.of(line, following)
            if self.match is not None or not (self.old or self.new):
                self.close()
                self._reset(old, new)
            else:
                self.old, self.new = old, new
        elif match := _HUNK.match(line):
            if not (self.old or self.new):
                raise UserError(
                    f"patch {self.name}: a hunk {line[:40]!r} comes before any file name (--- a/..., +++ b/...)"
                )
            self._close_hunk()
            self.match = match
            self.old_left, self.new_left = int(match[2] or 1), int(match[4] or 1)
        elif self.match is not None:
            self._take(line)
        elif self.old or self.new:
            self.header(line)


def _alone(hunk: Hunk) -> Hunk:
    """A file's last hunk without the text that stands between it and the next file: a signature, "please fold this"."""
    old, new = hunk.old_count, hunk.new_count
    for at, line in enumerate(hunk.lines):
        if line.startswith("\\ "):  # No newline at end of file
            continue
        if not (old or new):
            other = not any(rest[:1] in ("+", "-") and rest.rstrip() != "--" for rest in hunk.lines[at:])
            return replace(hunk, lines=hunk.lines[:at]) if other else hunk
        old, new = old - (not line.startswith("+")), new - (not line.startswith("-"))
    return hunk


def _ended(changes: Sequence[Change]) -> tuple[Change, ...]:
    """``changes`` with the hunk marked that ends the mail."""
    *before, last = changes
    before = [replace(one, hunks=(*one.hunks[:-1], _alone(one.hunks[-1]))) if one.hunks else one for one in before]
    if not last.hunks:
        return (*before, last)
    return (*before, replace(last, hunks=(*last.hunks[:-1], replace(last.hunks[-1], ends_mail=True))))


def parse(mail: PatchMail) -> tuple[Change, ...]:
    """The changes of one patch, hunks still as the mail left them.

    Raises:
        UserError: paths outside the tree, links, submodules, binary changes, a hunk without a file.
    """
    try:
        return _parsed(mail)
    except UserError as error:
        raise as_quoted(mail, error) from None


def as_quoted(mail: PatchMail, error: UserError) -> UserError:
    """``error`` as it is, but of a reply that quotes a patch: then what it is, and how to get the patch's own mail."""
    if not mail.quoted:
        return error
    own = f"b4 am -o - {mail.answers.strip('<>')}" if mail.answers else "b4 am -o - MESSAGE-ID"
    return UserError(
        f"patch {mail.name}: a reply that quotes a patch, perhaps not all of it; give the patch's own mail, "
        f"as in {own}; as quoted: {str(error).removeprefix(f'patch {mail.name}: ')}"
    )


def _parsed(mail: PatchMail) -> tuple[Change, ...]:
    parser = _Parser(mail.name)
    lines = [*mail.lines, "", ""]
    for line, following, after in zip(lines, lines[1:], lines[2:], strict=False):
        parser.line(line, following, after)
    parser.close()
    if not parser.changes:
        raise UserError(f"patch {mail.name}: it changes no file")
    changes = _ended(parser.changes)
    last = changes[-1].hunks[-1:]
    if (
        last
        and (lost := cut(last[0]))
        and (_says_nothing(last[0], lost) or (lost[0] != lost[1] and not stripped(changes)))
    ):
        raise cut_off(changes, lost, mail.name)
    return changes


def _says_nothing(hunk: Hunk, lost: tuple[int, int]) -> bool:
    """Whether what shows a hunk's place was cut off, and added lines alone are left; or all that it changes."""
    body, empty = _body(hunk)
    changes = [line for line in body if line.startswith(("+", "-"))]
    return not changes or (min(lost) > empty and all(line.startswith("+") for line in body))


def _body(hunk: Hunk) -> tuple[list[str], int]:
    """The lines of a hunk, and how many empty ones follow: the mail's, or blank context that lost its sign."""
    end = next((i for i, line in enumerate(hunk.lines) if line.rstrip() == "--"), len(hunk.lines))
    lines = [line for line in hunk.lines[:end] if not line.startswith("\\ ")]
    body = lines[:]
    while body and not body[-1].strip() and not body[-1].startswith(" "):
        body.pop()
    return body, len(lines) - len(body)


def _counted(hunk: Hunk) -> tuple[int, int]:
    """(old, new) lines that a hunk has, by their first characters."""
    body, _ = _body(hunk)
    added, removed = (sum(line.startswith(sign) for line in body) for sign in "+-")
    kept = len(body) - added - removed
    return kept + removed, kept + added


def cut(hunk: Hunk) -> tuple[int, int] | None:
    """(old, new) lines that a hunk lacks by its header; None where it lacks none."""
    counts = (hunk.new_count, hunk.old_count) if hunk.take_out else (hunk.old_count, hunk.new_count)
    lost = tuple(max(0, want - have) for want, have in zip(counts, _counted(hunk), strict=True))
    return (lost[0], lost[1]) if any(lost) else None


def surely_cut(hunk: Hunk, real: Sequence[str]) -> tuple[int, int] | None:
    """As ``cut``; None also where empty lines behind the hunk are what it lacks, by the lines of the ``real`` file."""
    lost, (body, empty) = cut(hunk), _body(hunk)
    if not lost or lost[0] != lost[1] or lost[0] > empty:
        return lost
    last = next(("".join(line[1:].split()) for line in reversed(body) if not line.startswith("+")), "")
    ends_so = any(not after.strip() and "".join(line.split()) == last for line, after in pairwise(real))
    return None if ends_so else lost


def stripped(changes: Iterable[Change]) -> bool:
    """Whether context lines lost their blank: no line begins with one. Then a context line may look like another."""
    return not any(line.startswith(" ") for change in changes for hunk in change.hunks for line in hunk.lines)


def _hunks(count: int) -> str:
    return counted(count, "hunk")


def cut_off(changes: Sequence[Change], lost: tuple[int, int], name: str, tried: bool = False) -> UserError:
    """The error for a mail that ends inside the last hunk of ``changes``, with what is whole before it.

    ``tried``: that was also found to fit.
    """
    last = changes[-1]
    number = last.hunks[-1].number
    whole = [f"{one.path} ({_hunks(len(one.hunks))})" for one in changes[:-1]]
    if number > 1:
        whole.append(f"{last.path} (hunk 1)" if number == 2 else f"{last.path} (hunks 1 to {number - 1})")
    shown = ", ".join(whole[:6]) + (f" and {len(whole) - 6} more" if len(whole) > 6 else "")
    lines = max(lost)
    before = "could be applied" if tried else "whole before it"
    return UserError(
        f"patch {name}: cut off in hunk {number} of {last.path}: at least {counted(lines, 'line')} of it "
        f"{'are' if lines > 1 else 'is'} missing; {before}: {shown or 'nothing'}; save the mail again"
    )


def reverse(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes that take ``changes`` back, in the order in which they must be applied."""
    return tuple(
        Change(
            old=c.new,
            new=None if c.copied else c.old,
            executable=None,
            hunks=tuple(hunk.reversed() for hunk in c.hunks),
            copied=c.copied,
        )
        for c in reversed(tuple(changes))
    )
