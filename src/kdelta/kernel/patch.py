# SPDX-License-Identifier: GPL-2.0-or-later
"""A patch against a tree: parsed, repaired, applied in memory, and emitted again as a clean diff. Pure.

The tree is a function from a path to a file's text; nothing is written here, and no patch(1) or git-am guesses.
A patch fits as a whole or is refused with the file and hunk named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import ordered
from kdelta.kernel.diff import Change, as_quoted, cut_off, parse, reverse, surely_cut
from kdelta.kernel.hunk import Hunk, Misfit, Placed
from kdelta.kernel.mail import PatchMail
from kdelta.kernel.merged import names_there
from kdelta.kernel.retab import rebuilt
from kdelta.units import counted

Read = Callable[[str], str | None]  # text of a file of the tree, None where there is none


class File(Struct, frozen=True):
    """A file's new text; None removes it. ``executable`` None leaves the mode alone; a new file has ``like``'s."""

    text: str | None
    executable: bool | None = None
    like: str = ""


class Applied(Struct, frozen=True, kw_only=True):
    """The outcome: files to write, the clean diff, and what was repaired, in sentences."""

    files: Mapping[str, File]
    diff: str
    notes: tuple[str, ...] = ()


def _lines(text: str) -> tuple[list[str], bool]:
    """Lines without their ends, and whether the last one had an end."""
    if not text:
        return [], True
    lines = text.split("\n")
    return (lines[:-1], True) if lines[-1] == "" else (lines, False)


def _emit(placed: list[Placed], hunks: Iterable[Hunk]) -> list[str]:
    out: list[str] = []
    grown = 0
    for at_hunk, hunk in zip(placed, hunks, strict=True):
        old = sum(sign != "+" for sign, _ in at_hunk.ops)
        new = sum(sign != "-" for sign, _ in at_hunk.ops)
        start_old = at_hunk.at + (1 if old else 0)
        start_new = at_hunk.at + grown + (1 if new else 0)
        section = f" {hunk.section}" if hunk.section else ""
        out.append(f"@@ -{start_old},{old} +{start_new},{new} @@{section}")
        out += [sign + text for sign, text in at_hunk.ops]
        if at_hunk.newline_at_end is False:
            out.append("\\ No newline at end of file")
        grown += new - old
    return out


def _misfit(
    change: Change, hunk: Hunk, why: Misfit, real: Sequence[str], earlier: tuple[Change, ...], name: str
) -> UserError:
    """What to say of a hunk without a place; the last of a mail may have been cut off."""
    if hunk is change.hunks[-1] and not why.ambiguous and (lost := surely_cut(hunk, real)):
        return cut_off((*earlier, change), lost, name, tried=True)
    return UserError(f"patch {name}: {change.path} hunk {hunk.number} ({hunk.header}) {why}")


def _place_all(
    change: Change, text: str, earlier: tuple[Change, ...], last: bool, name: str, far: bool
) -> list[Placed]:
    real = _lines(text)[0]
    try:
        return ordered.place_all(change.hunks, real, far=far)
    except ordered.Unplaced as error:
        if last:
            raise _misfit(change, error.hunk, error.why, real, earlier, name) from None
        where = f"{change.path} hunk {error.hunk.number} ({error.hunk.header})"
        raise UserError(f"patch {name}: {where} {error.why}") from None


def _result(text: str, placed: list[Placed]) -> str:
    real, newline = _lines(text)
    out: list[str] = []
    position = 0
    for hunk in placed:
        out += real[position : hunk.at]
        position = hunk.at
        for sign, line in hunk.ops:
            if sign != "-":
                out.append(line if sign == "+" else real[position])
            position += sign != "+"
    if placed and position == len(real):
        newline = placed[-1].newline_at_end is not False
    out += real[position:]
    return "\n".join(out) + ("\n" if newline and out else "")


class _Note(NamedTuple):
    """``fact`` is so of the ``hunks`` of a file; one that only moved did so by ``offset`` lines."""

    path: str
    hunks: list[int]
    fact: str
    offset: int


_MOVED_FILES = 6  # that a note names


def _notes(change: Change, placed: list[Placed]) -> list[_Note]:
    """What was repaired, each once for all hunks of the file of which it is so."""
    said: dict[tuple[str, int], list[int]] = {}
    for hunk, found in zip(change.hunks, placed, strict=True):
        for fact in _repairs(found):
            said.setdefault(fact, []).append(hunk.number)
    return [_Note(change.path, numbers, fact, offset) for (fact, offset), numbers in said.items()]


def _told(notes: list[_Note], name: str) -> tuple[str, ...]:
    """``notes`` as lines; files whose hunks only moved share one. A mail's folder says nothing of the kernel."""
    moved = [note for note in notes if note.offset]
    alone = notes if len(moved) < 2 else [note for note in notes if not note.offset]
    lines = [f"{note.path} {_hunks(note.hunks)}{note.fact}" for note in alone]
    if len(moved) >= 2:
        most = max((note.offset for note in moved), key=abs)
        named = [f"{note.path} {_hunks(note.hunks)} {note.offset:+d}" for note in moved[:_MOVED_FILES]]
        rest = len(moved) - len(named)
        more = f" and {counted(rest, 'other place')}, the farthest {most:+d}" if rest else ""
        lines.append(f"applied with offsets in lines: {', '.join(named)}{more}")
    return tuple(f"patch {name.rsplit('/', 1)[-1]}: {line}" for line in lines)


