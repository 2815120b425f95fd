# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer in a sentence: what stands on top of every report. Made from verdicts alone; no statistics.

A count is never called time: fewer instructions are "fewer instructions", only times and rates are "faster". What is
undecided, within the noise floor or not measured counts for neither side. Where instructions hide another count that
changed, that is told behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution.exact import TRANSFERS
from kdelta.model import Because, CellResult, Culprit, Remark, Warn
from kdelta.model.experiment import UNLIKE
from kdelta.report import cautions
from kdelta.report.brief import brief_of, quoted
from kdelta.report.cause import at_same_calls, cause
from kdelta.report.crossed import crossed
from kdelta.report.ended import complained, console, nothing_on, sometimes, why_none
from kdelta.report.figures import absolute, change, count, effect
from kdelta.report.tallies import Tally, in_cases, in_results, kind_of, of_case, tallied, told_once
from kdelta.results.sweep import strings_of
from kdelta.results.types import Sweep
from kdelta.results.warnings import Carried, FewerCpus, IsolatedCpus
from kdelta.units import counted, finite, size
from kdelta.verdict.warnings import Meanwhile, OtherCalls, Strings

_KERNELS_TOLD = 3  # more patched kernels than these are told together
_WORDS = (
    "so far: ",
    "figures of ",
    "it is undecided ",
    "there is no ",
    "nothing could ",
    "nothing is measured ",
)  # that begin a sentence, unlike a label
_MANY_PERCENT = 1000.0
_LEAST = 0.05  # an operation: what appears or vanishes is as large as it is times that
_HIDDEN = {"locked": "locked operations", "data_lines": "data lines"}  # lines of code move with every build


class Largest(Struct, frozen=True, kw_only=True):
    """The largest difference that has a verdict, and because of what, "" where that is not known.

    ``same_calls``: what it is at the baseline's number of system calls, where that is far from it; ``strings``: with
    one instruction for each 8 bytes that REP moves; ``beside``: without kernel threads and interrupts, where most is
    theirs.
    """

    where: str
    percent: float | None  # None: from 0
    now: float | None = None  # what it is then
    figures: str = ""  # before and after, where a percentage says little
    cause: str = ""
    same_calls: str = ""
    strings: float | None = None
    mover: str = ""  # whose these are
    beside: float | None = None

    @property
    def text(self) -> str:
        """``-29.56 %, because step_into and walk_component are gone (-404)``."""
        told = change(self.percent, 0.0, self.now, called=True) + (f" ({self.figures})" if self.figures else "")
        if self.strings is not None:
            whose = f", most of it in {self.mover}" if self.mover else ""
            told += f" ({effect(self.strings)} with string instructions by what they move{whose})"
        if self.same_calls:
            return f"{told}, at as many system calls {self.same_calls}"
        if self.beside is not None:
            return f"{told}, without kernel threads and interrupts {effect(self.beside)}"
        return told + (f", because {self.cause}" if self.cause else "")


