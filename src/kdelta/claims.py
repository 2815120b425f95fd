# SPDX-License-Identifier: GPL-2.0-or-later
"""Published claims as recipes, and the judgement of a measurement against them. Pure; docs/reference/recipes.md.

The rule: a claim is reproduced when what was measured has its sign and its order of size. The size of a change is the
logarithm of its ratio, so that +100 % and -50 % are one size; the factor allowed is the recipe's ``within``. Exact mode
counts instructions where most claims speak of time, so there the rule says nothing about time.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from kdelta.errors import UserError
from kdelta.model import Arch, Mode, State, Word
from kdelta.units import Better

Call = Literal["reproduced", "not reproduced", "opposite", "not measurable here"]
CALLS: tuple[Call, ...] = ("reproduced", "not reproduced", "opposite", "not measurable here")
Factor = Annotated[float, Meta(ge=1.0)]
_GONE = 0.1  # of its share before: what is left of a function that a claim says vanishes
_TINY = 1e-9


class Kernels(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The kernels of a recipe. With ``patch`` the patched one is ``tree`` with a patch that the user supplies."""

    baseline: str = ""  # with patch: "" is the tree without it
    patched: str = ""  # "" without patch: claims about one kernel
    patch: str = ""  # what the user must supply: its subject, where it can be had
    tree: str = ""
    why: str = ""  # how these kernels stand for the published ones


class Claim(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published figure. ``before`` and ``after`` are in ``unit``; ``percent`` is as published where it differs.

    Compared are two kernels in ``case``; with ``from_case``, two cases on the kernel ``on``; with ``function``, the
    share of one function in all kernel instructions, in percent.
    """

    text: str
    case: str = ""
    from_case: str = ""
    on: Literal["both", "baseline", "patched"] = "both"
    function: str = ""
    selftests: str = ""  # suites that pass on both kernels alike
    metric: str = ""  # of timed mode; "" is the case's deciding one
    before: float | None = None
    after: float | None = None
    percent: float | None = None
    unit: str = ""
    better: Better = "lower"
    same: bool = False  # the claim is that nothing changes
    same_percent: float = 1.0  # how much that leaves
    within: Factor | None = None
    exact: bool = True  # instructions can stand in for the figure
    cores: int = 1  # processors without which the claim is about something else
    arch: Arch | None = None
    pressure: str = ""
    needs: str = ""  # what cannot be had here at all


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A publication with its claims."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    source: str
    measured_on: str
    about: str = ""
    exact: str = ""  # what exact mode can and cannot say of it
    within: Factor = 10.0
    kernels: Kernels
    claims: Annotated[tuple[Claim, ...], Meta(min_length=1)]

    def factor(self, claim: Claim) -> float:
        """By how much a measured size may differ from the claimed one."""
        return claim.within or self.within


class Setting(Struct, frozen=True, kw_only=True):
    """What this machine and this call offer."""

    mode: Mode
    cores: int
    accel: Literal["kvm", "tcg"]
    arch: Arch = "x86_64"
    baseline: bool = True  # there is a kernel for it
    patched: bool = True
    built: bool = False  # both are built from source


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


def parse(text: str, where: str) -> Recipe:
    """A recipe from its TOML text; ``[claim]`` holds what all ``[[claims]]`` have in common.

    Raises:
        UserError: naming the file and the key.
    """
    try:
        table = msgspec.toml.decode(text)
        shared = table.pop("claim", {})
        table["claims"] = [{**shared, **claim} for claim in table.get("claims", [])]
        recipe = msgspec.convert(table, Recipe)
    except (msgspec.DecodeError, TypeError, AttributeError) as error:
        raise UserError(f"recipe {where}: {error}; see docs/reference/recipes.md") from None
    for number, claim in enumerate(recipe.claims, 1):
        if complaint := _complaint(claim):
            raise UserError(f"recipe {where}: claim {number} ({claim.text!r}): {complaint}")
    if complaint := _kernels_complaint(recipe.kernels):
        raise UserError(f"recipe {where}: kernels: {complaint}")
    return recipe


def _kernels_complaint(kernels: Kernels) -> str:
    if kernels.patch and not kernels.tree:
        return "patch needs a tree that it is for, as in src:debian:6.12"
    if kernels.patch and kernels.patched:
        return "patch and patched exclude each other"
    return "" if kernels.patch or kernels.baseline else "baseline is missing"


def _complaint(claim: Claim) -> str:
    """What is wrong with a claim beyond its types, or ""."""
    if not claim.needs and bool(claim.case) == bool(claim.selftests):
        return "name a case, or selftests"
    if claim.from_case and claim.on == "both":
        return "from_case compares two cases of one kernel: say on = baseline or patched"
    if claim.on != "both" and not claim.from_case:
        return "on needs from_case: a claim about one kernel compares two cases"
    if claim.from_case and claim.function:
        return "from_case and function exclude each other"
    if claim.needs or claim.selftests or claim.same or claim.percent is not None:
        return ""
    if claim.before is None or (claim.after is None and claim.before != 0):
        return "give before and after, or percent"
    return ""


def published_percent(claim: Claim) -> float | None:
    """The claimed change in percent, of the figure as published; None where it has none (from zero)."""
    if claim.percent is not None:
        return claim.percent
    if not claim.before or claim.after is None:
        return None
    return 100.0 * (claim.after / claim.before - 1.0)


def measured_percent(measured: Measured) -> float | None:
    """The measured change in percent; None from zero or without figures."""
    if measured.before is None or measured.after is None or not measured.before:
        return None
    return 100.0 * (measured.after / measured.before - 1.0)


def obstacle(claim: Claim, recipe: Recipe, setting: Setting) -> str:
    """Why ``claim`` cannot be measured in ``setting``, with the remedy where there is one; "" if it can."""
    if claim.needs:
        return f"needs {claim.needs}"
    wanted = {"both": ("baseline", "patched"), "baseline": ("baseline",), "patched": ("patched",)}[claim.on]
    if any(not getattr(setting, side) for side in wanted):
        return f"needs a patch: give it with --patch FILE ({recipe.kernels.patch})"
    if claim.arch is not None and claim.arch != setting.arch:
        return f"needs {claim.arch} kernels: name them with --baseline and --patched"
    if claim.selftests:
        return "" if setting.built else "needs kernels built from source, whose selftests belong to them"
    if claim.cores > 1:
        return _contended(claim, setting)
    if claim.function and setting.mode == "timed":
        return "needs exact mode, which sees functions: leave out --timed"
    if setting.mode == "exact" and not claim.exact:
        return "needs times or memory figures, which exact mode does not take: add --timed"
    return ""


def _contended(claim: Claim, setting: Setting) -> str:
    """A claim about several processors is never answered by one."""
    if setting.cores < claim.cores:
        return f"needs {claim.cores} cores; this machine has {setting.cores}"
    if setting.accel != "kvm":
        return f"needs {claim.cores} cores under KVM: emulated processors do not contend as real ones do"
    return f"needs {claim.cores} cores at once: add --timed" if setting.mode == "exact" else ""


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
