# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole bisection: the search in a laboratory, and the comparison of what it found with its parent."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.experiment import commits, imported, search, templates
from kdelta.experiment.laboratory import Hands, Laboratory
from kdelta.experiment.search import Found, Same
from kdelta.kernel.history import Commit
from kdelta.model import Experiment, Mode, Progress
from kdelta.results import answer
from kdelta.store.store import Store


class Answer(Struct, frozen=True, kw_only=True):
    """A finished bisection. ``suspects`` is one commit unless others that cannot be tested hide it; the last is bad."""

    experiment: str
    case: str
    metric: str
    unit: str
    good_value: float
    bad_value: float
    commits: int  # of the line, without the good end
    suspects: tuple[Commit, ...] = ()
    parent: str = ""  # whole hash of the last good commit before them
    probability: float = 1.0
    tested: tuple[tuple[str, float], ...] = ()  # (whole hash, figure) in the order of the line
    skipped: tuple[tuple[str, str], ...] = ()  # (whole hash, why)
    boots: int = 0
    confirmation: str = ""
    refuted: tuple[str, ...] = ()  # whole hashes found on the way, which do not differ from their parents
    same_why: str = ""  # the ends do not differ: nothing was searched
    same_open: bool = False  # whether they may differ all the same: too few boots to tell
    mode: Mode = "exact"


def _confirm(lab: Laboratory, found: Found, now: Callable[[], datetime], blocks: int, looks: tuple[int, ...]) -> str:
    """Compare the culprit with its parent in an experiment of its own; returns its id. Goes on where it was killed."""
    experiment = lab.experiment
    name = experiment.annotations.search.confirmation
    if not name:
        name = templates.new_id(now(), lab.store.taken)
        lab.note(confirmation=name)
    if not lab.store.taken(name):
        commit_of = lab.commit_of(experiment)
        parent, culprit = (experiment.kernels[commit_of.index(commit)] for commit in (found.good, found.last))
        made = templates.created(
            templates.confirming(experiment, (parent, culprit), blocks, looks), experiment.seed, now
        )
        lab.store.create(replace(made, id=name))
    lab.run(lab.store.experiment(name))
    return name


def laboratory(store: Store, experiment: Experiment, progress: Progress, hands: Hands | None = None) -> Laboratory:
    """Where the stored bisection ``experiment`` goes on, by the ``hands`` of others or this machine's.

    Raises:
        UserError: it is not a bisection, or it was imported.
    """
    imported.refuse(experiment)  # before its tree is asked for commits
    return Laboratory(store, experiment.id, progress, hands)


def bisect(
    lab: Laboratory,
    now: Callable[[], datetime],
    blocks: int = templates.USUAL_LOOKS[-1],
    looks: tuple[int, ...] = templates.USUAL_LOOKS,
) -> Answer:
    """Search, then confirm what was found against its parent; the search goes on without a commit that this refutes.

    Raises:
        UserError: an end cannot be measured, so nothing can be said.
        HostError: QEMU, the disk or the compiler failed; everything measured stays.
    """
    while True:
        try:
            step = search.search(lab, lambda readings, skipped: lab.decide(readings, dict(skipped)))
        except search.Untestable as error:
            end = "GOOD" if error.commit == 0 else "BAD"
            raise UserError(f"{end} ({lab.line[error.commit][:12]}) cannot be measured: {error.why}") from None
        if isinstance(step, Same):
            lab.note(done=True)
            return replace(_answer(lab), same_why=step.why, same_open=step.open)
        confirmation = _confirm(lab, step, now, blocks, looks)
        spent = len(lab.readings()) >= lab.plan.max_boots
        only = len(lab.line) - 1 - len(lab.skipped()) - len(lab.refuted) <= 1  # nobody else is left: not confirmed
        if spent or only or not _refutes(lab, confirmation):
            break
        lab.refute(step.last)
    lab.note(done=True)
    return replace(
        _answer(lab),
        suspects=tuple(commits.described(lab.plan, lab.line[i]) for i in range(step.first, step.last + 1)),
        parent=lab.line[step.good],
        probability=step.probability,
        confirmation=confirmation,
    )


def _refutes(lab: Laboratory, confirmation: str) -> bool:
    """Whether a timed comparison excludes that the commit makes half of the difference between the ends.

    An interval that holds both this half and nothing decides nothing: the commit then stays, unconfirmed.
    """
    if lab.experiment.mode == "exact":
        return False
    results = answer.result(lab.store, confirmation)[0].results
    interval = next((row.interval_percent for row in results if row.metric == lab.metric.name), None)
    if interval is None or interval[0] <= -100.0:
        return False
    ends = _answer(lab)
    if min(ends.good_value, ends.bad_value) <= 0.0:  # no half of a ratio
        return False
    half = math.log(ends.bad_value / ends.good_value) / 2.0
    low, high = (math.log1p(bound / 100.0) for bound in interval)
    return high < half if half > 0 else low > half


def _answer(lab: Laboratory) -> Answer:
    """What was measured, without a commit named yet."""
    experiment, readings, skipped = lab.experiment, lab.readings(), lab.skipped()
    figures: dict[int, list[float]] = {}
    for reading in readings:
        figures.setdefault(reading.commit, []).append(reading.value)
    middle = {commit: sorted(values)[len(values) // 2] for commit, values in sorted(figures.items())}
    return Answer(
        experiment=lab.id,
        case=experiment.cases[0].name,
        metric=lab.metric.name,
        unit=lab.metric.unit,
        good_value=middle[0],
        bad_value=middle[len(lab.line) - 1],
        commits=len(lab.line) - 1,
        tested=tuple((lab.line[commit], value) for commit, value in middle.items()),
        skipped=tuple((lab.line[commit], why) for commit, why in sorted(skipped.items())),
        boots=len(lab.store.done(lab.id)),
        refuted=tuple(one.commit for one in lab.refuted),
        mode=experiment.mode,
    )