class Hidden(Struct, frozen=True, kw_only=True):
    """A count that changed in ``cases`` cases whose instructions did not, or went the other way; the largest of them.

    ``function``: where most of it is, "" where that is not known.
    """

    noun: str
    cases: int
    where: str
    percent: float  # infinite: from 0
    now: float = 0.0  # what it is then
    function: str = ""

    def text(self, single: bool) -> str:
        """``More locked operations in 9 cases, up to +24.1 % in hackbench/thread-pipe, most of it in pipe_write``."""
        told = f"{'More' if self.percent > 0 else 'Fewer'} {self.noun}"
        most = effect(self.percent) if math.isfinite(self.percent) else f"0 -> {count(self.now)}"
        if single:
            told += f": {most}"
        else:
            several = f" in {self.cases} cases, up to {most}"
            told += f"{several if self.cases > 1 else f': {most}'} in {self.where}"
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
    unequal: str = ""  # in what kernels are not alike that ought to be: CPUs of their guests, who built them
    crossing: str = ""  # what else crosses between CPUs more often, or less
    failed: str = ""  # why no row has a figure on both sides
    sometimes: str = ""  # what a patched kernel did not come to its end in, if not always, where the baseline did
    complained: str = ""  # what a patched kernel that went on said there, and the baseline did not
    console: str = ""  # what a patched kernel that failed said there, where several: with whose it was
    cautions: tuple[str, ...] = ()  # what figures do not say: of waits, of what is done later, of what grows
    unseen: str = ""  # what of a patch no case executed
    uncrossed: str = ""  # what of it one CPU does not show
    evened: Largest | None = None  # of what is the same in all, what changed most at as many system calls
    searched: str = ""  # the commit that a bisection came to
    unfinished: bool = False

    @property
    def text(self) -> str:
        """The sentence, and the largest difference where there is one; "" where nothing was measured yet."""
        told = self.nothing or self.steps or self._alone() or self._compared()
        if not told:
            return ""
        if self.searched:
            return f"{self.searched}. {replace(self, searched='').text}"
        single = bool(self.case) and len(self.tallies) == 1
        first = f"so far: {told}" if self.unfinished else told
        parts = (first + self._largest(single), *self._beside(single))
        told = " ".join(f"{part.removesuffix('.')}." for part in parts if part)  # a program's words may end in one
        return f"{told[0].upper()}{told[1:]}" if told.startswith(_WORDS) else told

    def _largest(self, single: bool) -> str:
        if self.largest is None:
            return ""
        return f": {self.largest.text}" if single else f". Largest: {self.largest.where} {self.largest.text}"

    def _beside(self, single: bool) -> tuple[str, ...]:
        """What the verdicts do not say by themselves, a sentence each; "" where there is nothing to say."""
        evened = "" if self.evened is None else f"At as many system calls: {self.evened.text}"
        return (
            self.complained.rstrip(".!"),
            evened + (f" in {self.evened.where}" if self.evened is not None and not single else ""),
            self.unequal,
            self.crossing,
            "" if self.hidden is None else self.hidden.text(single),
            *self.cautions,
            self.failed,
            self.sometimes,
            self.console.rstrip(".!"),
            self.unseen,
            self.uncrossed,
        )

    def _alone(self) -> str:
        return f"figures of {self.alone} alone: there is nothing to compare them with" if self.alone else ""

    def _compared(self) -> str:
        if len({tally.patched for tally in self.tallies}) > _KERNELS_TOLD:
            return "; ".join(in_results(self.tallies, kind) for kind in dict.fromkeys(t.kind for t in self.tallies))
        told = told_once(self.tallies)
        return of_case(told, self.case) if self.case else "; ".join(map(in_cases, told))


class _Changed(Struct, frozen=True, kw_only=True):
    """A cell or step with a verdict."""

    where: str
    metric: str
    unit: str
    percent: float | None
    baseline: float | None
    patched: float | None = None
    because: Because | None
    warnings: Sequence[Warn] = ()

    @property
    def size(self) -> float:
        """How large it is, a rise and its reverse alike, or with what REP moves; below 0 where nothing says."""
        percent, moved = finite(self.percent), finite(self.strings)
        if percent is not None and percent > -100:
            return max(size(percent), size(moved) if moved is not None and moved > -100 else 0.0)
        side = self.baseline if percent is not None else self.patched if self.percent is None else None
        return -1.0 if not side else math.log(max(side, _LEAST) / _LEAST)

    @property
    def strings(self) -> float | None:
        """The change with one instruction for each 8 bytes that REP moves, where that is another one."""
        return next((w.per_word_percent for w in self.warnings if isinstance(w, Strings)), None)

    @property
    def figures(self) -> str:
        """Both sides, of what is many times as much."""
        if self.percent is None or self.percent < _MANY_PERCENT or self.baseline is None or self.patched is None:
            return ""
        before, after = (absolute(side, self.unit, self.metric) for side in (self.baseline, self.patched))
        return f"{before} -> {after}"


def _largest(found: Iterable[_Changed]) -> Largest | None:
    one = max(found, key=lambda one: one.size, default=None)
    if one is None or one.size < 0:
        return None
    whole = abs(one.patched or 0.0) if one.percent is None else math.inf
    if one.percent is not None and one.baseline is not None:
        whole = abs(one.baseline * one.percent / 100)
    told = cause(one.because, math.inf if one.percent is None else one.percent, whole, one.metric == TRANSFERS)
    return Largest(
        where=one.where,
        percent=one.percent,
        now=one.patched,
        figures=one.figures,
        cause=told,
        same_calls=at_same_calls(one.warnings),
        strings=one.strings,
        mover=next((w.function for w in one.warnings if isinstance(w, Strings)), ""),
        beside=next((w.left_percent for w in one.warnings if isinstance(w, Meanwhile)), None),
    )


def _same_calls(warnings: Sequence[Warn]) -> float | None:
    return next((w.same_calls_percent for w in warnings if isinstance(w, OtherCalls) and not w.less_each), None)


