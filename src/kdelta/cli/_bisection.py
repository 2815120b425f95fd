# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisection found, as text or JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from kdelta.cli._say import say
from kdelta.report.figures import count
from kdelta.units import counted

if TYPE_CHECKING:
    from kdelta.experiment.bisect import Answer
    from kdelta.model import CellResult
    from kdelta.store.store import Store


def show(store: Store, answer: Answer, as_json: bool) -> None:
    import json

    import msgspec

    from kdelta.report import behind
    from kdelta.report.json_ import cell_document
    from kdelta.results.answer import result

    confirmed = result(store, answer.confirmation)[0].results if answer.confirmation else ()
    row = next((r for r in confirmed if r.metric == answer.metric), None)
    if as_json:
        document = {"schema": "kdelta-bisect/1"} | msgspec.to_builtins(answer)
        document["confirmed"] = None if row is None else cell_document(row)
        say(json.dumps(document, indent=2))
        return
    change = f"{count(answer.good_value)} -> {count(answer.bad_value)} {answer.unit}"
    if answer.same_open:
        say(f"Whether GOOD and BAD differ in {answer.case}, {answer.metric} ({change}) is open: {answer.same_why}.")
        hint = "; counts are not noisy (--exact)" if answer.mode == "timed" else ""
        say(f"Nothing was searched{hint}; experiment {answer.experiment}.")
        return
    if answer.same_why:
        say(f"GOOD and BAD do not differ in {answer.case}, {answer.metric} ({change}): {answer.same_why}.")
        say(f"There is nothing to bisect; experiment {answer.experiment}.")
        return
    for commit in answer.suspects:
        say(f"{commit.hash} {commit.subject}\n    {commit.author}, {commit.date}")
    say(_verdict(answer))
    if row is not None:
        effect = "" if row.effect_percent is None else f"{row.effect_percent:+.2f} %, "
        say(f"{_sides(answer)}: {effect}{row.verdict or row.state}"
                   f" ({_figure(row.baseline)} -> {_figure(row.patched)} {row.unit}; GOOD to BAD: {change})")  # fmt: skip
        if told := behind.text(row.metric, row.because, row.because_line, row.effect_percent):
            say(f"  because {told}")
        if doubt := _doubt(answer, row):
            say(f"  NOT CONFIRMED: {doubt}")
        say(f"  {_further(answer)}")
    for name in answer.refuted:
        say(f"Refuted {name[:12]}: was found first, but does not differ from its parent")
    for name, why in answer.skipped:
        say(f"Skipped {name[:12]}: {why}")
    if len(answer.suspects) == 1 and len(answer.suspects[0].parents) > 1:
        merge = answer.suspects[0]
        say(f"It is a merge: to look into its branch, bisect from a commit that {merge.parents[1][:12]} descends from.")


def _doubt(answer: Answer, row: CellResult) -> str:
    """Why the comparison does not confirm what was found; "" where it does."""
    if row.state != "ok" or row.verdict in (None, "inconclusive"):
        return "whether these two differ is not decided"
    if row.verdict == "same":
        return "these two do not differ beyond the noise"
    rises = (row.effect_percent is None or row.effect_percent > 0) == (answer.bad_value > answer.good_value)
    return "" if rises else "these two differ the other way round than GOOD and BAD"


def _further(answer: Answer) -> str:
    """Where the rest is told: without its case, why says no more than the line of causes above it."""
    return f"kdelta report {answer.confirmation}; kdelta why {answer.confirmation} {shlex.quote(answer.case)}"


def _figure(value: float | None) -> str:
    return "not measured" if value is None else count(value)


def _verdict(answer: Answer) -> str:
    sure = "" if answer.probability == 1.0 else f", probability {100 * answer.probability:.0f} %"
    of = f"to tell {answer.commits} commits apart" if answer.commits > 1 else "for 1 commit"
    told = f"{counted(len(answer.tested), 'kernel')} tested {of}"  # GOOD is one of them, and none of the commits
    kernels = f"{told}, in {answer.boots} boots{sure}"
    if len(answer.suspects) == 1:
        return f"is the first commit with the change in {answer.case}, {answer.metric} ({kernels}; {answer.experiment})"
    hidden = [name[:12] for name, _ in answer.skipped if name in {commit.hash for commit in answer.suspects}]
    why = f"{', '.join(hidden)} cannot be measured" if hidden else "the boots are used up"
    return (
        f"One of these {len(answer.suspects)} commits changed {answer.case}, {answer.metric}; which one cannot be "
        f"decided, because {why} ({kernels}; {answer.experiment})"
    )


def _sides(answer: Answer) -> str:
    """What was compared: of several commits the last with what lies before them all, which is not its parent."""
    if len(answer.suspects) == 1:
        return f"Against its parent {answer.parent[:12]}"
    return f"{answer.suspects[-1].hash[:12]} against {answer.parent[:12]}, which lies before them"
