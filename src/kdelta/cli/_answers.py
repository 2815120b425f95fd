# SPDX-License-Identifier: GPL-2.0-or-later
"""The answers of ``kdelta check`` as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdelta.units import counted

if TYPE_CHECKING:
    from kdelta.model import Experiment
    from kdelta.results.claims import Answer, Measured
    from kdelta.spec.recipes import Recipe

WIDTH = 100


def _rounded(percent: float | None) -> float | None:
    return None if percent is None else round(percent, 4)


def _why(answer: Answer) -> str:
    from kdelta.report.sentences import sentence

    return answer.why if isinstance(answer.why, str) else sentence(answer.why)


def _side(measured: Measured | None) -> dict[str, object] | None:
    from kdelta.results import claims

    if measured is None or measured.before is None or measured.after is None:
        return None
    percent = claims.measured_percent(measured)
    return {
        "before": measured.before,
        "after": measured.after,
        "percent": _rounded(percent),
        "unit": measured.unit,
        "interval_percent": measured.interval_percent,
        "verdict": measured.verdict,
        "columns": [
            {"name": column.name, "percent": _rounded(column.percent), "verdict": column.verdict}
            for column in measured.columns
        ],
    }


def _claim(recipe: Recipe, answer: Answer) -> dict[str, object]:
    from kdelta.spec import recipes

    claim = answer.claim
    return {
        "claim": claim.text,
        "case": claim.case or None,
        "function": claim.function or None,
        "answer": answer.call,
        "why": _why(answer),
        "factor": recipe.factor(claim),
        "published": {
            "before": claim.before,
            "after": claim.after,
            "percent": _rounded(recipes.published_percent(claim)),
            "unit": claim.unit,
        },
        "measured": _side(answer.measured),
    }


def json(recipe: Recipe, answers: Sequence[Answer], experiment: Experiment | None) -> str:
    """Schema kdelta-check/1."""
    import msgspec

    from kdelta.results import claims

    document = {
        "schema": "kdelta-check/1",
        "recipe": recipe.name,
        "title": recipe.title,
        "source": recipe.source,
        "measured_on": recipe.measured_on,
        "experiment": experiment.id if experiment else None,
        "mode": experiment.mode if experiment else None,
        "kernels": [{"label": k.label, "spec": k.spec, "release": k.release} for k in experiment.kernels]
        if experiment
        else [],
        "claims": [_claim(recipe, answer) for answer in answers],
        "summary": {call: sum(answer.call == call for answer in answers) for call in claims.CALLS},
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def text(recipe: Recipe, answers: Sequence[Answer], experiment: Experiment | None, own_kernels: bool = False) -> str:
    """For people: each claim with its answer, the published figures above those measured here.

    ``own_kernels``: the user named other kernels, of which the recipe's reasons do not speak.
    """
    from kdelta.report.text import wrap
    from kdelta.results import claims

    lines = [f"{recipe.name}: {recipe.title}", f"source: {recipe.source}", f"measured on: {recipe.measured_on}"]
    if experiment is not None:
        names = " -> ".join(kernel.label for kernel in experiment.kernels)
        lines.append(f"here: {names}; {experiment.mode}; experiment {experiment.id}")
        if experiment.mode == "exact" and recipe.exact:
            lines += wrap(f"exact mode says {recipe.exact}.", WIDTH)
    if recipe.kernels.why and not own_kernels:
        lines += wrap(recipe.kernels.why, WIDTH)
    for answer in answers:
        lines += ["", f"{answer.call.upper()}: {answer.claim.text}", *_pair(answer)]
        lines += [f"  {line}" for line in wrap(_why(answer), WIDTH - 2)]
    return "\n".join([*lines, "", claims.summary(tuple(answers)), ""])


def _pair(answer: Answer) -> list[str]:
    """The published figures and, below them, the measured ones."""
    from kdelta.results import claims
    from kdelta.spec import recipes
    from kdelta.units import percent

    claim, measured = answer.claim, answer.measured
    lines = []
    share = recipes.published_percent(claim)
    if claim.before is not None and claim.after is not None:
        lines.append(_line("published", claim.before, claim.after, claim.unit, share))
    elif share is not None:
        lines.append(f"  published  {percent(share, 1)} {claim.unit}".rstrip())
    if measured is not None and measured.before is not None and measured.after is not None:
        change = claims.measured_percent(measured)
        lines.append(_line("here", measured.before, measured.after, measured.unit, change))
    return lines


def _line(what: str, before: float, after: float, unit: str, change: float | None) -> str:
    from kdelta.units import percent

    shown = f" ({percent(change, 1)})" if change is not None and not unit.startswith("%") else ""
    return f"  {what:11}{_figure(before)} -> {_figure(after)} {unit}{shown}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def listing(recipes: Sequence[Recipe], as_json: bool, width: int | None) -> str:
    """The recipes, one a line or as JSON; ``width``: of a terminal, which breaks no line then."""
    import msgspec

    from kdelta.report.text import wrap

    if as_json:
        rows = [{"name": r.name, "title": r.title, "claims": len(r.claims), "patch": r.kernels.patch} for r in recipes]
        return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n"
    lines = []
    for recipe in recipes:
        count = counted(len(recipe.claims), "claim")
        told = f"{recipe.title} ({count}{', needs a patch' if recipe.kernels.patch else ''})"
        lines += [f"{recipe.name:15}{told}"] if width is None else wrap(told, width, first=f"{recipe.name:15}")
    return "\n".join(lines) + "\n"