def _repairs(found: Placed) -> Iterator[tuple[str, int]]:
    """Each fact with the lines that it moved a hunk by."""
    if found.fuzz:
        yield f" applied at line {found.at + 1} with fuzz 1", 0
    elif found.offset:
        yield f" applied with an offset of {found.offset:+d} line{'s' if abs(found.offset) > 1 else ''}", found.offset
    if found.blanks:
        yield ": the mail lost blank lines; where they belong among the added lines is uncertain", 0
    if found.guessed:
        lines = counted(found.guessed, "added line")
        yield f": the mail lost whitespace; that of {lines} is reconstructed", 0
    elif found.repaired:
        yield ": the mail lost whitespace; restored from the tree", 0


def _hunks(numbers: list[int]) -> str:
    """``hunk 3``, ``hunks 1-4, 6``."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    told = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
    return f"hunk{'s' if len(numbers) > 1 else ''} {told}"


def _before(change: Change, read: Read, name: str) -> str:
    """The text that ``change`` is made to.

    Raises:
        UserError: the file is not there, or one is where a new one should be.
    """
    before = read(change.old) if change.old else ""
    if before is None:
        raise UserError(f"patch {name}: {change.old} is not in this tree")
    if change.new and change.new != change.old and read(change.new) is not None:
        raise UserError(f"patch {name}: {change.new} would be new, but is in this tree already")
    return before


def _made(change: Change, before: str, placed: list[Placed], name: str) -> dict[str, File]:
    after = _result(before, placed)
    if change.new is None and after and not change.copied:
        raise UserError(f"patch {name}: {change.old} would be removed, but has lines that the patch does not have")
    files: dict[str, File] = {}
    if change.old and change.old != change.new and not (change.copied and change.new):
        files[change.old] = File(None)
    if change.new:
        files[change.new] = File(
            after, change.executable, change.old if change.old and change.old != change.new else ""
        )
    return files


def _diff(change: Change, placed: list[Placed]) -> list[str]:
    old, new = change.old or change.new, change.new or change.old
    diff = [f"diff --git a/{old} b/{new}"]
    if change.old is None:
        diff.append(f"new file mode {'100755' if change.executable else '100644'}")
    elif change.new is None:
        diff.append("deleted file mode 100644")
    elif change.old != change.new:
        word = "copy" if change.copied else "rename"
        diff += [f"{word} from {old}", f"{word} to {new}"]
    if change.hunks:
        diff += [
            f"--- a/{change.old}" if change.old else "--- /dev/null",
            f"+++ b/{change.new}" if change.new else "+++ /dev/null",
        ]
    return diff + _emit(placed, change.hunks)


def _lay(files: dict[str, File], more: Mapping[str, File]) -> None:
    """Lay ``more`` over ``files``; a mode that was given before stays where nothing is said of it."""
    known = dict(files)
    for path, file in more.items():
        before = known.get(file.like or path)
        if file.text is not None and file.executable is None and before is not None:
            file = File(file.text, before.executable, before.like or file.like)
        files[path] = file


class _Overlay:
    """The tree with what was changed so far."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.files: dict[str, File] = {}

    def __call__(self, path: str) -> str | None:
        return self.files[path].text if path in self.files else self._read(path)


