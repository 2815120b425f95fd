# SPDX-License-Identifier: GPL-2.0-or-later
"""A measurement held against the claims of a recipe. Pure; docs/reference/recipes.md.

The rule: a claim is reproduced when what was measured has its sign and its order of size. The size of a change is the
logarithm of its ratio, so that +100 % and -50 % are one size; the factor allowed is the recipe's ``within``. Exact mode
counts instructions where most claims speak of time, so there the rule says nothing about time.
"""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from kdelta.model import State, Word
from kdelta.spec.recipes import Claim, Recipe, published_percent
from kdelta.units import Better

Call = Literal["reproduced", "not reproduced", "opposite", "not measurable here"]
CALLS: tuple[Call, ...] = ("reproduced", "not reproduced", "opposite", "not measurable here")
_GONE = 0.1  # of its share before: what is left of a function that a claim says vanishes
_TINY = 1e-9


class Measured(Struct, frozen=True, kw_only=True):
    """What was measured for a claim; ``verdict`` None where none is made (shares, cases of one kernel)."""

    before: float | None
    after: float | None
    unit: str
    better: Better = "lower"
    verdict: Word | None = None
    state: State = "ok"
    why: str = ""


class Answer(Struct, frozen=True, kw_only=True):
    """The judgement of one claim, in a word and a sentence."""

    claim: Claim
    call: Call
    why: str
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
    """Hold a measurement against its claim."""
    before, after = measured.before, measured.after
    if measured.state != "ok" or before is None or after is None:
        return Answer(
            claim=claim, call="not measurable here", why=measured.why or f"the guests were {measured.state}",
            measured=measured,
        )  # fmt: skip
    if measured.verdict == "inconclusive":
        return Answer(claim=claim, call="not measurable here", why=measured.why or "inconclusive", measured=measured)
    call: Call
    if claim.selftests:
        call, why = ("not reproduced", measured.why) if after > before else ("reproduced", "no test is worse")
    elif claim.same:
        call, why = _judge_same(claim, measured, before, after)
    elif claim.before == 0 and claim.percent is None:
        call, why = _judge_added(claim, recipe.factor(claim), before, after)
    elif claim.after == 0:
        call, why = _judge_gone(before, after)
    else:
        call, why = _judge_ratio(claim, recipe.factor(claim), measured, before, after)
    return Answer(claim=claim, call=call, why=why, measured=measured)


def _judge_same(claim: Claim, measured: Measured, before: float, after: float) -> tuple[Call, str]:
    if measured.verdict == "same" or before == after:
        return "reproduced", "no difference, as published"
    change = math.inf if not before else abs(100.0 * (after / before - 1.0))
    if change <= claim.same_percent:
        return "reproduced", f"{change:.2g} % is within the {claim.same_percent:g} % that count as no difference"
    return "not reproduced", f"published as no difference; measured is more than {claim.same_percent:g} %"


def _judge_added(claim: Claim, factor: float, before: float, after: float) -> tuple[Call, str]:
    """From nothing: the amounts that are added are compared, not their ratio."""
    change = after - before
    if claim.after is None:
        if change > 0 and before <= _TINY:
            return "reproduced", "not there before, there after, as published"
        return ("opposite" if change < 0 else "not reproduced"), "published as not there before and there after"
    if claim.after == 0:
        return ("reproduced", "zero, as published") if after == 0 else ("not reproduced", "published as zero")
    if change <= 0:
        return ("opposite" if change < 0 else "not reproduced"), "nothing is added"
    return _by_size(change / claim.after, factor)


def _judge_gone(before: float, after: float) -> tuple[Call, str]:
    if before <= _TINY:
        return "not measurable here", "it is not there before either"
    if after > before:
        return "opposite", "published as gone; it grows"
    if after <= _GONE * before:
        return "reproduced", "gone, as published"
    return "not reproduced", f"published as gone; {100 * after / before:.0f} % of it are left"


def _judge_ratio(claim: Claim, factor: float, measured: Measured, before: float, after: float) -> tuple[Call, str]:
    percent = published_percent(claim)
    assert percent is not None
    claimed = _cost(1.0, 1.0 + percent / 100.0, claim.better)
    if before <= 0 or after <= 0:
        return "not measurable here", "a figure of zero has no ratio"
    found = _cost(before, after, measured.better)
    if measured.verdict == "same" or abs(found) <= _TINY:
        return "not reproduced", "no difference beyond the noise floor"
    if (found > 0) != (claimed > 0):
        return "opposite", f"published as {_word(claimed)}, measured as {_word(found)}"
    return _by_size(found / claimed, factor)


def _by_size(times: float, factor: float) -> tuple[Call, str]:
    text = f"same sign, {times:.2g} times the published size"
    if 1.0 / factor <= times <= factor:
        return "reproduced", f"{text} (allowed: a factor of {factor:g})"
    return "not reproduced", f"{text}, which is beyond a factor of {factor:g}"


def _word(cost: float) -> str:
    return "slower" if cost > 0 else "faster"


def summary(answers: tuple[Answer, ...]) -> str:
    """One line: how many claims, and how many of each answer."""
    counts = [(sum(answer.call == call for answer in answers), call) for call in CALLS]
    return f"{len(answers)} claims: " + ", ".join(f"{count} {call}" for count, call in counts if count)
