# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta sweep --follow: the same sweep night for night. Only new versions are measured, each step is announced once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kdelta.cli import _versions, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.model import Case, Experiment, Progress
    from kdelta.model.diary import Step
    from kdelta.results.types import Sweep
    from kdelta.store.rows import ExperimentRow
    from kdelta.store.store import Store

_PREFIX = "follow/"
_NAMED = 3  # cells


def tag_of(names: Sequence[str], cases: Sequence[Case]) -> str:
    """The tag of all sweeps that follow the same kernels with the same cases."""
    from kdelta.store.codec import key_of

    return _PREFIX + key_of(*names, "", *(case.name for case in cases))[:12]


def experiment(
    session: Session,
    template: Experiment,
    texts: Sequence[str],
    tag: str,
    progress: Progress,
    seed: int | None,
    build: _versions.Build = _versions.here,
) -> Experiment:
    """The sweep to run: the last one, where no version is new (it may be unfinished), else one with the new versions.

    Without a new version there is another one all the same where the host may have had a part in what became of a cell.
    """
    from kdelta.experiment import imported

    rows = session.store.experiments(kind="sweep", limit=2, tag=tag)
    last = session.store.experiment(rows[0].id) if rows else None
    if last is not None:
        imported.refuse(last)
    line = (
        _versions.go_on(last, texts, progress, build) if last else _versions.line_up(template, texts, progress, build)
    )
    if last is not None and _images(line) == _images(last.kernels):
        again = _doubtful(session.store, rows) if rows[0].status == "complete" else []
        progress.note(f"nothing new since {last.id}{_measured_again(again)}")
        if not again:
            return last
    whole = _versions.placed(last or template, line, common.command_line(), reuse=True)
    begun = session.begin(whole, last.seed if last is not None and seed is None else seed)
    session.store.tag(begun.id, tag)
    return begun


def _doubtful(store: Store, rows: Sequence[ExperimentRow]) -> list[str]:
    """The cells of the newest sweep that may have ended so by the host; not those that ended so in the one before too."""
    from kdelta.experiment import doubtful

    now, *before = (doubtful.cells(store, store.experiment(row.id)) for row in rows)
    return [words for cell, words in now.items() if not any(cell in one for one in before)]


def _measured_again(cells: Sequence[str]) -> str:
    if not cells:
        return ""
    others = f" and {len(cells) - _NAMED} others" if len(cells) > _NAMED else ""
    return f"; the host may have had a part in {', '.join(cells[:_NAMED])}{others}: measured again"


def _images(versions: Sequence[object]) -> set[tuple[str, str]]:
    from kdelta.model import Kernel

    return {(one.image_sha256, one.cmdline) for one in versions if isinstance(one, Kernel)}


def announce(store: Store, followed: Experiment, now: Callable[[], str]) -> tuple[list[Step], list[Step]]:
    """(the steps that no sweep showed before, those known whose cause is known only now); both are kept."""
    from kdelta.results import answer

    found = _steps(followed, answer.sweeps(store, followed.id), now())
    for old, step in _narrowed(store.steps(), found, [kernel.label for kernel in followed.kernels]):
        store.narrow(old.key, step)
    new = {step.key for step in found if store.announce(step)}
    explained = [step for step in found if step.key not in new and store.explain(step)]
    return [step for step in found if step.key in new], explained


def _narrowed(known: Sequence[Step], found: Sequence[Step], line: Sequence[str]) -> list[tuple[Step, Step]]:
    """Known steps with what they are now: a version that came late lies between their two, and one step is left there."""
    place = {label: number for number, label in enumerate(line)}
    keys = {step.key for step in found}
    pairs = []
    for old in known:
        if old.key in keys or old.last not in place or old.first not in place:
            continue
        inside = [
            step
            for step in found
            if (step.case, step.metric) == (old.case, old.metric)
            and place[old.last] <= place[step.last]
            and place[step.first] <= place[old.first]
        ]
        if len(inside) == 1 and inside[0].key not in {step.key for step in known}:
            pairs.append((old, inside[0]))
    return pairs


def _steps(experiment: Experiment, sweeps: Iterable[Sweep], now: str) -> list[Step]:
    """Every step of a sweep as it would be announced ``now``. It is told by its case, metric and the two images."""
    from kdelta.model.diary import Step
    from kdelta.report import behind, prose
    from kdelta.report.view import cell_title
    from kdelta.results import compilers as results
    from kdelta.store.diary import step_key

    images = {kernel.label: f"{kernel.image_sha256} {kernel.cmdline}" for kernel in experiment.kernels}
    compilers = dict(zip((k.label for k in experiment.kernels), experiment.annotations.compilers, strict=False))
    found = []
    for sweep in sweeps:
        title, explained = cell_title(sweep.cell), results.explained(sweep, compilers)
        for step in sweep.steps:
            because = behind.text(sweep.cell.metric, step.because, step.because_line)
            found.append(
                Step(
                    key=step_key(title, sweep.cell.metric, images[step.last], images[step.first]),
                    case=title,
                    metric=sweep.cell.metric,
                    last=step.last,
                    first=step.first,
                    effect_percent=step.effect_percent,
                    interval_percent=step.interval_percent,
                    patched=None if math.isfinite(step.effect_percent) else step.patched,
                    verdict=step.verdict or "",
                    because="; ".join(filter(None, (because, prose.moved(step, sweep)))) if because else "",
                    compiler=results.changed(compilers, step),
                    explained=explained.get(step.first, ""),
                    experiment=experiment.id,
                    announced_at=now,
                )
            )
    return found


def refuse(*, timed: bool, add: str | None, fresh: bool) -> None:
    """Raises:
    UserError: what cannot be followed.
    """
    if timed:
        raise UserError("--follow counts: the blocks of a timed sweep hold every version, so none can be added later")
    if add or fresh:
        raise UserError("--follow goes on with its own last sweep: leave out --add and --fresh")
