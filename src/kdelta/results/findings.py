# SPDX-License-Identifier: GPL-2.0-or-later
"""The largest steps of all stored sweeps: what a row of kernels did to the cases, the largest change first."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import KdeltaError
from kdelta.model import Experiment
from kdelta.results import answer, compilers
from kdelta.results.types import CellName, Sweep, SweepStep
from kdelta.store.store import Store

_ALIKE_AT = 0.5  # of the larger change, as logarithms: what is smaller is told apart


class Swept(Struct, frozen=True, kw_only=True):
    """A sweep that was read."""

    experiment: Experiment
    sweeps: tuple[Sweep, ...]


class Finding(Struct, frozen=True, kw_only=True):
    """A step; ``alike``: other cases between the same versions, whose largest part is that of the same function.

    ``images``: digests and command lines of the two kernels. ``compiler``: how it changed there, "" where it did not.
    """

    experiment: str
    mode: str
    cpus: int
    cell: CellName
    unit: str
    step: SweepStep
    images: tuple[str, str]
    compiler: str = ""
    alike: tuple[tuple[CellName, float], ...] = ()


def swept(store: Store, names: Iterable[str] = ()) -> tuple[list[Swept], list[str]]:
    """(the named sweeps, or all that are stored, the newest first; what could not be read, a line each).

    Raises:
        KdeltaError: a named one cannot be read.
    """
    asked = list(names)
    found, wrong = [], []
    for name in asked or [row.id for row in store.experiments(kind="sweep")]:
        try:
            experiment = store.experiment(name)
            found.append(Swept(experiment=experiment, sweeps=answer.result(store, experiment.id)[1].sweeps))
        except KdeltaError as error:
            if asked:
                raise
            wrong.append(f"{name}: {error}")
    return found, wrong


def _size(effect_percent: float) -> float:
    """How large a change is, the same for one and its reverse; a figure that vanished is the largest."""
    return abs(math.log1p(effect_percent / 100)) if effect_percent > -100 else math.inf


def _lead(step: SweepStep) -> str:
    return step.because[0].function if step.because else ""


def _steps(one: Swept) -> Iterable[Finding]:
    e = one.experiment
    images = {kernel.label: f"{kernel.image_sha256} {kernel.cmdline}" for kernel in e.kernels}
    of = dict(zip((kernel.label for kernel in e.kernels), e.annotations.compilers, strict=False))
    for sweep in one.sweeps:
        explained = compilers.explained(sweep, of)
        for step in sweep.steps:
            called = step.verdict in ("improved", "regressed") and math.isfinite(step.effect_percent)
            if not called or step.first in explained:
                continue
            yield Finding(
                experiment=e.id,
                mode=e.mode,
                cpus=e.machine.smp,
                cell=sweep.cell,
                unit=sweep.unit,
                step=step,
                images=(images[step.last], images[step.first]),
                compiler=compilers.changed(of, step),
            )


def largest(found: Iterable[Swept], most: int) -> list[Finding]:
    """The ``most`` largest steps. A step that several sweeps show is told once, of the newest; pure.

    Steps of other cases between the same versions that are led by the same function belong to the largest of them.
    What goes with the compiler is no finding about a kernel.
    """
    known: dict[tuple[object, ...], Finding] = {}
    for one in found:
        for finding in _steps(one):
            known.setdefault((finding.cell, finding.cpus, finding.images), finding)
    ranked = sorted(known.values(), key=lambda f: (-_size(f.step.effect_percent), f.cell.case, f.cell.metric))
    heads: dict[tuple[object, ...], Finding] = {}
    for finding in ranked:
        lead, size = _lead(finding.step), _size(finding.step.effect_percent)
        key = (finding.images, finding.cell.metric, lead or finding.cell, finding.step.effect_percent > 0)
        head = heads.get(key)
        if head is None:
            heads[key] = finding
        elif size >= _ALIKE_AT * _size(head.step.effect_percent):
            heads[key] = replace(head, alike=(*head.alike, (finding.cell, finding.step.effect_percent)))
        else:
            heads[*key, finding.cell] = finding
    return list(heads.values())[:most]
