# SPDX-License-Identifier: GPL-2.0-or-later
"""How many cases got which answer, and the clause that says so. Made from verdicts alone; no statistics.

A count is never called time: fewer instructions are "fewer instructions", only times and rates are "faster". What is
undecided, within the noise floor or not measured counts for neither side. Where only one of the kernels failed, how it
did is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution.exact import TRANSFERS
from kdelta.model import GRAVEST_FIRST, CellResult, State
from kdelta.units import Better
from kdelta.verdict import ENDED, at_boot

_ANSWERS = {"improved": "improved", "regressed": "regressed", "same": "same", "inconclusive": "inconclusive"}
_ENDS: dict[State, str] = {
    "panicked": "panics in",
    "hung": "hangs in",
    "lost": "is lost in",
    "failed": "fails in",
    "unsupported": "does not support",
}


class Kind(Struct, frozen=True):
    """How verdicts on one kind of figures are told; the first three are verbs, the others a word each."""

    improved: str  # "executes fewer instructions than"
    regressed: str
    same: str
    less: str  # "fewer": improved, once it was said of what
    more: str
    noun: str = ""
    on: str = ""  # " in transfers": of a figure that is not what the case is measured by


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
    waiting: int = 0  # of the missing, not booted yet
    beyond: int = 0  # of the same, too small to matter but no chance: their intervals do not hold 0
    worse: int = 0  # of the inconclusive, those whose estimate is on the side of a regression
    ended: tuple[State, ...] = ()  # of the missing, how the patched kernel alone failed; the gravest first
    at_boot: int = 0  # of these, before it came to the case
    ended_before: tuple[State, ...] = ()  # of the missing, how the baseline alone failed, which the patched kernel ran

    @property
    def cases(self) -> int:
        """All of them."""
        return self.improved + self.regressed + self.same + self.inconclusive + self.descriptive + self.missing

    @property
    def alike(self) -> str:
        """The verb of what is the same: a difference in counts that is there, though too small, is no "as many"."""
        if not self.beyond:
            return self.kind.same
        return self.kind.same.replace("s as many", "s about as many").replace("is the same", "is about the same")

    @property
    def asked(self) -> str:
        """The verb of what is undecided, on the side of the estimates."""
        return self.kind.regressed if self.worse == self.inconclusive else self.kind.improved


def kind_of(metric: str, unit: str, better: Better, exact: bool) -> Kind:
    """How verdicts on a metric are told: instructions, transfers, times and rates in words, others by name."""
    if exact and metric == "instructions":
        than, alike = "executes {} instructions than", "executes as many instructions as"
        return Kind(than.format("fewer"), than.format("more"), alike, "fewer", "more", "instructions")
    if exact and metric == TRANSFERS:
        than, alike = "moves {} cache lines between CPUs than", "moves as many cache lines between CPUs as"
        return Kind(than.format("fewer"), than.format("more"), alike, "fewer", "more", TRANSFERS, on=" in transfers")
    if not exact and (unit == "ns" or unit.endswith("/s")):
        return Kind("is faster than", "is slower than", "is as fast as", "faster", "slower")
    less, more = ("lower", "higher") if better == "lower" else ("higher", "lower")
    verbs = (f"is {less} in {metric} than", f"is {more} in {metric} than", f"is the same in {metric} as")
    return Kind(*verbs, less, more, on=f" in {metric}")


def tallied(cells: Sequence[CellResult], exact: bool) -> tuple[Tally, ...]:
    """Verdicts counted by kernels and kind of figure; what was not measured counts, once, with those that there are."""
    found: dict[tuple[str, str, Kind], Tally] = {}
    ended_already = set[tuple[str, ...]]()
    for cell in sorted(cells, key=lambda one: one.state != "ok"):  # stable: those without a figure last
        sides = (cell.baseline_label, cell.patched_label)
        key = (*sides, kind_of(cell.metric, cell.unit, cell.better, exact))
        word = _ANSWERS.get(cell.verdict or "", "descriptive")
        ended: tuple[State, ...] = ()
        before: tuple[State, ...] = ()
        if cell.state != "ok":
            case = (*sides, cell.case, cell.cgroup, cell.mitigations)
            if case in ended_already:  # it has several figures, and failed once
                continue
            ended_already.add(case)
            key, word = next((known for known in found if known[:2] == sides), key), "missing"
            ended = (cell.state,) if cell.baseline is not None and not cell.unbooted else ()
            before = (cell.state,) if cell.baseline is None and cell.patched is not None and not cell.unbooted else ()
        tally = found.setdefault(key, Tally(baseline=key[0], patched=key[1], kind=key[2]))
        found[key] = replace(
            tally,
            ended=_gravest_first(*tally.ended, *ended),
            ended_before=_gravest_first(*tally.ended_before, *before),
            at_boot=tally.at_boot + (bool(ended) and at_boot(cell)),
            waiting=tally.waiting + cell.unbooted,
            beyond=tally.beyond + (word == "same" and _beyond(cell)),
            worse=tally.worse + (word == "inconclusive" and _is_worse(cell)),
            **{word: getattr(tally, word) + 1},
        )
    return tuple(found.values())


def _gravest_first(*states: State) -> tuple[State, ...]:
    return tuple(sorted(states, key=GRAVEST_FIRST.index))


def _beyond(cell: CellResult) -> bool:
    low, high = cell.interval_percent or (0.0, 0.0)
    return low > 0 or high < 0


def _is_worse(cell: CellResult) -> bool:
    """Whether a cell's estimate, decided or not, is worse than its baseline; of none where most of its interval is."""
    leans = cell.effect_percent or sum(cell.interval_percent or ())
    rises = leans > 0 if cell.effect_percent is not None else bool(cell.patched) and not cell.baseline
    return rises == (cell.better == "lower") and (cell.effect_percent is None or leans != 0)


