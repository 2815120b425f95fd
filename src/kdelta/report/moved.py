# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache lines that move between CPUs and the locks found taken, before and after: how often, and who."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kdelta.attribution import line_labels, serial
from kdelta.attribution.exact import TRANSFERS
from kdelta.attribution.line_table import OTHERS
from kdelta.model import FunctionDelta, MovedLine, Profile
from kdelta.report.rows import Row, laid_out, said

Key = TypeVar("Key", str, tuple[str, str, str])
_WHO_SHOWN = 3
_NAME_WIDTH = 44
_WORTH_A_WORD = 0.2  # of a line's transfers
_WORTH_A_WORD_PART = 0.05  # of all that lines move more and less
_TIMES = 3.0  # a larger ratio is told as such
_SEEN = 0.005  # less is printed as 0.00


def told(metric: str, deltas: Sequence[FunctionDelta], limit: int = 4) -> str:
    """``"tasklist_lock moves 28 % less (4.05 -> 2.91 per operation), mostly for copy_process"``, a part for each line.

    Largest change first, ``limit`` lines at most; what is a small part of all movement is left out. "" of another
    ``metric`` than transfers.
    """
    if metric != TRANSFERS:
        return ""
    movement = sum(abs(d.delta) for d in deltas)
    parts = []
    for d in [d for d in deltas if abs(d.delta) >= _WORTH_A_WORD_PART * movement][:limit]:
        where = f", mostly for {d.where}" if d.where else ""
        figures = f"{d.baseline:.2f} -> {d.patched:.2f} per operation{_falsely(d)}"
        name, move = ("other lines together", "move") if d.function == OTHERS else (d.function, "moves")
        if d.note:
            changed = f"{'now' if d.baseline == 0 else 'no longer'} {move} ({figures})"
        else:
            changed = f"{move} {_by(d)} {'more' if d.delta > 0 else 'less'} ({figures})"
        parts.append(f"{name} {changed}{where}")
    return "; ".join(parts)


def _falsely(d: FunctionDelta) -> str:
    """How much of a change is false sharing; "" where that is little, or went the other way."""
    share = min(1.0, d.unshared / d.delta) if d.delta else 0.0
    what = "" if d.note else " of the rise" if d.delta > 0 else " of the fall"
    return f", {share:.0%}{what} false sharing".replace("%", " %") if share >= _WORTH_A_WORD else ""


def _by(d: FunctionDelta) -> str:
    ratio = d.patched / d.baseline
    return f"{abs(ratio - 1):.0%}".replace("%", " %") if ratio < _TIMES else f"{ratio:.1f} times"


def _who(line: MovedLine) -> str:
    """The functions to which it moves most, with what they do there."""
    ranked = sorted(line.by, key=lambda name: (name.startswith("["), -sum(line.by[name]), name))
    told = []
    for name in ranked[:_WHO_SHOWN]:
        reads, writes = line.by[name]
        told.append(f"{name} {'reads and writes' if reads and writes else 'reads' if reads else 'writes'}")
    return ", ".join(told)


def _remark(line: MovedLine) -> str:
    parts = [f"{line.lines} lines"] if line.lines > 1 else [f"with {', '.join(line.also)}"] if line.also else []
    if line.unshared >= _WORTH_A_WORD * line.transfers > 0:
        share = f"{100 * line.unshared / line.transfers:.0f} % false sharing"
        parts.append(share + (f": {', '.join(line.beside)}" if line.beside else ""))
    return f" ({', '.join(parts)})" if parts else ""


def _per_op(profile: Profile, name: str) -> float:
    return sum(line.transfers for line in profile.moved if line.name == name) / profile.ops


class Sides:
    """One kernel's figures per operation, or those before and after a change."""

    def __init__(self, before: Profile, after: Profile | None) -> None:
        self.profiles = [before] if after is None else [before, after]

    @property
    def heads(self) -> tuple[str, ...]:
        """The headings of the columns."""
        return ("before", "after", "delta") if len(self.profiles) > 1 else ("per op",)

    def columns(self, figures: Sequence[float]) -> tuple[str, ...]:
        """A row's figures, with the difference where there are two."""
        texts = tuple(f"{value:.2f}" for value in figures)
        if len(figures) == 1:
            return texts
        delta = f"{figures[1] - figures[0]:+.2f}"
        return (*texts, delta if float(delta) else f"{0:.2f}")  # +0.00 and -0.00 would be no change with a direction


