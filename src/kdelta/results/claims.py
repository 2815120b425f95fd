# SPDX-License-Identifier: GPL-2.0-or-later
"""A measurement held against the claims of a recipe. Pure; docs/reference/recipes.md.

A claim is judged by figures of its own kind. A claim in time is *reproduced* when the measured time has its sign, its
size within a factor of two, and an interval that is compatible with it; counts can only agree in direction, and never
refute it: 65,536 more locked operations were +12 % in time and +1 % in instructions. The size of a change is the
logarithm of its ratio, so that +100 % and -50 % are one size. What has no verdict refutes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kdelta.model import CellResult, State, Warn, Word
from kdelta.spec.recipes import Claim, Recipe, in_time, published_percent, unchanged
from kdelta.units import Better, counted

Call = Literal["reproduced", "same direction", "not reproduced", "opposite", "not measurable here"]
CALLS: tuple[Call, ...] = ("reproduced", "same direction", "not reproduced", "opposite", "not measurable here")
_GONE = 0.1  # of its share before: what is left of a function that a claim says vanishes
_TINY = 1e-9
_MOVED = ("improved", "regressed")
_NO_DIFFERENCE = "no difference beyond the noise floor"


class Column(Struct, frozen=True, kw_only=True):
    """One count beside a claim in time: its change and the verdict on it. Lower is better."""

    name: str
    percent: float | None
    verdict: Word | None


class Measured(Struct, frozen=True, kw_only=True):
    """What was measured for a claim.

    ``verdict`` is null where the data support none. ``interval_percent`` is of the change, as the verdict has it.
    ``counts``: exact mode; before and after are counts, which stand for a claim in time only by their direction, each
    with its verdict in ``columns``.
    """

    before: float | None
    after: float | None
    unit: str
    better: Better = "lower"
    verdict: Word | None = None
    interval_percent: tuple[float, float] | None = None
    counts: bool = False
    columns: tuple[Column, ...] = ()
    state: State = "ok"
    why: str | Warn = ""


def blank(why: str, row: CellResult | None = None) -> Measured:
    """No figure, because of ``why``."""
    state = "failed" if row is None else row.state
    return Measured(before=None, after=None, unit="" if row is None else row.unit, state=state, why=why)


class Answer(Struct, frozen=True, kw_only=True):
    """The judgement of one claim, in a word and a sentence."""

    claim: Claim
    call: Call
    why: str | Warn
    measured: Measured | None = None


def measured_percent(measured: Measured) -> float | None:
    """The measured change in percent; None from zero or without figures."""
    if measured.before is None or measured.after is None or not measured.before:
        return None
    return 100.0 * (measured.after / measured.before - 1.0)


def _cost(before: float, after: float, better: Better) -> float:
    """Natural logarithm of how much dearer ``after`` is: positive is slower, whatever the unit."""
    ratio = math.log(after / before)
    return ratio if better == "lower" else -ratio


def judge(claim: Claim, recipe: Recipe, measured: Measured) -> Answer:
    """Hold a measurement against its claim; one whose figures do not differ is taken as ``same``."""
    call, why = _judged(replace(claim, same=True) if unchanged(claim) else claim, recipe, measured)
    return Answer(claim=claim, call=call, why=why, measured=measured)


def _judged(claim: Claim, recipe: Recipe, measured: Measured) -> tuple[Call, str | Warn]:
    before, after = measured.before, measured.after
    if measured.state != "ok" or before is None or after is None:
        return "not measurable here", measured.why or f"the guests were {measured.state}"
    if claim.selftests:
        return ("not reproduced", measured.why) if after > before else ("reproduced", "no test is worse")
    if measured.counts and in_time(claim):
        return _by_counts(claim, measured)
    if measured.verdict is None or measured.verdict == "inconclusive":
        return "not measurable here", measured.why or measured.verdict or "too few boots for a verdict"
    if claim.same:
        return _judge_same(claim, measured, before, after)
    if claim.before == 0 and claim.percent is None:
        return _judge_added(claim, recipe.factor(claim), measured, before, after)
    if claim.after == 0:
        return _judge_gone(measured, before, after)
    return _judge_ratio(claim, recipe.factor(claim), measured, before, after)


def _carrying(claim: Claim, measured: Measured) -> list[Column]:
    """The counts that move as the claim says; those that stay, for a claim that nothing changes."""
    if claim.same:
        return [column for column in measured.columns if column.verdict == "same"]
    wanted = "regressed" if _claimed(claim) > 0 else "improved"
    return [column for column in measured.columns if column.verdict == wanted]


def _by_counts(claim: Claim, measured: Measured) -> tuple[Call, str]:
    """A claim in time beside counts: the same direction, with what carries it, or nothing at all."""
    shown = ", ".join(_column(column, claim) for column in measured.columns) or "no count has a verdict"
    carrying = _carrying(claim, measured)
    if not carrying:
        other = ", ".join(column.name for column in measured.columns if column.verdict in _MOVED and not claim.same)
        how = f"counts go the other way: {other}" if other else "counts do not show it"
        return "not measurable here", f"the claim is in time, and {how} ({shown}): add --timed"
    names = ", ".join(column.name for column in carrying)
    if claim.same and (changing := _changing(claim, measured)):
        return (
            "not measurable here",
            f"the claim is that time does not change, and counts do by more than {claim.same_percent:g} %: "
            f"{', '.join(changing)} ({shown}): add --timed",
        )
    if against := _outweighing(carrying, measured):
        return (
            "not measurable here",
            f"the claim is in time, and counts disagree: {names} as claimed, and {against.name} by as much or more "
            f"the other way ({shown}): add --timed",
        )
    return "same direction", f"carried by {names} ({shown}); time itself was not measured: add --timed"


def _changing(claim: Claim, measured: Measured) -> list[str]:
    """The counts that are judged to change by more than what a claim calls no difference."""
    moved = [one for one in measured.columns if one.verdict in _MOVED]
    return [one.name for one in moved if one.percent is None or abs(one.percent) > claim.same_percent]


def _outweighing(carrying: Sequence[Column], measured: Measured) -> Column | None:
    """The count that moves most the other way, where that is as much as any of those that carry a claim."""
    word = "improved" if carrying[0].verdict == "regressed" else "regressed"
    against = [column for column in measured.columns if column.verdict == word and carrying[0].verdict != "same"]
    most = max(against, key=_moved, default=None)
    return most if most is not None and _moved(most) >= max(map(_moved, carrying)) else None


def _moved(column: Column) -> float:
    """The size of a count's change, as a logarithm; what has no percentage came from zero, and outweighs all."""
    if column.percent is None or column.percent <= -100.0:
        return math.inf
    return abs(math.log1p(column.percent / 100.0))