def told_once(tallies: Sequence[Tally]) -> tuple[Tally, ...]:
    """Without those that say a second time of two kernels that there is no verdict."""
    silent = [
        (t.baseline, t.patched)
        for t in tallies
        if t.cases == t.descriptive + t.missing and not t.ended and not t.ended_before
    ]
    several = {
        sides for sides in silent if silent.count(sides) == sum(sides == (t.baseline, t.patched) for t in tallies)
    }
    firsts = {(t.baseline, t.patched): t for t in reversed(tallies)}
    return tuple(t for t in tallies if (t.baseline, t.patched) not in several or t is firsts[t.baseline, t.patched])


def _sides(tally: Tally) -> list[tuple[int, str, str]]:
    """(count, verb, word) of improved and regressed, the one that there is first."""
    kind = tally.kind
    sides = [(tally.improved, kind.improved, kind.less), (tally.regressed, kind.regressed, kind.more)]
    return sides if tally.improved else sides[::-1]


def _ends(ended: Sequence[State]) -> dict[str, int]:
    """How one kernel alone failed, in words, and in how many cases."""
    return {_ENDS[state]: ended.count(state) for state in dict.fromkeys(ended)}


def _boots_not(tally: Tally) -> str:
    how = {"panicked": "panics", "hung": "hangs"}[tally.ended[0]]
    return f"{tally.patched} does not boot, it {how}; {tally.baseline} does"


def in_case(tally: Tally, case: str) -> str:
    """One case on one patched kernel."""
    (count, verb, _), _ = _sides(tally)
    if count or tally.same:
        return f"{tally.patched} {verb if count else tally.alike} {tally.baseline} in {case}"
    if tally.inconclusive:
        return f"it is undecided whether {tally.patched} {tally.asked} {tally.baseline} in {case}"
    if tally.ended and not tally.descriptive:
        if tally.at_boot:
            return _boots_not(tally)
        return f"{tally.patched} {_ENDS[tally.ended[0]]} {case}, which {tally.baseline} runs"
    if tally.ended_before and not tally.descriptive:
        return f"{tally.baseline} {_ENDS[tally.ended_before[0]]} {case}, which {tally.patched} runs"
    if _never(tally):
        return f"{case} could be measured neither on {tally.baseline} nor on {tally.patched}"
    none = f"has no verdict{tally.kind.on}" if tally.descriptive else "is not measured yet"
    return f"{case} {none} on {tally.patched}"


def _never(tally: Tally) -> bool:
    """Whether neither kernel came to a figure, nor will."""
    return tally.missing == tally.cases and not (tally.ended or tally.ended_before or tally.waiting)


def of_case(tallies: Sequence[Tally], case: str) -> str:
    """One case, all kernels: what changed of each comes first, unless there are times, which decide."""
    if len({t.patched for t in tallies}) > 1 and all(map(_never, tallies)):
        return f"{case} could be measured on no kernel"
    return "; ".join(
        _of_sides([t for t in tallies if (t.baseline, t.patched) == sides], case)
        for sides in dict.fromkeys((t.baseline, t.patched) for t in tallies)
    )