def _placed(
    changes: tuple[Change, ...], read: Read, name: str, mail_end: Change | None, far: bool
) -> list[list[Placed]]:
    """The hunks of each change at their places, their added lines as the whole patch shows that they were."""
    tree, found = _Overlay(read), list[list[Placed]]()
    for number, change in enumerate(changes):
        before = _before(change, tree, name)
        found.append(_place_all(change, before, changes[:number], change is mail_end, name, far))
        _lay(tree.files, _made(change, before, found[-1], name))
    whole = iter(rebuilt([one for placed in found for one in placed]))
    return [[next(whole) for _ in placed] for placed in found]


def _apply(
    changes: tuple[Change, ...], read: Read, name: str, mail_end: Change | None = None, *, far: bool = False
) -> Applied:
    """``mail_end`` is the change whose last hunk ends the mail; ``far`` is that of ``hunk.place``."""
    tree, diff, notes = _Overlay(read), list[str](), list[_Note]()
    for change, placed in zip(changes, _placed(changes, read, name, mail_end, far), strict=True):
        _lay(tree.files, _made(change, _before(change, tree, name), placed, name))
        diff += _diff(change, placed)
        notes += _notes(change, placed)
    return Applied(files=tree.files, diff="\n".join([*diff, ""]), notes=_told(notes, name))


def _fits(changes: tuple[Change, ...], read: Read, name: str) -> bool:
    try:
        _apply(changes, read, name, far=True)
    except UserError:
        return False
    return True


def apply(mail: PatchMail, read: Read, *, take_out: bool = False) -> Applied:
    """Apply one patch, or take it out, in memory.

    ``read`` gives the text of the tree's files (bytes that are not UTF-8 as surrogates).

    Raises:
        UserError: it does not fit (file and hunk named), is merged already, or is not there to be taken out.
    """
    changes = parse(mail)
    try:
        found = _applied(changes, mail, read, take_out=take_out)
    except UserError as error:
        raise as_quoted(mail, error) from None
    note = (
        (f"patch {mail.name.rsplit('/', 1)[-1]}: as a reply quotes it; what the reply leaves out is missing",)
        if mail.quoted
        else ()
    )
    return replace(found, notes=(*found.notes, *note))


def _applied(changes: tuple[Change, ...], mail: PatchMail, read: Read, *, take_out: bool) -> Applied:
    wanted, name = reverse(changes) if take_out else changes, mail.name
    end = wanted[0 if take_out else -1]
    try:
        return _apply(wanted, read, name, end)
    except UserError as error:
        there = "" if take_out or not _fits(reverse(changes), read, name) else "it reverts cleanly"
        with suppress(UserError):
            if not there:  # else it would be made twice, where the code stands twice
                return _apply(wanted, read, name, end, far=True)
        if take_out:
            if _fits(changes, read, name):
                raise UserError(f"patch {name}: cannot be reverted, it is not in this tree (it would apply)") from None
            raise UserError(f"{error}; so it cannot be reverted") from None
        if there := there or names_there(changes, read):
            if mail.subject.startswith('Revert "'):
                raise UserError(f"patch {name}: what it reverts is not in this tree, or no more: {there}") from None
            hint = f"measure it the other way round, with -{name} as the baseline"
            raise UserError(f"patch {name}: already merged in this tree: {there}; {hint}") from None
        raise


def apply_series(patches: Iterable[tuple[PatchMail, bool]], read: Read) -> Applied:
    """Apply patches one after the other; the flag takes a patch out. All fit, or none is applied.

    Raises:
        UserError: as ``apply``.
    """
    files: dict[str, File] = {}
    diffs: list[str] = []
    notes: list[str] = []

    def current(path: str) -> str | None:
        return files[path].text if path in files else read(path)

    for mail, take_out in patches:
        applied = apply(mail, current, take_out=take_out)
        _lay(files, applied.files)
        diffs.append(applied.diff)
        notes += applied.notes
    return Applied(files=files, diff="".join(diffs), notes=tuple(notes))