def _evened(rows: Iterable[tuple[str, CellResult]]) -> Largest | None:
    """Of what is the same because fewer system calls cost more each, or more of them less, the largest."""
    found = [(where, cell) for where, cell in rows if cell.verdict == "same" and cell.state == "ok"]
    known = [(where, value) for where, cell in found if (value := _same_calls(cell.warnings)) is not None]
    where, value = max(known, key=lambda one: size(one[1]), default=("", 0.0))
    return Largest(where=where, percent=value) if where else None


def _hidden(rows: Sequence[tuple[str, CellResult]]) -> Hidden | None:
    """Of the counts that instructions hide somewhere, the one in most cases, and of all its changes the largest."""
    found: dict[tuple[str, bool], list[Hidden]] = {}
    hides = set()
    for where, cell in rows:
        warnings = [w for w in cell.warnings if isinstance(w, Carried)] if cell.state == "ok" else []
        for warning in warnings:
            columns = [(name, math.inf, now) for name, now in warning.new]
            for name, percent, now in (*columns, *((name, percent, 0.0) for name, percent in warning.columns)):
                if name in _HIDDEN:
                    function = warning.function if name == warning.lead else ""  # it is of the first one
                    one = Hidden(noun=_HIDDEN[name], cases=1, where=where, percent=percent, now=now, function=function)
                    found.setdefault((name, percent > 0), []).append(one)
                    if cell.verdict == "same" or (cell.effect_percent or 0.0) * percent < 0:
                        hides.add((name, percent > 0))
    if not hides:
        return None

    def largest(one: tuple[str, bool]) -> Hidden:
        return max(found[one], key=lambda each: (abs(each.percent), each.now))

    def weight(one: tuple[str, bool]) -> tuple[int, bool, float]:
        return len(found[one]), one[0] == "locked", abs(largest(one).percent)

    most = max(sorted(hides), key=weight)
    return replace(largest(most), cases=len(found[most]))


def unequal(warnings: Sequence[Warn]) -> str:
    """Which kernels did not bring up all CPUs of their guests, or have other configs: little compares then."""
    found = [f"{w.kernel} had {w.cpus} of {w.asked} CPUs" for w in warnings if isinstance(w, FewerCpus)]
    found += [f"{w.kernel} kept tasks off some CPUs" for w in warnings if isinstance(w, IsolatedCpus)]
    built = [w.text.partition(":")[0] for w in warnings if isinstance(w, Remark) and w.about == UNLIKE]
    return "; ".join((*found, *(f"{one}: part of each effect may be the config's" for one in built)))


def searched(found: Culprit | None) -> str:
    """The commit that a bisection came to, and where it is compared with the good one before it."""
    if found is None:
        return ""
    return f"The search came to {found.commit}: experiment {found.comparison} compares it with {found.before}"


def of_cells(
    rows: Sequence[tuple[str, CellResult]],
    exact: bool,
    unfinished: bool,
    consoles: Mapping[str, str] = MappingProxyType({}),
    unseen: str = "",
    beside: Sequence[tuple[str, CellResult]] = (),
) -> Headline:
    """The answer of a table: ``rows`` are its cells with the titles of their cases. Primary metrics answer, if any.

    ``consoles``: what kernels complained of, by label. ``unseen``: what of a patch the cases do not speak of.
    ``beside``: further verdicts on what crosses between CPUs, of single cache lines too.
    """
    brief = brief_of(title for title, _ in (*rows, *beside))
    rows, beside = ([(brief.get(title, title), cell) for title, cell in each] for each in (rows, beside))
    rows = [row for row in rows if row[1].primary] or rows
    compared = [(title, cell) for title, cell in rows if cell.patched_label]
    if not compared:
        label = rows[0][1].baseline_label if rows else ""
        if rows and all(cell.baseline is None for _, cell in rows):
            return Headline(nothing=nothing_on(label, rows, unfinished), unfinished=unfinished)
        return Headline(alone=label, unfinished=unfinished and bool(rows))
    tallies = tallied([cell for _, cell in compared], exact)
    several = len({cell.patched_label for _, cell in compared}) > 1
    kinds = len({tally.kind for tally in tallies}) > 1

    def where(title: str, cell: CellResult, metric: bool = kinds) -> str:
        return title + (f", {cell.metric}" if metric else "") + (f" on {cell.patched_label}" if several else "")

    changed = [row for row in compared if row[1].state == "ok" and row[1].verdict in ("improved", "regressed")]
    titles = {title for title, _ in compared}
    case = titles.pop() if len(titles) == 1 else ""
    return Headline(
        tallies=tallies,
        case=quoted(case),
        crossing=crossed(beside, [cell for _, cell in compared], case),
        largest=_largest(
            _Changed(
                where=where(title, cell),
                metric=cell.metric,
                unit=cell.unit,
                percent=cell.effect_percent,
                baseline=cell.baseline,
                patched=cell.patched,
                because=cell.because_line,
                warnings=cell.warnings,
            )
            for title, cell in changed
        ),
        evened=_evened((where(title, cell), cell) for title, cell in compared),
        hidden=_hidden([(where(title, cell, metric=False), cell) for title, cell in compared]),
        unseen=unseen,
        cautions=cautions.of([cell for _, cell in compared]),
        failed=why_none(compared),
        sometimes=sometimes(compared),
        complained=complained(compared[0][1].baseline_label, [t.patched for t in tallies if not t.ended], consoles),
        console=console(tallies, consoles),
        unfinished=unfinished,
    )


