# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer in a sentence: what stands on top of every report. Made from verdicts alone; no statistics.

A count is never called time: fewer instructions are "fewer instructions", only times and rates are "faster". What is
undecided, within the noise floor or not measured counts for neither side. Where instructions hide another count that
changed, that is told behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kdelta.model import Because, CellResult
from kdelta.report.figures import effect
from kdelta.report.tallies import Tally, in_case, in_cases, in_results, kind_of, tallied
from kdelta.results.types import Sweep
from kdelta.results.warnings import Carried
from kdelta.units import finite

_KERNELS_TOLD = 3  # more patched kernels than these are told together
_WORDS = ("so far: ", "it is undecided ", "there is no ", "nothing could ")  # that begin a sentence, unlike a label
_NAMES_TOLD = 2  # functions
_CAUSE_CHARS = 90  # a longer one is no answer: the causes have it whole
_HIDDEN = {"locked": "locked operations", "data_lines": "data lines"}  # lines of code move with every build


class Largest(Struct, frozen=True, kw_only=True):
    """The largest difference that has a verdict, and because of what, "" where that is not known."""

    where: str
    percent: float
    cause: str = ""

    @property
    def text(self) -> str:
        """``-29.56 %, because step_into and walk_component are gone (-404)``."""
        return effect(self.percent) + (f", because {self.cause}" if self.cause else "")


class Hidden(Struct, frozen=True, kw_only=True):
    """A count that changed in ``cases`` cases whose instructions did not, or went the other way; the largest of them.

    ``function``: where most of it is, "" where that is not known.
    """

    noun: str
    cases: int
    where: str
    percent: float
    function: str = ""

    def text(self, single: bool) -> str:
        """``More locked operations in 9 cases, up to +24.1 % in hackbench/thread-pipe, most of it in pipe_write``."""
        told = f"{'More' if self.percent > 0 else 'Fewer'} {self.noun}"
        size = effect(self.percent)
        if single:
            told += f": {size}"
        else:
            several = f" in {self.cases} cases, up to {size}"
            told += f"{several if self.cases > 1 else f': {size}'} in {self.where}"
        return told + (f", most of it in {self.function}" if self.function else "")


class Headline(Struct, frozen=True, kw_only=True):
    """The answer as a value; ``text`` is the sentence."""

    tallies: tuple[Tally, ...] = ()
    case: str = ""  # the only case, where there is one
    steps: str = ""  # of a sweep, instead of tallies
    alone: str = ""  # the only kernel, where nothing was compared
    nothing: str = ""  # why nothing was measured
    largest: Largest | None = None
    hidden: Hidden | None = None
    console: str = ""  # what a patched kernel that failed said there
    unfinished: bool = False

    @property
    def text(self) -> str:
        """The sentence, and the largest difference where there is one; "" where nothing was measured yet."""
        told = self.nothing or self.steps or self._alone() or self._compared()
        single = bool(self.case) and len(self.tallies) == 1
        if told and self.largest is not None:
            told += f": {self.largest.text}" if single else f". Largest: {self.largest.where} {self.largest.text}"
        if told and self.hidden is not None:
            told += f". {self.hidden.text(single)}"
        if told and self.console:
            told += f". On its console: {self.console.rstrip('.!')}"
        told = f"so far: {told}" if told and self.unfinished else told
        return f"{told[0].upper()}{told[1:]}." if told.startswith(_WORDS) else f"{told}." if told else ""

    def _alone(self) -> str:
        return f"Figures of {self.alone} alone: there is nothing to compare them with" if self.alone else ""

    def _compared(self) -> str:
        if len({tally.patched for tally in self.tallies}) > _KERNELS_TOLD:
            return "; ".join(in_results(self.tallies, kind) for kind in dict.fromkeys(t.kind for t in self.tallies))
        return "; ".join(in_case(tally, self.case) if self.case else in_cases(tally) for tally in self.tallies)


def cause(told: Because | None, percent: float) -> str:
    """The one cause that weighs most of those that go the way of the effect; "" where none does."""
    if told is None:
        return ""
    causes = [(told.gone_delta, f"{_named(told.gone)} gone ({_signed(told.gone_delta)})")] if told.gone else []
    causes += [(told.new_delta, f"{_named(told.new)} new ({_signed(told.new_delta)})")] if told.new else []
    causes += [(delta, f"of {name} ({_signed(delta)})") for name, delta in told.changed]
    along = [(abs(delta), text) for delta, text in causes if delta * percent > 0]
    text = max(along, key=lambda one: one[0])[1] if along else ""
    return text if len(text) <= _CAUSE_CHARS else ""


def _signed(delta: float) -> str:
    return f"{delta:+.0f}" if abs(delta) >= 10 else f"{delta:+.3g}"


