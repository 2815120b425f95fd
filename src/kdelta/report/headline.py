# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer in a sentence: what stands on top of every report. Made from verdicts alone; no statistics.

A count is never called time: fewer instructions are "fewer instructions", only times and rates are "faster". What is
undecided, within the noise floor or not measured counts for neither side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kdelta.model import Because, CellResult
from kdelta.report.figures import effect
from kdelta.results.types import Sweep
from kdelta.units import Better, finite

_KERNELS_TOLD = 3  # more patched kernels than these are told together
_WORDS = ("so far: ", "it is undecided ", "there is no ", "nothing could ")  # that begin a sentence, unlike a label
_NAMES_TOLD = 2  # functions
_CAUSE_CHARS = 90  # a longer one is no answer: the causes have it whole


class Kind(Struct, frozen=True):
    """How verdicts on one kind of figures are told; the first three are verbs, the others a word each."""

    improved: str  # "executes fewer instructions than"
    regressed: str
    same: str
    less: str  # "fewer": improved, once it was said of what
    more: str
    noun: str = ""


class Tally(Struct, frozen=True, kw_only=True):
    """One patched kernel against its baseline in one kind of figures: how many cases got which answer."""

    baseline: str
    patched: str
    kind: Kind
    improved: int = 0
    regressed: int = 0
    same: int = 0
    inconclusive: int = 0
    descriptive: int = 0
    missing: int = 0  # not measured

    @property
    def cases(self) -> int:
        """All of them."""
        return self.improved + self.regressed + self.same + self.inconclusive + self.descriptive + self.missing


class Largest(Struct, frozen=True, kw_only=True):
    """The largest difference that has a verdict, and because of what, "" where that is not known."""

    where: str
    percent: float
    cause: str = ""

    @property
    def text(self) -> str:
        """``-29.56 %, because step_into and walk_component are gone (-404)``."""
        return effect(self.percent) + (f", because {self.cause}" if self.cause else "")


class Headline(Struct, frozen=True, kw_only=True):
    """The answer as a value; ``text`` is the sentence."""

    tallies: tuple[Tally, ...] = ()
    case: str = ""  # the only case, where there is one
    steps: str = ""  # of a sweep, instead of tallies
    alone: str = ""  # the only kernel, where nothing was compared
    largest: Largest | None = None
    unfinished: bool = False

    @property
    def text(self) -> str:
        """The sentence, and the largest difference where there is one; "" where nothing was measured."""
        told = self.steps or self._alone() or self._compared()
        if told and self.largest is not None:
            single = bool(self.case) and len(self.tallies) == 1
            told += f": {self.largest.text}" if single else f". Largest: {self.largest.where} {self.largest.text}"
        told = f"so far: {told}" if told and self.unfinished else told
        return f"{told[0].upper()}{told[1:]}." if told.startswith(_WORDS) else f"{told}." if told else ""

    def _alone(self) -> str:
        return f"Figures of {self.alone} alone: there is nothing to compare them with" if self.alone else ""

    def _compared(self) -> str:
        if len({tally.patched for tally in self.tallies}) > _KERNELS_TOLD:
            return "; ".join(_together(self.tallies, kind) for kind in dict.fromkeys(t.kind for t in self.tallies))
        told = [_of_case(tally, self.case) if self.case else _of_cases(tally) for tally in self.tallies]
        return "; ".join(told)


def _sides(tally: Tally) -> list[tuple[int, str, str]]:
    """(count, verb, word) of improved and regressed, the one that there is first."""
    kind = tally.kind
    sides = [(tally.improved, kind.improved, kind.less), (tally.regressed, kind.regressed, kind.more)]
    return sides if tally.improved else sides[::-1]


def _of_case(tally: Tally, case: str) -> str:
    (count, verb, _), _ = _sides(tally)
    if count or tally.same:
        return f"{tally.patched} {verb if count else tally.kind.same} {tally.baseline} in {case}"
    if tally.inconclusive:
        return f"it is undecided whether {tally.patched} {tally.kind.improved} {tally.baseline} in {case}"
    return f"{case} {'has no verdict' if tally.descriptive else 'could not be measured'} on {tally.patched}"


