# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions behind one row of a result, as a table."""

from __future__ import annotations

from kdelta.attribution.because import cumulative_shares, differences
from kdelta.errors import UserError
from kdelta.model import EXACT_COUNTERS, CellResult, Profile
from kdelta.report import system_calls
from kdelta.report.causes import because
from kdelta.report.figures import change, interval
from kdelta.report.moved import moved_lines
from kdelta.report.text import WIDTH, wrap
from kdelta.report.touched import touched_lines
from kdelta.report.view import View, cell_title
from kdelta.results.types import Detail, MovedRow

_LINES_SHOWN = 12
_TOUCHED_SHOWN = 4  # of each column


def render(row: CellResult, before: Profile, after: Profile, detail: Detail, everything: bool) -> str:
    """The functions of a row before and after, the largest change first; ``everything``: all, with their counters.

    Below it the lines that move between CPUs, and the same by system call, where that is known.

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
    lines = [f"{row.case}: {row.baseline_label} -> {row.patched_label}: {told}", ""]
    lines.append(f"{'function':34}{'before':>9}{'after':>9}{'delta':>9}{'cum.':>7}  note")
    for delta, share in shown:
        part = "-" if share is None else f"{100 * share:.0f}%"
        counts = f"{delta.baseline:9.1f}{delta.patched:9.1f}{delta.delta:+9.1f}"
        lines.append(f"{delta.function[:33]:34}{counts}{part:>7}  {delta.note}".rstrip())
    lines += touched_lines(before, after, None if everything else _TOUCHED_SHOWN)
    lines += moved
    lines += _judged(row, detail)
    if everything:
        lines += ["", f"cost vectors per operation: {', '.join(EXACT_COUNTERS)}"]
        for name in sorted(set(before.functions) | set(after.functions)):
            pair = [_vector(profile, name) for profile in (before, after)]
            lines.append(f"{name}: {pair[0]} -> {pair[1]}")
    return "\n".join(lines) + "\n" + system_calls.below(row, detail, everything)


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


def causes(view: View) -> str:
    """What is behind each row of the tables and each step of a sweep, in a sentence, or why nothing was decided."""
    lines = [view.title, ""]
    for sweep in view.sweeps:
        case = f"{cell_title(sweep.source.cell)}, {sweep.source.cell.metric}"
        steps = [step for step in sweep.rows if step.change]
        if not steps:
            lines += wrap(f"{case}: no step", then="  ")
        for step in steps:
            lines += wrap(f"{case}, {step.kernel}: {step.change} {step.mark}".rstrip(), then="  ")
            lines += wrap(step.sentence or step.verdict, first="  ")
    for group, row, cell in view.cells(explaining=True):
        kernel = f", {cell.kernel}" if cell.kernel and len(view.result.experiment.kernels) > 2 else ""
        lines += wrap(f"{group.title}, {row.metric}{kernel}: {cell.figure} {cell.mark}".rstrip(), then="  ")
        lines += wrap(cell.sentence or cell.verdict, first="  ")
    return "\n".join(lines) + "\n"


def _vector(profile: Profile, name: str) -> str:
    counts = profile.functions.get(name)
    return "-" if counts is None else " ".join(f"{value / profile.ops:g}" for value in counts)