def _absent(why: Mapping[str, str]) -> str:
    """Versions that are no kernels, and the worst of ``why``, by version."""
    names = list(why)
    told = ", ".join(names[:_KERNELS_TOLD]) + (f" and {len(names) - _KERNELS_TOLD} more" * (len(names) > _KERNELS_TOLD))
    unbuilt, many = all(one.startswith("does not build") for one in why.values()), len(names) > 1
    verb = ("do" if many else "does") + " not build" if unbuilt else ("are" if many else "is") + " left out"
    return f"; {told} {verb}" if names else ""


def of_sweeps(
    sweeps: Sequence[tuple[str, Sweep]],
    kernels: Sequence[str],
    exact: bool,
    unfinished: bool,
    consoles: Mapping[str, str] = MappingProxyType({}),
) -> Headline:
    """The answer of a sweep: ``sweeps`` with the titles of their cases, ``kernels`` oldest first."""
    brief = brief_of(title for title, _ in sweeps)
    sweeps = [(brief.get(title, title), sweep) for title, sweep in sweeps]
    steps = [(title, sweep, step) for title, sweep in sweeps for step in sweep.steps]
    over = f"over {len(kernels)} kernels, {kernels[0]} to {kernels[-1]}" if len(kernels) > 1 else f"on {kernels[0]}"
    cases, metrics = {title for title, _ in sweeps}, {sweep.cell.metric for _, sweep in sweeps}
    with_figure = {title for title, sweep in sweeps if sweep.measured}
    without = 0 if unfinished or not with_figure else len(cases - with_figure)
    told = f"{counted(len(steps), 'step')} {over}, in {counted(len(cases) - without, 'case')}"
    counts = []
    for kind in dict.fromkeys(kind_of(s.cell.metric, s.unit, s.better, exact) for _, s in sweeps):
        mine = [step for _, s, step in steps if kind_of(s.cell.metric, s.unit, s.better, exact) == kind]
        words = {"improved": kind.less, "regressed": kind.more}
        numbers = {word: sum(step.verdict == verdict for step in mine) for verdict, word in words.items()}
        told_of = [f"{number} to {word}" for word, number in numbers.items() if number]
        noun = f" {kind.noun}" if kind.noun else kind.on
        counts += [told_of[0] + noun, *told_of[1:]] if told_of else []
    undecided = sum(point.undecided for _, sweep in sweeps for point in sweep.points[1:])
    told = ": ".join(filter(None, [told, ", ".join(counts)])) + (f"; {undecided} undecided" if undecided else "")
    told += f"; {without} {'has' if without == 1 else 'have'} no figure" if without else ""
    told += _absent({p.kernel: p.why for _, sweep in sweeps for p in sweep.points if p.kernel not in kernels})
    found = _largest(
        _Changed(
            where=title + (f", {sweep.cell.metric}" if len(metrics) > 1 else "") + f" on {step.first}",
            metric=sweep.cell.metric,
            unit=sweep.unit,
            percent=finite(step.effect_percent),
            baseline=step.baseline,
            patched=step.patched,
            because=step.because_line,
            warnings=strings_of(step),
        )
        for title, sweep, step in steps
        if step.verdict
    )
    said = complained(kernels[0], kernels[1:], consoles)
    return Headline(steps=told, largest=found, complained=said, unfinished=unfinished)
