# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep in which every kind of gap stands once."""

from __future__ import annotations

from report_samples import experiment

from kdelta.model import ExperimentResult, Warn
from kdelta.results.types import CellName, Detail, Sweep, SweepPoint, SweepStep


def broken_sweep() -> tuple[ExperimentResult, Detail]:
    """Nine versions, exact: the first was left out, every other state once, one seed only, then a step again."""
    labels = ("6.2", "6.3", "6.4", "6.5", "6.6", "6.7", "6.8", "6.9")
    points = (
        SweepPoint(kernel="6.1", value=None, state="failed", why="cannot be fetched: the archive does not answer"),
        SweepPoint(kernel="6.2", value=3314.0),
        SweepPoint(kernel="6.3", value=None, state="unsupported", why="needs CONFIG_ANON_VMA_NAME"),
        SweepPoint(kernel="6.4", value=None, state="lost", why="no end record"),
        SweepPoint(kernel="6.5", value=None, state="panicked", why="Kernel panic - not syncing: VFS"),
        SweepPoint(kernel="6.6", value=None, state="hung", why="silent for 180 s"),
        SweepPoint(kernel="6.7", value=float("nan")),
        SweepPoint(kernel="6.8", value=3314.0, why="1 of the 2 seeds that a step needs"),
        SweepPoint(kernel="6.9", value=3000.0),
    )
    step = SweepStep(last="6.8", first="6.9", baseline=3314.0, patched=3000.0, effect_percent=-9.48, verdict="improved")
    name = CellName(case="fork_vmas", metric="instructions", cgroup="child")
    unit = "instructions"
    return ExperimentResult(
        experiment=experiment(*labels, mode="exact", kind="sweep"),
        results=(),
        boots_done=20,
        boots_planned=24,
        warnings=(Warn("compiler", "6.9 was built by gcc 14, 6.8 by gcc 13: a step may be the compiler's work"),),
    ), Detail(sweeps=(Sweep(cell=name, unit=unit, better="lower", points=points, steps=(step,)),))