def _named(names: Sequence[str]) -> str:
    shown, more = list(names[:_NAMES_TOLD]), len(names) - _NAMES_TOLD
    if more > 0:
        return f"{', '.join(shown)} and {more} more are"
    return f"{' and '.join(shown)} {'are' if len(shown) > 1 else 'is'}"


def _largest(found: Iterable[tuple[str, float | None, Because | None]]) -> Largest | None:
    known = [(where, value, told) for where, percent, told in found if (value := finite(percent)) is not None]
    if not known:
        return None
    where, value, told = max(known, key=lambda one: abs(one[1]))
    return Largest(where=where, percent=value, cause=cause(told, value))


def _hidden(rows: Sequence[tuple[str, CellResult]]) -> Hidden | None:
    """Of the counts that instructions hide, the one in most cases, and of these changes the largest."""
    found: dict[tuple[str, bool], list[tuple[str, float, str]]] = {}
    for where, cell in rows:
        warnings = [w for w in cell.warnings if isinstance(w, Carried)] if cell.state == "ok" else []
        for warning, (name, percent) in ((w, column) for w in warnings for column in w.columns):
            against = cell.verdict == "same" or (cell.effect_percent or 0.0) * percent < 0
            if name in _HIDDEN and against:
                function = warning.function if name == warning.columns[0][0] else ""  # it is of the first one
                found.setdefault((name, percent > 0), []).append((where, percent, function))
    if not found:
        return None
    (name, _), mine = max(found.items(), key=lambda one: (len(one[1]), one[0][0] == "locked"))
    where, percent, function = max(mine, key=lambda one: abs(one[1]))
    return Hidden(noun=_HIDDEN[name], cases=len(mine), where=where, percent=percent, function=function)


def of_cells(
    rows: Sequence[tuple[str, CellResult]], exact: bool, unfinished: bool, consoles: Mapping[str, str] | None = None
) -> Headline:
    """The answer of a table: ``rows`` are its cells with the titles of their cases. Primary metrics answer, if any.

    ``consoles``: what kernels complained of, by label.
    """
    rows = [row for row in rows if row[1].primary] or rows
    compared = [(title, cell) for title, cell in rows if cell.patched_label]
    if not compared:
        return Headline(alone=rows[0][1].baseline_label if rows else "", unfinished=unfinished and bool(rows))
    tallies = tallied([cell for _, cell in compared], exact)
    several = len({cell.patched_label for _, cell in compared}) > 1
    kinds = len({tally.kind for tally in tallies}) > 1

    def where(title: str, cell: CellResult, metric: bool = kinds) -> str:
        return title + (f", {cell.metric}" if metric else "") + (f" on {cell.patched_label}" if several else "")

    changed = [row for row in compared if row[1].state == "ok" and row[1].verdict in ("improved", "regressed")]
    titles = {title for title, _ in compared}
    return Headline(
        tallies=tallies,
        case=titles.pop() if len(titles) == 1 else "",
        largest=_largest((where(title, cell), cell.effect_percent, cell.because_line) for title, cell in changed),
        hidden=_hidden([(where(title, cell, metric=False), cell) for title, cell in compared]),
        console=next((text for t in tallies if t.ended and (text := (consoles or {}).get(t.patched))), ""),
        unfinished=unfinished,
    )


def of_sweeps(sweeps: Sequence[tuple[str, Sweep]], kernels: Sequence[str], exact: bool, unfinished: bool) -> Headline:
    """The answer of a sweep: ``sweeps`` with the titles of their cases, ``kernels`` oldest first."""
    steps = [(title, sweep, step) for title, sweep in sweeps for step in sweep.steps]
    over = f"over {len(kernels)} kernels, {kernels[0]} to {kernels[-1]}" if len(kernels) > 1 else f"on {kernels[0]}"
    cases = len({title for title, _ in sweeps})
    told = f"{len(steps)} step{'s' * (len(steps) != 1)} {over}, in {cases} case{'s' * (cases != 1)}"
    counts = []
    for kind in dict.fromkeys(kind_of(s.cell.metric, s.unit, s.better, exact) for _, s in sweeps):
        mine = [step for _, s, step in steps if kind_of(s.cell.metric, s.unit, s.better, exact) == kind]
        words = {"improved": kind.less, "regressed": kind.more}
        numbers = {word: sum(step.verdict == verdict for step in mine) for verdict, word in words.items()}
        told_of = [f"{number} to {word}" for word, number in numbers.items() if number]
        counts += [f"{told_of[0]} {kind.noun}".rstrip(), *told_of[1:]] if told_of else []
    undecided = sum(point.undecided for _, sweep in sweeps for point in sweep.points[1:])
    told = ": ".join(filter(None, [told, ", ".join(counts)])) + (f"; {undecided} undecided" if undecided else "")
    found = _largest(
        (f"{title} on {step.first}", step.effect_percent, step.because_line) for title, _, step in steps if step.verdict
    )
    return Headline(steps=told, largest=found, unfinished=unfinished)
