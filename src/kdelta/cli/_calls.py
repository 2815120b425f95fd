# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls that are followed once a comparison was counted (``compare --why stacks``, ``why --stacks``)."""

from __future__ import annotations

import itertools
import shlex
from typing import TYPE_CHECKING

from kdelta.errors import KdeltaError, UserError
from kdelta.model import plans

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.model import Experiment, ExperimentResult, Progress
    from kdelta.results.types import Detail
    from kdelta.store.store import Store

STACKS = "stacks"
_WHY = "--why"


def split(why: str | None) -> tuple[bool, str]:
    """``locks,stacks`` -> whether calls are to be followed, and what is to be traced."""
    names = [name.strip() for name in (why or "").split(",")]
    return STACKS in names, ",".join(name for name in names if name != STACKS)


def asked(command: str) -> str | None:
    """``--why`` of a command line as an experiment has it; None without one."""
    try:
        words = shlex.split(command)
    except ValueError:  # an imported one
        return None
    given = [*itertools.takewhile(lambda word: word != "--", words), ""]
    for word, after in itertools.pairwise(given):
        if word == _WHY or word.startswith(f"{_WHY}="):
            return after if word == _WHY else word.removeprefix(f"{_WHY}=")
    return None


def refuse(experiment: Experiment) -> None:
    """Raises:
    UserError: in such an experiment no calls are followed.
    """
    from kdelta.experiment import followed

    if experiment.mode != "exact":
        raise UserError("--why stacks follows the calls of what is counted: leave out --timed, or add --exact")
    if isinstance(experiment.plan, plans.Sweep):
        raise UserError("--why stacks compares with the first kernel, and --each with the patch before: give one")
    followed.refuse(experiment)


def follow(store: Store, experiment: Experiment, progress: Progress) -> None:
    """Follow the calls of all that differs in a finished comparison; where that fails it is a note, and figures stay."""
    from kdelta.cli import _passes
    from kdelta.results import answer

    counts = _passes.counts_of(store, experiment) or experiment
    try:
        followed_in(store, counts, answer.result(store, counts.id)[0], progress)
    except KdeltaError as error:
        progress.note(f"calls were not followed: {error}")


def go_on(session: Session, experiment: Experiment, progress: Progress) -> bool:
    """What ``--why`` asked for beside a comparison that was interrupted before it; whether calls were followed."""
    from kdelta.cli import _reports, _tracing

    calls, traces = split(asked(experiment.command))
    if traces and not _reports.beside(session.store, experiment):
        _tracing.beside(session, experiment, traces, progress)
    if calls:
        follow(session.store, experiment, progress)
    return calls


def followed_in(
    store: Store, experiment: Experiment, result: ExperimentResult, progress: Progress
) -> tuple[ExperimentResult, Detail]:
    """The result with the call stacks of every case that differs.

    Raises:
        UserError, GuestError, HostError: as ``followed.follow``.
    """
    from kdelta.experiment import followed
    from kdelta.results import answer

    followed.follow(store, experiment, followed.differing(store, experiment, result.results), progress)
    return answer.result(store, experiment.id)
