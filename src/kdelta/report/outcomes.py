# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as tests, for formats that machines read: one per cell, and one per version of a sweep.

A pass says that nothing became worse; what was not found out is skipped, never passed. A version of a sweep passes
where it is the first, where no step arrives, or where one improves. Names hold no release, so that the same question
asked of a newer kernel is the same test: "on 6.12" for 6.12.117, nothing where one kernel is held against one other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct

from kdelta.model import UNBOOTED, Kernel
from kdelta.report.figures import absolute
from kdelta.report.view import Cell, Row, SweepRow, SweepTable, View, cell_title
from kdelta.verdict import ENDED, ended_alone

Result = Literal["pass", "skipped", "failure", "error"]
_PASS = frozenset({"improved", "same", "first", "as before"})
_SKIP = frozenset({"inconclusive", "unsupported", "descriptive", "left out"})
_VERSION = re.compile(r"(?<![\d.])(\d+\.\d+)((?:\.\d+|-rc\d+)+)(?![\d.])")


class Outcome(Struct, frozen=True, kw_only=True):
    """One test. ``name`` is unique within its case; ``message`` says why, "" where there is no more to say."""

    name: str  # "instructions", "instructions on 7.0": without a release
    word: str  # the verdict's word, the state, or what SweepRow.verdict adds to them
    figures: str  # "baseline 489.0 ns, effect +4.50 % [+4.10, +5.00]"
    effect: str
    mark: str = ""
    message: str = ""
    aside: tuple[str, ...] = ()
    notes: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()  # behind the effect, the largest first
    waiting: bool = False  # not booted yet
    explains: bool = False  # a count or a single line beside what the case is judged by
    broke: bool = False  # it panicked, hung or failed where what it is held against did not

    @property
    def result(self) -> Result:
        """A regression is a failure, a version or cell that has no figure an error unless it never could have one.

        What explains is neither: a line that was renamed is one that came and one that went.
        """
        if self.word in _PASS or self.explains:
            return "pass"
        if self.broke:
            return "error"
        if self.waiting:
            return "skipped"
        return "skipped" if self.word in _SKIP else "failure" if self.word == "regressed" else "error"

    @property
    def reason(self) -> str:
        """The message, or the least that there is to say."""
        return self.message or ": ".join(filter(None, (self.word, self.effect)))


class CaseOutcomes(Struct, frozen=True, kw_only=True):
    """The tests of one case, in the order of the report."""

    title: str
    outcomes: tuple[Outcome, ...]


def _without_release(label: str, release: str) -> str:
    def series(found: re.Match[str]) -> str:
        return found[1] if release.startswith(found[1]) else found[0]

    return _VERSION.sub(series, label)


def stable_names(labels: Sequence[str], kernels: Sequence[Kernel]) -> dict[str, str]:
    """Label -> what to call it in a test's name: its version without what a stable release adds, unlike all others.

    Only a version that is the kernel's own is cut; versions without a kernel (gaps of a sweep) are cut by their look.
    """
    releases = {kernel.label: kernel.release for kernel in kernels}
    names: dict[str, str] = {}
    for label in labels:
        short = _without_release(label, releases.get(label, label))
        count, name = 1, short
        while name in names.values():
            count += 1
            name = f"{short}#{count}"
        names[label] = name
    return names


def _of_cell(row: Row, cell: Cell, names: Mapping[str, str]) -> Outcome:
    kernel = names[cell.kernel] if len(names) > 1 else ""
    ended = ended_alone(cell.source)
    return Outcome(
        name=row.metric + (f" on {kernel}" if kernel else ""),
        word=ended or cell.verdict,
        figures=f"baseline {row.baseline}" + (f", effect {cell.figure}" if cell.figure != cell.verdict else ""),
        effect=cell.figure,
        mark=cell.mark,
        message=cell.sentence,
        aside=row.aside,
        notes=cell.notes,
        functions=tuple(delta.function for delta in cell.source.because),
        explains=row.explains,
        waiting=cell.source.unbooted,
        broke=ended is not None,
    )


def broke(rows: Sequence[SweepRow], place: int) -> bool:
    """Whether a version of a sweep ended badly, and one before it was measured."""
    return rows[place].verdict in ENDED and any(row.measured for row in rows[:place])


def _step_figures(table: SweepTable, row: SweepRow) -> str:
    """A version's figure, and what its step is relative to where one arrives."""
    if not row.change:
        return f"value {row.value}" if row.measured else "no value"
    sweep = table.source
    step = next(step for step in sweep.steps if step.first == row.kernel)
    baseline = absolute(step.baseline, sweep.unit, sweep.cell.metric)
    return f"baseline {baseline}, value {row.value}, effect {row.change} after {step.last}"


def _step_message(row: SweepRow) -> str:
    if row.change:
        return f"{row.verdict}: {'; '.join(filter(None, (row.change, row.sentence)))}"
    if row.unseen:
        return f"descriptive only, no verdict: {row.unseen}"
    return f"{row.verdict}: {row.sentence}" if row.sentence else ""


def _of_version(table: SweepTable, place: int, names: Mapping[str, str]) -> Outcome:
    row = table.rows[place]
    return Outcome(
        name=f"{table.source.cell.metric} on {names[row.kernel]}",
        word=row.verdict,
        figures=_step_figures(table, row),
        effect=row.change,
        mark=row.mark,
        message=_step_message(row),
        waiting=row.sentence == UNBOOTED,
        broke=broke(table.rows, place),
    )


def _titled(view: View) -> Iterator[tuple[tuple[int, str], Outcome]]:
    """Every test with the table that it stands in (all sweeps count as one) and its case."""
    kernels = view.result.experiment.kernels
    for number, table in enumerate(view.tables):
        names = stable_names(table.kernels, kernels)
        for group in table.groups:
            for row in group.rows:
                for cell in row.cells:
                    yield (number, group.title), _of_cell(row, cell, names)
    for sweep in view.sweeps:
        names = stable_names([row.kernel for row in sweep.rows], kernels)
        for place in range(len(sweep.rows)):
            yield (len(view.tables), cell_title(sweep.source.cell)), _of_version(sweep, place, names)


def outcomes(view: View) -> Iterable[CaseOutcomes]:
    """The tests of all tables, then of all sweeps, by case. The gate is no test of a case: formats put it first."""
    for (_, title), members in groupby(_titled(view), key=lambda item: item[0]):
        yield CaseOutcomes(title=title, outcomes=tuple(outcome for _, outcome in members))
