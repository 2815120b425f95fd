# SPDX-License-Identifier: GPL-2.0-or-later
"""What a review looks at beside speed: leaks where the diff touches lifetimes of objects, holds where it touches locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from kdelta.cli import common
from kdelta.errors import HostError, UserError
from kdelta.spec.program import PACK

if TYPE_CHECKING:
    from kdelta.cli._budget import Budget
    from kdelta.cli._session import Session
    from kdelta.experiment.templates import Asked
    from kdelta.kernel.touches import Touched
    from kdelta.model import Beside, Case, Experiment, Progress


class Checked(Struct, frozen=True, kw_only=True):
    """One check: its whole text, and what is kept of it with the review.

    ``begun`` is its experiment, also where that failed.
    """

    text: str
    kept: Beside
    begun: str = ""


class Shown(Struct, frozen=True):
    """What a check found: its text, a line for each new leak, and the cases of which it can say nothing."""

    text: str
    leaks: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


class Check(Struct, frozen=True):
    """A kind of check: the experiment that it is of a review, and what it found once that was made."""

    what: Literal["leaks", "locks"]
    kind: Literal["leaks", "trace"]
    said: str
    doing: str
    template: Callable[[Experiment, Asked], Experiment]
    shown: Callable[[Session, Experiment, Experiment], Shown]


_NO_TIME = "no time is left of the budget"
_CASES = 8  # those whose figures changed, then the most specific of those that the review chose
_NAMES = 6


def checks(session: Session, reviewed: Experiment, touched: Touched, budget: Budget) -> tuple[Checked, ...]:
    """What was checked and found, or why it could not be; it is kept with ``reviewed``, so that its reports tell it.

    One for which no time of the ``budget`` is left is stored all the same, to be resumed.
    """
    if not reviewed.cases or not (touched.lifetimes or touched.locks):
        return ()
    from kdelta.model import BESIDE_TAG

    with session.progress() as progress:
        found = tuple(_each(session, reviewed, touched, budget, progress))
    session.store.annotate(reviewed.id, lambda known: replace(known, beside=tuple(one.kept for one in found)))
    for one in found:
        if one.begun:
            session.store.tag(one.begun, f"{BESIDE_TAG}{reviewed.id}")
    return found


def _each(
    session: Session, reviewed: Experiment, touched: Touched, budget: Budget, progress: Progress
) -> Iterator[Checked]:
    from kdelta.experiment import templates
    from kdelta.model import Beside

    asked = templates.asked_in(reviewed)
    asked = replace(asked, cases=_first(session, reviewed), machine=replace(asked.machine, smp=1))
    for check in _CHECKS:
        names = touched.lifetimes if check.what == "leaks" else touched.locks
        if not names:
            continue
        head = f"The series touches {check.said} ({_some(names)})"
        if check.what == "locks" and not touched.mutexes:
            why = f"{head}, and no mutex; what runs under other locks is not counted"
            yield Checked(text=_wrapped(why) + "\n", kept=Beside(what=check.what))
            continue
        kept = Beside(what=check.what, cases=len(asked.cases))
        try:
            experiment = session.begin(check.template(reviewed, asked), reviewed.seed)
            kept = replace(kept, experiment=experiment.id, cases=len(experiment.cases))
            if budget.left_s() == 0:
                why = f"{head}, which was not checked: {_NO_TIME}; kdelta resume {experiment.id}"
                yield Checked(text=_wrapped(why) + "\n", kept=replace(kept, why=_NO_TIME), begun=kept.experiment)
                continue
            progress.step(check.doing)
            session.run(experiment, progress)
            shown = check.shown(session, reviewed, experiment)
        except (UserError, HostError) as error:  # speed was measured, and is told
            why = f"{head}, which could not be checked: {error}"
            yield Checked(
                text=_wrapped(why) + "\n", kept=Beside(what=check.what, why=str(error)), begun=kept.experiment
            )
        else:
            kept = replace(kept, leaks=shown.leaks, unchecked=shown.unchecked)
            yield Checked(text=f"{_wrapped(f'{head}:')}\n\n{shown.text}", kept=kept, begun=kept.experiment)


def _first(session: Session, reviewed: Experiment) -> tuple[Case, ...]:
    """The cases to check: one that changed executes what the series does, and may stand behind others of their share."""
    from kdelta.results import answer

    rows = answer.verdicts(session.store, reviewed) if len(reviewed.cases) > _CASES else ()
    changed = [(row.case, row.params, row.cgroup) for row in rows if row.verdict in ("improved", "regressed")]
    cases = sorted(reviewed.cases, key=lambda case: (case.name, case.params, case.cgroup) not in changed)
    return tuple(cases[:_CASES])


def resumed(session: Session, experiment: Experiment) -> None:
    """Of a check that was resumed to its end, the review's reports tell what it found."""
    from kdelta.model import BESIDE_TAG

    check = next((one for one in _CHECKS if one.kind == experiment.kind), None)
    if check is None:
        return
    row = next(row for row in session.store.experiments(kind=experiment.kind) if row.id == experiment.id)
    for tag in row.tags if row.boots_done >= row.boots_planned else ():
        if tag.startswith(BESIDE_TAG):
            try:
                reviewed = session.store.experiment(tag.removeprefix(BESIDE_TAG))
            except UserError:  # it came without its review
                continue
            _tell(session, check, reviewed, experiment)


