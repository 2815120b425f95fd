# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole report in one word and one line, for those who read a list of checks: fail, warning or success.

``fail``: a case regressed or leaks anew, panicked, hung or failed where the baseline did not, a patch has its kernel
warn on its console, or the gate is closed. ``warning``: something was not found out, nothing has a verdict, a kernel
without a patch warns, or a changed function is executed by no case. A success says that all that was asked for was
measured, and nothing is worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from kdelta.report.looked import not_spoken_of
from kdelta.report.outcomes import Outcome, outcomes
from kdelta.report.scrub import clip
from kdelta.report.view import View
from kdelta.units import counted

Word = Literal["success", "warning", "fail"]
Rule = Literal["regression", "gate", "leak", "console", "undecided", "not-looked-at"]
LINE_CHARS = 200
NOT_LOOKED_AT = "not looked at"  # the title of that
_MISSED = "NOT LOOKED AT, "  # as report/looked.py begins such a line; here the title says it


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that a reader should see; ``title`` is the test's name, ``text`` the figures and the reason."""

    word: Word
    rule: Rule
    title: str
    text: str
    functions: tuple[str, ...] = ()  # behind it, the largest first


class Standing(Struct, frozen=True, kw_only=True):
    """``line`` has at most ``LINE_CHARS`` characters; ``findings`` come with the gravest first."""

    word: Word
    line: str
    findings: tuple[Finding, ...]


def _finding(title: str, outcome: Outcome) -> Finding:
    bad = outcome.result == "failure" or (outcome.broke and outcome.result == "error")
    word: Word = "fail" if bad else "warning" if outcome.result != "pass" else "success"
    text = outcome.message or outcome.word
    text = text if outcome.effect in text else f"{outcome.effect}, {text}"
    rule: Rule = "regression" if word == "fail" else "undecided"
    return Finding(word=word, rule=rule, title=f"{title}: {outcome.name}", text=text, functions=outcome.functions)


def _skipped_by_nature(outcome: Outcome) -> bool:
    """A kernel without what the case needs is no doubt about the change."""
    return outcome.word in ("unsupported", "left out") and outcome.result != "error"


def _nothing(tests: Sequence[Outcome], view: View) -> str:
    """Why nothing at all has a verdict, "" where something has one; what only explains never speaks for a case."""
    cases = [one for one in tests if not one.explains]
    if not cases:
        notes = view.result.experiment.annotations
        told = view.gate or notes.looked is not None or notes.beside
        return "" if told else "nothing was measured"
    if all(_skipped_by_nature(one) or one.word == "descriptive" for one in cases):
        return f"nothing was compared: {cases[0].reason}"
    return ""


def not_looked_at(view: View) -> list[str]:
    """What of a change no case spoke of, a sentence each."""
    return [text.removeprefix(_MISSED) for text in view.looked if text.startswith(_MISSED)]


def standing(view: View) -> Standing:
    """The report's word, its line, and what stands behind them."""
    tests = [(case.title, one) for case in outcomes(view) for one in case.outcomes]
    found = [Finding(word="fail", rule="gate", title="gate", text=view.gate)] if view.gate else []
    if why := _nothing([one for _, one in tests], view):
        found.append(Finding(word="warning", rule="undecided", title="no verdict", text=why))
    else:
        found += [_finding(title, one) for title, one in tests if one.result != "pass" and not _skipped_by_nature(one)]
    looked = view.result.experiment.annotations.looked
    unseen = not_spoken_of(looked)
    if said := view.headline.complained:
        found.append(Finding(word="fail" if looked else "warning", rule="console", title="console", text=said))
    beside = view.result.experiment.annotations.beside
    leaks = [leak for one in beside for leak in one.leaks]
    found += [Finding(word="fail", rule="leak", title="leak", text=text) for text in leaks]
    found += [
        Finding(word="warning", rule="undecided", title=one.what, text=f"could not be checked: {one.why}")
        for one in beside
        if one.why
    ]
    found += [
        Finding(
            word="warning", rule="undecided", title=one.what, text=f"could not be checked: {', '.join(one.unchecked)}"
        )
        for one in beside
        if one.unchecked
    ]
    found += [
        Finding(word="warning", rule="not-looked-at", title=NOT_LOOKED_AT, text=text) for text in not_looked_at(view)
    ]
    order: tuple[Word, ...] = ("fail", "warning", "success")
    found.sort(key=lambda one: order.index(one.word))
    counts = view.summary + (f"; {counted(len(leaks), 'new leak')}" if leaks else "")
    if unseen:
        counts += f"; {counted(unseen, 'changed function')} not looked at"
    return Standing(word=found[0].word if found else "success", line=clip(counts, LINE_CHARS), findings=tuple(found))
