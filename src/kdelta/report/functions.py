# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions behind one row of a result, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from kdelta.attribution.because import cumulative_shares, differences
from kdelta.errors import UserError
from kdelta.model import EXACT_COUNTERS, CellResult, FunctionDelta, Profile
from kdelta.report import system_calls
from kdelta.report.causes import because
from kdelta.report.figures import change, interval
from kdelta.report.moved import moved_lines
from kdelta.report.text import PROSE, WIDTH, pad, wrap
from kdelta.report.touched import touched_lines
from kdelta.report.view import View, cell_title
from kdelta.results.types import Detail, MovedRow

_LINES_SHOWN = 12
_TOUCHED_SHOWN = 4  # of each column
_NAME, _FIGURES, _NOTE = 34, 34, 6  # columns; a note is "gone" at least, with the space before it


def render(
    row: CellResult, before: Profile, after: Profile, detail: Detail, everything: bool, width: int | None = None
) -> str:
    """The functions of a row before and after, the largest change first; ``everything``: all, with their counters.

    Below it the lines that move between CPUs, and the same by system call, where that is known. ``width``: of a
    terminal; without one each function is a line.

    Raises:
        UserError: one kernel alone, in which no line moved.
    """
    most = None if everything else _LINES_SHOWN
    if not row.patched_label:
        moved = moved_lines(before, None, most)
        if not moved:
            raise UserError(f"{row.case}: one kernel and one CPU: there is no difference to say why of")
        return "\n".join([f"{row.case}: {row.baseline_label}", *moved]) + "\n"
    deltas = differences(before, after)
    shares = cumulative_shares(deltas)
    shown = list(zip(deltas, shares, strict=True))
    shown = shown if everything else [pair for pair in shown if pair[0].delta][:30]
    told = because(row.because_line, row.effect_percent) or _unexplained(row, bool(shown))
    moved = moved_lines(before, after, most)
    told = f"instructions: {told}" if moved else told  # of what moves speak the lines below
    title = f"{row.case}: {row.baseline_label} -> {row.patched_label}: {told}"
    lines = [*([title] if width is None else wrap(title, min(width, PROSE), then="  ")), ""]
    lines += _table(shown, width)
    lines += touched_lines(before, after, None if everything else _TOUCHED_SHOWN)
    lines += moved
    lines += _judged(row, detail)
    if everything:
        lines += ["", f"cost vectors per operation: {', '.join(EXACT_COUNTERS)}"]
        for name in sorted(set(before.functions) | set(after.functions)):
            pair = [_vector(profile, name) for profile in (before, after)]
            lines.append(f"{name}: {pair[0]} -> {pair[1]}")
    return "\n".join(lines) + "\n" + system_calls.below(row, detail, everything, min(width or WIDTH, PROSE))


def _table(shown: Sequence[tuple[FunctionDelta, float | None]], width: int | None) -> list[str]:
    """A line for each function; on a terminal more, where names and notes need it."""
    heads = ("before", "after", "delta")
    rows = [("function", "".join(f"{head:>9}" for head in heads) + f"{'cum.':>7}", "note")]
    for delta, share in shown:
        part = "-" if share is None else f"{100 * share:.0f}%"
        counts = f"{delta.baseline:9.1f}{delta.patched:9.1f}{delta.delta:+9.1f}"
        rows.append((delta.function, f"{counts}{part:>7}", delta.note))
    if width is None:
        return [f"{name[: _NAME - 1]:{_NAME}}{figures}  {note}".rstrip() for name, figures, note in rows]
    longest = 1 + max(cell_len(name) for name, _, _ in rows)
    column = max(1, min(longest, width - _FIGURES - _NOTE))
    return [line for row in rows for line in _lines(*row, column, width)]


def _lines(name: str, figures: str, note: str, column: int, width: int) -> list[str]:
    """A row of which the name, where it is longer than its column, and a note that is too long have their own lines."""
    long = cell_len(name) >= column
    line = pad("" if long else name, column) + figures
    lines = [*(wrap(name, width) if long else []), line]
    if note and cell_len(line) + 2 + cell_len(note) > width:
        return [*lines, *wrap(note, width, first="      ", then="        ")]
    return [*lines[:-1], f"{line}  {note}".rstrip()]


def _unexplained(row: CellResult, differ: bool) -> str:
    """Where no cause is told, whether that is because nothing was decided."""
    if not differ:
        return "no function changed"
    return "the same" if row.verdict == "same" else "not decided" if row.verdict == "inconclusive" else "no verdict"


def _change(line: MovedRow) -> str:
    return change(line.effect_percent, *line.over_seeds)


def _judged(row: CellResult, detail: Detail) -> list[str]:
    """The verdicts over all seeds on the lines that move most, of which the table has the median seed; [] of none."""
    key = (row.case, row.cgroup, row.mitigations, row.patched_label)
    found = [
        line
        for one in detail.moved
        if (one.cell.case, one.cell.cgroup, one.cell.mitigations, one.patched_label) == key
        for line in one.rows
        if line.verdict
    ]
    told = [
        " ".join(filter(None, (line.line, _change(line), interval(line.interval_percent, True), line.verdict)))
        for line in found
        if line.verdict in ("improved", "regressed")
    ]
    for word in ("same", "inconclusive"):
        names = [line.line for line in found if line.verdict == word]
        told += [f"{word}: {', '.join(names)}"] if names else []
    return ["", *wrap(f"over all seeds: {'; '.join(told)}", WIDTH, then="  ")] if told else []


def causes(view: View, width: int = WIDTH) -> str:
    """What is behind each row of the tables and each step of a sweep, in a sentence, or why nothing was decided."""
    width = min(width, PROSE)
    lines = [*wrap(view.title, width), ""]
    for sweep in view.sweeps:
        case = f"{cell_title(sweep.source.cell)}, {sweep.source.cell.metric}"
        steps = [step for step in sweep.rows if step.change]
        if not steps:
            lines += wrap(f"{case}: no step", width, then="  ")
        for step in steps:
            lines += wrap(f"{case}, {step.kernel}: {step.change} {step.mark}".rstrip(), width, then="  ")
            lines += wrap(step.sentence or step.verdict, width, first="  ")
    for group, row, cell in view.cells(explaining=True):
        kernel = f", {cell.kernel}" if cell.kernel and len(view.result.experiment.kernels) > 2 else ""
        lines += wrap(f"{group.title}, {row.metric}{kernel}: {cell.figure} {cell.mark}".rstrip(), width, then="  ")
        lines += wrap(cell.sentence or cell.verdict, width, first="  ")
    return "\n".join(lines) + "\n"


def _vector(profile: Profile, name: str) -> str:
    counts = profile.functions.get(name)
    return "-" if counts is None else " ".join(f"{value / profile.ops:g}" for value in counts)