def _column(column: Column, claim: Claim) -> str:
    change = "no percentage" if column.percent is None else f"{column.percent:+.2f} %"
    word = "" if column.verdict in _MOVED else f", {column.verdict or 'no verdict'}"
    times = ""
    if not word and not claim.same and column.percent is not None and column.percent > -100.0:
        times = f", {math.log1p(column.percent / 100.0) / _claimed(claim):.2g} times the published size"
    return f"{column.name} {change}{word}{times}"


def _claimed(claim: Claim) -> float:
    """The published change as a cost, a natural logarithm; one from zero or to zero has no size, and is 1."""
    percent = published_percent(claim)
    if percent is None or percent <= -100.0:
        return 1.0 if (percent is None) == (claim.better == "lower") else -1.0
    return _cost(1.0, 1.0 + percent / 100.0, claim.better)


def _judge_same(claim: Claim, measured: Measured, before: float, after: float) -> tuple[Call, str]:
    if measured.verdict == "same" or before == after:
        return "reproduced", "no difference, as published"
    change = math.inf if not before else abs(100.0 * (after / before - 1.0))
    if change <= claim.same_percent:
        return "reproduced", f"{change:.2g} % is within the {claim.same_percent:g} % that count as no difference"
    return "not reproduced", f"published as no difference; measured is more than {claim.same_percent:g} %"


