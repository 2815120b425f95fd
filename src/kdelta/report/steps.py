# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps of followed sweeps as they are announced and listed, and what a reader said of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from kdelta.model.diary import Step
from kdelta.report.figures import change, interval
from kdelta.report.scrub import clean
from kdelta.report.text import WIDTH, wrap
from kdelta.report.view import MARKS
from kdelta.units import finite

NAME_CHARS = 10  # of a step's key, as it is shown and typed


def figure(step: Step) -> str:
    """The change with its interval; of one from 0 what it is now."""
    told = change(finite(step.effect_percent), 0.0, step.patched, called=True)
    return f"{told} {interval(step.interval_percent, True)}".strip()


def _lines(step: Step, width: int = WIDTH) -> list[str]:
    mark = MARKS.get(step.verdict, "")  # type: ignore[call-overload]
    head = f"{step.key[:NAME_CHARS]}  {clean(step.case)}: {clean(step.metric)} {figure(step)} {mark}".rstrip()
    lines = wrap(head, width, then="    ")
    lines += wrap(f"between {clean(step.last)} and {clean(step.first)}", width, first="    ")
    if step.because:
        lines += wrap(f"because {clean(step.because)}", width, first="    ", then="      ")
    if step.explained:
        lines += wrap(
            f"explained by the compiler: {clean(step.compiler)}; {clean(step.explained)}", width, first="    "
        )
    elif step.compiler:
        lines += wrap(f"the compiler changed too, and may explain it: {clean(step.compiler)}", width, first="    ")
    return lines


def announced(new: Sequence[Step], explained: Sequence[Step], known: int) -> str:
    """What a night found: new steps, and known ones whose cause is known only now. ``known`` counts all."""
    if not new and not explained:
        return f"No new step; {known} known (kdelta triage lists them).\n"
    parts = []
    for steps, said in ((new, "new step"), (explained, "known step explained now")):
        if steps:
            head = said.replace("step", "steps", 1) if len(steps) > 1 else said
            parts += [f"{len(steps)} {head}", "\n".join("\n".join(_lines(step)) for step in steps)]
    first = [*explained, *new][0]
    state = "explained" if first.explained else "acknowledged|explained|fixed"
    return "\n\n".join([*parts, f"kdelta triage {first.key[:NAME_CHARS]} {state} [--note TEXT]"]) + "\n"


def listed(steps: Sequence[Step], width: int = WIDTH) -> str:
    """All steps with what was said of them, open ones first."""
    if not steps:
        return "\n".join(wrap("No step was announced yet: kdelta sweep --follow announces them.", width)) + "\n"
    lines = []
    for step in sorted(steps, key=lambda one: one.state != "open"):
        lines += _lines(step, width)
        said = f"{step.state}{f', {step.judged_at[:10]}' if step.judged_at else ''}"
        note = f": {clean(' '.join(step.note.split()))}" if step.note else ""
        lines += [*wrap(f"{said}{note}", width, first="    "), ""]
    return "\n".join(lines)


def to_json(steps: Sequence[Step]) -> str:
    """The steps, schema kdelta-steps/1; one from 0 has no ``effect_percent``."""
    found = [msgspec.to_builtins(step) | {"effect_percent": finite(step.effect_percent)} for step in steps]
    document = {"schema": "kdelta-steps/1", "steps": found}
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
