# SPDX-License-Identifier: GPL-2.0-or-later
"""What a review looks at beside speed: leaks where the diff touches lifetimes of objects, holds where it touches locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import HostError, UserError

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.experiment.templates import Asked
    from kdelta.kernel.touches import Touched
    from kdelta.model import Beside, Experiment, Progress

    Outcome = tuple[str, str, tuple[str, ...]]  # text, experiment, new leaks
    Check = Callable[[Session, Experiment, Asked, Progress], Outcome]


class Checked(Struct, frozen=True, kw_only=True):
    """One check: its whole text, and what is kept of it with the review."""

    text: str
    kept: Beside


_CASES = 8  # the most specific of those that the review chose
_NAMES = 6


def checks(session: Session, reviewed: Experiment, touched: Touched) -> tuple[Checked, ...]:
    """What was checked and found, or why it could not be; it is kept with ``reviewed``, so that its reports tell it."""
    if not reviewed.cases or not (touched.lifetimes or touched.locks):
        return ()
    from kdelta.model import BESIDE_TAG

    with session.progress() as progress:
        found = tuple(_each(session, reviewed, touched, progress))
    session.store.annotate(reviewed.id, lambda known: replace(known, beside=tuple(one.kept for one in found)))
    for one in found:
        if one.kept.experiment:
            session.store.tag(one.kept.experiment, f"{BESIDE_TAG}{reviewed.id}")
    return found


def _each(session: Session, reviewed: Experiment, touched: Touched, progress: Progress) -> Iterator[Checked]:
    from kdelta.experiment import templates
    from kdelta.model import Beside

    asked = replace(templates.asked_in(reviewed), cases=reviewed.cases[:_CASES])
    whats: tuple[tuple[Literal["leaks", "locks"], tuple[str, ...], str, Check], ...] = (
        ("leaks", touched.lifetimes, "lifetimes of objects", _leaks),
        ("locks", touched.locks, "locks", _holds),
    )
    for what, names, said, check in whats:
        if not names:
            continue
        head = f"The series touches {said} ({_some(names)})"
        try:
            text, experiment, leaks = check(session, reviewed, asked, progress)
        except (UserError, HostError) as error:  # speed was measured, and is told
            why = f"{head}, which could not be checked: {error}"
            yield Checked(text=_wrapped(why) + "\n", kept=Beside(what=what, why=str(error)))
        else:
            kept = Beside(what=what, experiment=experiment, cases=len(asked.cases), leaks=leaks)
            yield Checked(text=f"{_wrapped(f'{head}:')}\n\n{text}", kept=kept)


def _wrapped(text: str) -> str:
    from kdelta.report.text import WIDTH, wrap

    return "\n".join(wrap(text, WIDTH - 1))


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")


def _leaks(session: Session, reviewed: Experiment, asked: Asked, progress: Progress) -> Outcome:
    from kdelta.experiment import templates
    from kdelta.report import leaks as layout
    from kdelta.results import leaks

    progress.step("checking for leaks")
    effort = replace(asked.effort, batches=leaks.BATCHES, batch_ops=leaks.BATCH_OPS)
    template = templates.leaks(replace(asked, effort=effort), leaks.observed(reviewed.kernels), 1)
    experiment = session.begin(template, reviewed.seed)
    session.run(experiment, progress)
    found = leaks.findings(experiment, session.store)
    before = {one.case for one in found if one.verdict == "leak" and one.kernel == reviewed.kernels[0].label}
    new = [one for one in found if one.verdict == "leak" and one.case not in before]
    lines = tuple(f"{one.case}: leaks {', '.join(grown.what for grown in one.leaks)} on {one.kernel}" for one in new)
    return layout.render(experiment, found), experiment.id, lines


def _holds(session: Session, reviewed: Experiment, asked: Asked, progress: Progress) -> Outcome:
    from kdelta.cli import _tracing
    from kdelta.experiment import templates
    from kdelta.report import traces
    from kdelta.results.traces import results

    progress.step("counting what runs under locks")
    name = _tracing.run(session, templates.trace(asked, reviewed.kernels, (), None), progress)
    return traces.render([results(session.store, name)]), name, ()