def _judge_added(claim: Claim, factor: float, measured: Measured, before: float, after: float) -> tuple[Call, str]:
    """From nothing: the amounts that are added are compared, not their ratio."""
    change = after - before
    if claim.after == 0:
        return ("reproduced", "zero, as published") if after == 0 else ("not reproduced", "published as zero")
    if measured.verdict == "same":  # what the figures differ by is noise, and has no direction
        return "not reproduced", _NO_DIFFERENCE
    if claim.after is None:
        if change > 0 and before <= _TINY:
            return "reproduced", "not there before, there after, as published"
        return ("opposite" if change < 0 else "not reproduced"), "published as not there before and there after"
    if change <= 0:
        return ("opposite" if change < 0 else "not reproduced"), "nothing is added"
    return _by_size(change / claim.after, factor)


def _judge_gone(measured: Measured, before: float, after: float) -> tuple[Call, str]:
    if before <= _TINY:
        return "not measurable here", "it is not there before either"
    if measured.verdict == "same":
        return "not reproduced", f"published as gone; {_NO_DIFFERENCE}"
    if after > before:
        return "opposite", "published as gone; it grows"
    if after <= _GONE * before:
        return "reproduced", "gone, as published"
    return "not reproduced", f"published as gone; {100 * after / before:.0f} % of it are left"


def _judge_ratio(claim: Claim, factor: float, measured: Measured, before: float, after: float) -> tuple[Call, str]:
    if before <= 0 or after <= 0:
        return "not measurable here", "a figure of zero has no ratio"
    claimed, found = _claimed(claim), _cost(before, after, measured.better)
    if measured.verdict == "same" or abs(found) <= _TINY:
        return _no_difference(claim, measured)
    if (found > 0) != (claimed > 0):
        return "opposite", f"published as {_word(claim, claimed)}, measured as {_word(claim, found)}"
    return _by_size(found / claimed, factor, _compatible(claim, measured))


def _no_difference(claim: Claim, measured: Measured) -> tuple[Call, str]:
    """``same`` refutes what its interval leaves out; a smaller claim it could not have seen."""
    percent, interval = published_percent(claim), measured.interval_percent
    if percent is None or interval is None or not _same_scale(claim, measured):
        return "not reproduced", _NO_DIFFERENCE
    if interval[0] <= percent <= interval[1]:
        return "not measurable here", f"{percent:+.2g} % lies within the measured confidence interval"
    return "not reproduced", _NO_DIFFERENCE


def _same_scale(claim: Claim, measured: Measured) -> bool:
    return claim.better == measured.better


def _compatible(claim: Claim, measured: Measured) -> bool:
    """Whether the published interval and the measured one have a value in common; True where either is missing."""
    published, found = claim.interval_percent, measured.interval_percent
    if published is None or found is None or not _same_scale(claim, measured):
        return True
    return published[0] <= found[1] and found[0] <= published[1]


def _by_size(times: float, factor: float, compatible: bool = True) -> tuple[Call, str]:
    text = f"same sign, {times:.2g} times the published size"
    if not 1.0 / factor <= times <= factor:
        return "same direction", f"{text}, which is beyond a factor of {factor:g}"
    if not compatible:
        return "same direction", f"{text}, but the intervals do not overlap"
    return "reproduced", f"{text} (allowed: a factor of {factor:g})"


def _word(claim: Claim, cost: float) -> str:
    """What a cost is called; a count is no time."""
    if in_time(claim):
        return "slower" if cost > 0 else "faster"
    return "more" if (cost > 0) == (claim.better == "lower") else "less"


def summary(answers: tuple[Answer, ...]) -> str:
    """One line: how many claims, and how many of each answer."""
    counts = [(sum(answer.call == call for answer in answers), call) for call in CALLS]
    return f"{counted(len(answers), 'claim')}: " + ", ".join(f"{count} {call}" for count, call in counts if count)
