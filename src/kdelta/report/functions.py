# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions behind one row of a result, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.attribution.because import cumulative_shares, differences
from kdelta.errors import UserError
from kdelta.model import EXACT_COUNTERS, CellResult, FunctionDelta, Profile
from kdelta.report import behind, system_calls
from kdelta.report.figures import change, count, each, interval
from kdelta.report.moved import moved_lines
from kdelta.report.parted import parted_lines
from kdelta.report.rows import FIGURE, Row, laid_out, said
from kdelta.report.text import PROSE, WIDTH, wrap
from kdelta.report.touched import touched_lines
from kdelta.report.view import SweepTable, View, cell_title
from kdelta.results.types import Detail, MovedRow

_LINES_SHOWN = 12
_TOUCHED_SHOWN = 4  # of each column
_NAME = 34  # columns
_LEAST = (FIGURE, FIGURE, FIGURE, 7)


def render(
    row: CellResult, before: Profile, after: Profile, detail: Detail, everything: bool, width: int | None = None
) -> str:
    """The functions of a row before and after, the largest change first; ``everything``: all, with their counters.

    Below it the lines that move between CPUs, and the same by system call, where that is known. ``width``: of a
    terminal; without one each row is a line.

    Raises:
        UserError: one kernel alone, in which no line moved.
    """
    most = None if everything else _LINES_SHOWN
    if not row.patched_label:
        moved = moved_lines(before, None, most, width)
        if not moved:
            raise UserError(f"{row.case}: one kernel and one CPU: there is no difference to say why of")
        return "\n".join([f"{row.case}: {row.baseline_label}", *moved]) + "\n"
    deltas = differences(before, after)
    shares = (None,) * len(deltas) if row.verdict == "same" else cumulative_shares(deltas)  # of no effect nothing
    shown = list(zip(deltas, shares, strict=True))
    shown = shown if everything else [pair for pair in shown if pair[0].delta][:30]
    cause = behind.text(row.metric, row.because, row.because_line, row.effect_percent) or _unexplained(row, bool(shown))
    moved = moved_lines(before, after, most, width)
    cause = f"instructions: {cause}" if moved else cause  # of what moves speak the lines below
    title = f"{row.case}: {row.baseline_label} -> {row.patched_label}: {cause}"
    lines = [*said(title, width), ""]
    lines += _table(shown, width)
    lines += parted_lines(before, after, everything, width, each(row.unit))
    lines += touched_lines(before, after, None if everything else _TOUCHED_SHOWN, width)
    lines += moved
    lines += _judged(row, detail, min(width or WIDTH, PROSE))
    if everything:
        lines += ["", *said(f"cost vectors per {each(row.unit)}: {', '.join(EXACT_COUNTERS)}", width)]
        for name in sorted(set(before.functions) | set(after.functions)):
            pair = [_vector(profile, name) for profile in (before, after)]
            lines += said(f"{name}: {pair[0]} -> {pair[1]}", width)
    return "\n".join(lines) + "\n" + system_calls.below(row, detail, everything, min(width or WIDTH, PROSE))


def _table(shown: Sequence[tuple[FunctionDelta, float | None]], width: int | None) -> list[str]:
    """A line for each function; on a terminal more, where names and notes need it."""
    rows = [Row("function", ("before", "after", "delta", "cum."), "note")]
    for delta, share in shown:
        counts = (f"{delta.baseline:.1f}", f"{delta.patched:.1f}", f"{delta.delta:+.1f}")
        part = "-" if share is None else f"{round(100 * share)}%"
        rows.append(Row(delta.function, (*counts, part), delta.note))
    return laid_out(rows, _NAME, width, _LEAST)


def _unexplained(row: CellResult, differ: bool) -> str:
    """Where no cause is told, whether that is because nothing was decided."""
    if not differ:
        return "no function changed"
    if row.verdict in ("improved", "regressed"):
        return f"{row.verdict}, and no function changed by more than it varies between seeds"
    return "the same" if row.verdict == "same" else "not decided" if row.verdict == "inconclusive" else "no verdict"


def _change(line: MovedRow) -> str:
    return change(line.effect_percent, *line.over_seeds)


def _judged(row: CellResult, detail: Detail, width: int) -> list[str]:
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
    return ["", *wrap(f"over all seeds: {'; '.join(told)}", width, then="  ")] if told else []


def causes(view: View, width: int = WIDTH) -> str:
    """What is behind each row of the tables and each step of a sweep, in a sentence, or why nothing was decided.

    Where calls were followed, also where they part.
    """
    width = min(width, PROSE)
    lines = [*wrap(view.title, width), ""]
    for sweep in view.sweeps:
        lines += _steps(sweep, width)
    for group, row, cell in view.cells(explaining=True):
        kernel = f", {cell.kernel}" if cell.kernel and len(view.result.experiment.kernels) > 2 else ""
        lines += wrap(f"{group.title}, {row.metric}{kernel}: {cell.figure} {cell.mark}".rstrip(), width, then="  ")
        lines += wrap(cell.sentence or cell.verdict, width, first="  ")
    if not lines[-1]:
        lines += wrap(view.headline.text or "Nothing was measured.", width)
    return "\n".join(lines) + "\n"


def _steps(sweep: SweepTable, width: int) -> list[str]:
    """Each step of one case, and each version of which it is not known whether it is one."""
    case = f"{cell_title(sweep.source.cell)}, {sweep.source.cell.metric}"
    lines = []
    for row in sweep.rows:
        if row.change:
            lines += wrap(f"{case}, {row.kernel}: {row.change} {row.mark}".rstrip(), width, then="  ")
            lines += wrap(row.sentence or row.verdict, width, first="  ")
        elif row.unseen or not row.measured:
            why = f"not decided: {row.unseen}" if row.measured else f"not measured: {row.sentence or row.verdict}"
            lines += wrap(f"{case}, {row.kernel}: {why}", width, then="  ")
    return lines or wrap(f"{case}: no step", width, then="  ")


def _vector(profile: Profile, name: str) -> str:
    counts = profile.functions.get(name)
    return "-" if counts is None else " ".join(count(value / profile.ops) for value in counts)
