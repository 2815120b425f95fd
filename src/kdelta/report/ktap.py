# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as KTAP version 1 (Documentation/dev-tools/ktap.rst): one test per cell or version of a sweep, figures
in ``#`` lines.

What passes and what is skipped stands in outcomes.py; regressed, lost, panicked, hung and failed are not ok.
"""

from __future__ import annotations

from kdelta.report.outcomes import Outcome, outcomes
from kdelta.report.registry import Format
from kdelta.report.standing import NOT_LOOKED_AT, not_looked_at
from kdelta.report.view import View


def _plain(text: str) -> str:
    """Text that holds no directive: ``#`` starts one."""
    return " ".join(text.replace("#", "_").replace("\\", "/").split())


def _test(number: int, title: str, outcome: Outcome) -> list[str]:
    """The figures of one test, then its result."""
    name = _plain(f"{title}: {outcome.name}")
    lines = [f"# {name}: {_plain(f'{outcome.figures}, {outcome.word}')}"]
    lines += [f"# {_plain(text)}" for text in (*outcome.aside, outcome.message) if text]
    lines += [f"# see note {note}" for note in outcome.notes]
    if outcome.result == "skipped":
        return [*lines, f"ok {number} {name} # SKIP {_plain(outcome.reason)}"]
    return [*lines, f"{'ok' if outcome.result == 'pass' else 'not ok'} {number} {name}"]


def render(view: View) -> str:
    """One flat list of tests; a closed gate is a failed test of its own, first, what no case executes a skipped one,
    last.
    """
    body: list[str] = []
    number = 0
    if view.gate:
        number += 1
        body += [f"# {_plain(view.gate)}", f"not ok {number} gate"]
    for case in outcomes(view):
        for outcome in case.outcomes:
            number += 1
            body += _test(number, case.title, outcome)
    if missed := not_looked_at(view):
        number += 1
        body += [*(f"# {_plain(text)}" for text in missed), f"ok {number} {NOT_LOOKED_AT} # SKIP {_plain(missed[0])}"]
    notes = [f"# note {index}: {_plain(text)}" for index, text in enumerate(view.footnotes, 1)]
    plan = f"1..{number}" if number else "1..0 # SKIP nothing was measured"
    head = ["KTAP version 1", plan, f"# {_plain(view.title)}", f"# {_plain(view.summary)}"]
    return "\n".join([*head, *body, *notes]) + "\n"


FORMAT = Format(name="ktap", suffix=".ktap", render=render, help="KTAP version 1 for test systems")
