# SPDX-License-Identifier: GPL-2.0-or-later
"""What a review looks at beside speed: leaks where the diff touches lifetimes of objects, holds where it touches locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import HostError, UserError

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.experiment.templates import Asked
    from kdelta.kernel.touches import Touched
    from kdelta.model import Experiment, Progress


class Checked(Struct, frozen=True, kw_only=True):
    """One check: its text, the experiment that holds it ("" where it could not be made), and new leaks as lines."""

    text: str
    experiment: str = ""
    leaks: tuple[str, ...] = ()


_CASES = 8  # the most specific of those that the review chose
_NAMES = 6


def checks(session: Session, reviewed: Experiment, touched: Touched) -> tuple[Checked, ...]:
    """What was checked and found, or why it could not be."""
    from kdelta.experiment import templates

    if not reviewed.cases or not (touched.lifetimes or touched.locks):
        return ()
    asked = replace(templates.asked_in(reviewed), cases=reviewed.cases[:_CASES])
    found = []
    with session.progress() as progress:
        for names, what, check in (
            (touched.lifetimes, "lifetimes of objects", _leaks),
            (touched.locks, "locks", _holds),
        ):
            if names:
                head = f"The series touches {what} ({_some(names)})"
                try:
                    done = check(session, reviewed, asked, progress)
                    found.append(replace(done, text=f"{_wrapped(f'{head}:')}\n\n{done.text}"))
                except (UserError, HostError) as error:  # speed was measured, and is told
                    found.append(Checked(text=_wrapped(f"{head}, which could not be checked: {error}") + "\n"))
    return tuple(found)


def _wrapped(text: str) -> str:
    from kdelta.report.text import WIDTH, wrap

    return "\n".join(wrap(text, WIDTH - 1))


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")


def _leaks(session: Session, reviewed: Experiment, asked: Asked, progress: Progress) -> Checked:
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
    return Checked(
        text=layout.render(experiment, found),
        experiment=experiment.id,
        leaks=tuple(f"{one.case}: leaks {', '.join(grown.what for grown in one.leaks)} on {one.kernel}" for one in new),
    )


def _holds(session: Session, reviewed: Experiment, asked: Asked, progress: Progress) -> Checked:
    from kdelta.cli import _tracing
    from kdelta.experiment import templates
    from kdelta.report import traces
    from kdelta.results.traces import results

    progress.step("counting what runs under locks")
    name = _tracing.run(session, templates.trace(asked, reviewed.kernels, (), None), progress)
    return Checked(text=traces.render([results(session.store, name)]), experiment=name)