def _of_sides(mine: Sequence[Tally], case: str) -> str:
    if all(t.kind.noun or t.kind.on for t in mine):
        mine = sorted(mine, key=lambda t: not (t.improved or t.regressed))
    first = _answer(mine[0])
    told = in_case(mine[0], case)
    for tally in mine[1:]:
        answer = _answer(tally)
        verb = tally.alike if answer == "same" else _sides(tally)[0][1]
        joined = f", {'and' if answer == first else 'but'} {verb.rpartition(' ')[0]}"
        told += joined if first and answer else f"; {in_case(tally, case)}"
    return told


def _answer(tally: Tally) -> str:
    """The answer of a tally of one case; "" where it has none."""
    return next((word for word in ("improved", "regressed", "same") if getattr(tally, word)), "")


def in_cases(tally: Tally) -> str:
    """Several cases on one patched kernel."""
    (count, verb, _), (others, _, other) = _sides(tally)
    faults = [state for state in tally.ended if state in ENDED]
    ends, before = _ends([state for state in tally.ended if state not in faults]), _ends(tally.ended_before)
    rest = {"the same in": tally.same, "undecided in": tally.inconclusive, "without a verdict in": tally.descriptive}
    rest |= ends | {"not measured in": tally.missing - len(tally.ended) - len(tally.ended_before)}
    rest |= {f"{tally.baseline} {word}": number for word, number in before.items()}

    def some(number: int) -> str:
        if number == tally.cases:
            return {1: "1 case", 2: "both cases"}.get(number, f"all {number} cases")
        return f"{number} of {tally.cases} cases"

    if count:
        told = f"{tally.patched} {verb} {tally.baseline} in {some(count)}"
        told += f", {other} in {others or 'none'}" if count < tally.cases else ""
    elif tally.same:
        told = f"{tally.patched} {tally.alike} {tally.baseline} in {some(rest.pop('the same in'))}"
    elif tally.inconclusive:
        where = some(rest.pop("undecided in"))
        told = f"it is undecided whether {tally.patched} {tally.asked} {tally.baseline} in {where}"
    elif tally.at_boot == tally.cases:
        return _boots_not(tally)
    elif len(tally.ended) == tally.cases:
        how = ", ".join(f"{word} {some(number)}" for word, number in _ends(tally.ended).items())
        return f"{tally.patched} {how}, which {tally.baseline} runs"
    elif len(tally.ended_before) == tally.cases:
        how = ", ".join(f"{word} {some(number)}" for word, number in before.items())
        return f"{tally.baseline} {how}, which {tally.patched} runs"
    else:
        none = f"there is no verdict{tally.kind.on} on" if tally.descriptive else "nothing could be measured on"
        if tally.waiting == tally.cases:
            none = "nothing is measured yet on"
        return f"{none} {tally.patched} against {tally.baseline}"
    told = "; ".join(filter(None, [told, ", ".join(f"{word} {number}" for word, number in rest.items() if number)]))
    if not faults:
        return told
    how = " and ".join(f"{word} {number}" for word, number in _ends(faults).items())
    itself = told.removeprefix(f"{tally.patched} ")
    alone = f"{tally.patched} {how} of {tally.cases} cases, which {tally.baseline} runs"
    return f"{alone}; {'it ' if itself != told else ''}{itself}"


def in_results(tallies: Iterable[Tally], kind: Kind) -> str:
    """Many kernels in one clause."""
    mine = [tally for tally in tallies if tally.kind == kind]
    total, less, more = (sum(getattr(t, n) for t in mine) for n in ("cases", "improved", "regressed"))
    words = {
        "same": "the same in",
        "inconclusive": "undecided in",
        "descriptive": "without a verdict in",
        "missing": "not measured in",
    }
    rest = [f"{word} {count}" for name, word in words.items() if (count := sum(getattr(t, name) for t in mine))]
    noun = f" {kind.noun}" if kind.noun else kind.on
    told = f"{len(mine)} kernels against {mine[0].baseline}: {kind.less}{noun} in {less or 'none'} of {total} results, "
    return f"{told}{kind.more} in {more or 'none'}" + (f"; {', '.join(rest)}" if rest else "")