def _of_cases(tally: Tally) -> str:
    (count, verb, _), (others, _, other) = _sides(tally)
    rest = {"the same": tally.same, "undecided": tally.inconclusive, "without a verdict": tally.descriptive}
    rest["not measured"] = tally.missing

    def some(number: int) -> str:
        if number == tally.cases:
            return "both cases" if number == 2 else f"all {number} cases"
        return f"{number} of {tally.cases} cases"

    if count:
        told = f"{tally.patched} {verb} {tally.baseline} in {some(count)}"
        told += f", {other} in {others or 'none'}" if count < tally.cases else ""
    elif tally.same:
        told = f"{tally.patched} {tally.kind.same} {tally.baseline} in {some(rest.pop('the same'))}"
    elif tally.inconclusive:
        where = some(rest.pop("undecided"))
        told = f"it is undecided whether {tally.patched} {tally.kind.improved} {tally.baseline} in {where}"
    else:
        none = "there is no verdict on" if tally.descriptive else "nothing could be measured on"
        return f"{none} {tally.patched} against {tally.baseline}"
    return "; ".join(filter(None, [told, ", ".join(f"{word} in {number}" for word, number in rest.items() if number)]))


def _together(tallies: Iterable[Tally], kind: Kind) -> str:
    """Many kernels in one clause."""
    mine = [tally for tally in tallies if tally.kind == kind]
    total, less, more = (sum(getattr(t, name) for t in mine) for name in ("cases", "improved", "regressed"))
    noun = f" {kind.noun}" if kind.noun else ""
    return (
        f"{len(mine)} kernels against {mine[0].baseline}: {kind.less}{noun} in {less or 'none'} of {total} results, "
        f"{kind.more} in {more or 'none'}"
    )


def kind_of(metric: str, unit: str, better: Better, exact: bool) -> Kind:
    """How verdicts on a metric are told: instructions, times and rates by their own words, others by name."""
    if exact and metric == "instructions":
        than, alike = "executes {} instructions than", "executes as many instructions as"
        return Kind(than.format("fewer"), than.format("more"), alike, "fewer", "more", "instructions")
    if not exact and (unit == "ns" or unit.endswith("/s")):
        return Kind("is faster than", "is slower than", "is as fast as", "faster", "slower")
    less, more = ("lower", "higher") if better == "lower" else ("higher", "lower")
    return Kind(f"is {less} in {metric} than", f"is {more} in {metric} than", f"is the same in {metric} as", less, more)


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


_ANSWERS = {"improved": "improved", "regressed": "regressed", "same": "same", "inconclusive": "inconclusive"}


def of_cells(rows: Sequence[tuple[str, CellResult]], exact: bool, unfinished: bool) -> Headline:
    """The answer of a table: ``rows`` are its cells with the titles of their cases. Primary metrics answer, if any."""
    rows = [row for row in rows if row[1].primary] or rows
    compared = [(title, cell) for title, cell in rows if cell.patched_label]
    if not compared:
        return Headline(alone=rows[0][1].baseline_label if rows else "", unfinished=unfinished and bool(rows))
    tallies = _tallies([cell for _, cell in compared], exact)
    several = len({cell.patched_label for _, cell in compared}) > 1
    kinds = len({tally.kind for tally in tallies}) > 1

    def where(title: str, cell: CellResult) -> str:
        return title + (f", {cell.metric}" if kinds else "") + (f" on {cell.patched_label}" if several else "")

    changed = [row for row in compared if row[1].state == "ok" and row[1].verdict in ("improved", "regressed")]
    titles = {title for title, _ in compared}
    return Headline(
        tallies=tallies,
        case=titles.pop() if len(titles) == 1 else "",
        largest=_largest((where(title, cell), cell.effect_percent, cell.because_line) for title, cell in changed),
        unfinished=unfinished,
    )


def _tallies(cells: Sequence[CellResult], exact: bool) -> tuple[Tally, ...]:
    """Verdicts counted by kernels and kind of figure; what was not measured counts with the figures that there are."""
    found: dict[tuple[str, str, Kind], Tally] = {}
    for cell in sorted(cells, key=lambda one: one.state != "ok"):  # stable: those without a figure last
        sides = (cell.baseline_label, cell.patched_label)
        key = (*sides, kind_of(cell.metric, cell.unit, cell.better, exact))
        word = _ANSWERS.get(cell.verdict or "", "descriptive")
        if cell.state != "ok":
            key, word = next((known for known in found if known[:2] == sides), key), "missing"
        tally = found.setdefault(key, Tally(baseline=key[0], patched=key[1], kind=key[2]))
        found[key] = replace(tally, **{word: getattr(tally, word) + 1})
    return tuple(found.values())


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
    found = _largest(
        (f"{title} on {step.first}", step.effect_percent, step.because_line) for title, _, step in steps if step.verdict
    )
    return Headline(steps=": ".join(filter(None, [told, ", ".join(counts)])), largest=found, unfinished=unfinished)