def _ranked(figures: Mapping[Key, Sequence[float]], limit: int | None) -> list[Key]:
    """Hottest first by the larger side, ``limit`` at most."""
    ranked = sorted(figures, key=lambda key: (-max(figures[key]), key))
    return ranked if limit is None else ranked[:limit]


def moved_lines(before: Profile, after: Profile | None, limit: int | None, width: int | None = None) -> list[str]:
    """The rows of a table, hottest first by the larger side, ``limit`` at most; [] where none moved.

    Below them stands what was added up of the lines that moved less. Without ``after`` it is about one kernel.
    ``width``: of a terminal; without one each row is a line.
    """
    resized: Mapping[str, str] = {}
    if after is not None:
        resized = line_labels.resized([before], [after])
        (before,), (after,) = line_labels.alike([before], [after])
    sides = Sides(before, after)
    known = {line.name: line for side in sides.profiles for line in reversed(side.moved)}  # of several the hottest
    if not known:
        return []
    figures = {name: [_per_op(side, name) for side in sides.profiles] for name in known}
    single = {name: both for name, both in figures.items() if name != OTHERS}
    shown = [*_ranked(single, limit), *(figures.keys() - single.keys())]
    rows = [Row("line", sides.heads, "who, where it moves most")]
    rows += (Row(name, sides.columns(figures[name]), _who(known[name]) + _remark(known[name])) for name in shown)
    lines = ["", *said("cache lines that move between CPUs, transfers per operation", width), ""]
    lines += laid_out(rows, _NAME_WIDTH, width)
    if len(shown) < len(known):
        lines.append(f"and {len(known) - len(shown)} more (--all)")
    for old, new in sorted(resized.items()):
        lines += said(f"What was in {old} before is in {new} after: it goes by that on both sides.", width)
    lines += _waits(sides, limit, width)
    lines += _serial(sides, width)
    lines += said("A model of coherence alone: no capacity, no latencies; see docs/how-to/contention.md.", width)
    return lines


def _serial(sides: Sides, width: int | None) -> list[str]:
    """The line that bounds scaling, on each side; [] where none does."""
    found = [serial.bound(profile) for profile in sides.profiles]
    labels = ("before", "after") if len(found) > 1 else ("",)
    told = [serial_text(one, label) for one, label in zip(found, labels, strict=True) if one is not None]
    title = f"serial part (a bound, at {serial.TRANSFER_INSTRUCTIONS} instructions a transfer)"
    return ["", *(line for text in (title, *told) for line in said(text, width))] if told else []


def serial_text(one: serial.Serial, label: str = "") -> str:
    """``before: LINE moves 4.00 times an operation, to one CPU at a time: at most an operation every 400 ...``.

    The work of CPUs alone would grow where an operation is made longer, also under the lock.
    """
    head = f"{label}: " if label else ""
    return (
        f"{head}{one.line} moves {one.transfers:.2f} times an operation, to one CPU at a time: "
        f"at most an operation every {one.every:.0f} instructions, the work of {one.cpus:.3g} CPUs"
    )


def _waits(sides: Sides, limit: int | None, width: int | None) -> list[str]:
    """The rows of a table of locks found taken, with a ``limit`` those with a figure; [] where there is none."""
    found = [{(w.lock or "?", w.caller or "?", w.function): w for w in side.waits} for side in sides.profiles]
    known = {key for waits in found for key in waits}
    if not known:
        return []

    def per_op(key: tuple[str, str, str], taken: bool = False) -> list[float]:
        pairs = [(waits.get(key), side.ops) for waits, side in zip(found, sides.profiles, strict=True)]
        return [((w.taken if taken else w.times) / ops if w else 0.0) for w, ops in pairs]

    figures = {key: per_op(key) for key in known}
    shown = [key for key in _ranked(figures, limit) if limit is None or max(figures[key]) >= _SEEN]
    if not shown:
        return []
    rows = [Row("lock", sides.heads, "who waits, of how often it takes the lock or reads")]
    for key in shown:
        lock, caller, function = key
        taken = " -> ".join(f"{value:.2f}" for value in per_op(key, taken=True))
        rows.append(Row(lock, sides.columns(figures[key]), f"{caller} ({function}), of {taken}"))
    lines = ["", *said("locks found taken and reads in vain, times per operation", width), ""]
    lines += laid_out(rows, _NAME_WIDTH, width)
    if len(shown) < len(known):
        lines.append(f"and {len(known) - len(shown)} more (--all)")
    return lines