def _tell(session: Session, check: Check, reviewed: Experiment, experiment: Experiment) -> None:
    def is_of(kept: Beside) -> bool:
        return kept.what == check.what and (kept.experiment == experiment.id or bool(kept.why and not kept.experiment))

    if not any(map(is_of, reviewed.annotations.beside)):
        return
    shown = check.shown(session, reviewed, experiment)
    found = {"experiment": experiment.id, "cases": len(experiment.cases), "why": ""}
    found |= {"leaks": shown.leaks, "unchecked": shown.unchecked}
    session.store.annotate(
        reviewed.id,
        lambda known: replace(
            known, beside=tuple(replace(one, **found) if is_of(one) else one for one in known.beside)
        ),
    )


def _wrapped(text: str) -> str:
    from kdelta.report.text import WIDTH, wrap

    return "\n".join(wrap(text, WIDTH - 1))


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")


def _leaks(reviewed: Experiment, asked: Asked) -> Experiment:
    from kdelta.experiment import templates
    from kdelta.results import leaks

    cases = tuple(case for case in asked.cases if PACK not in case.params)
    if not cases:
        raise UserError(f"programs alone execute it, and {leaks.BATCH_OPS} runs of one take too long")
    effort = replace(asked.effort, batches=leaks.BATCHES, batch_ops=leaks.BATCH_OPS)
    return templates.leaks(replace(asked, cases=cases, effort=effort), leaks.observed(reviewed.kernels), 1)


def _show_leaks(session: Session, reviewed: Experiment, experiment: Experiment) -> Shown:
    from kdelta.report import leaks as layout
    from kdelta.results import leaks

    found = leaks.findings(experiment, session.store)
    new = leaks.new(found, reviewed.kernels[0].label)
    lines = tuple(f"{one.case}: leaks {', '.join(grown.what for grown in one.leaks)} on {one.kernel}" for one in new)
    return Shown(layout.render(experiment, found), lines, leaks.unchecked(found))


def _holds(reviewed: Experiment, asked: Asked) -> Experiment:
    from kdelta.experiment import allowed, templates

    template = templates.trace(asked, reviewed.kernels, (), None)
    allowed.refuse_endless(template.cases, common.load_workloads(tuple(map(Path, template.folders))))
    return template


def _show_holds(session: Session, _: Experiment, experiment: Experiment) -> Shown:
    from kdelta.report import traces
    from kdelta.results.traces import results

    found = results(session.store, experiment.id)
    unchecked = tuple(dict.fromkeys(one.case for one in found[1] if one.state != "ok"))
    return Shown(traces.render([found], changed=True), unchecked=unchecked)


_CHECKS = (
    Check("leaks", "leaks", "lifetimes of objects", "checking for leaks", _leaks, _show_leaks),
    Check("locks", "trace", "locks", "counting what runs under mutexes", _holds, _show_holds),
)
