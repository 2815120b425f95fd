# SPDX-License-Identifier: GPL-2.0-or-later
"""Sweeps as reports get them, one in which every kind of gap stands once; and all samples by name."""

from __future__ import annotations

import random

from kdelta.model import Because, ExperimentResult, Remark, plans
from kdelta.results.types import CellName, CellPoints, Detail, FunctionDiff, Point, Sweep, SweepPoint, SweepStep
from unit.report.report_samples import cell, exact, experiment, functions, gaps, several, timed


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
        SweepPoint(kernel="6.8", value=3314.0, unseen=Remark("unseen", "1 of the 2 seeds that a step needs")),
        SweepPoint(kernel="6.9", value=3000.0),
    )
    step = SweepStep(last="6.8", first="6.9", baseline=3314.0, patched=3000.0, effect_percent=-9.48, verdict="improved")
    name = CellName(case="fork_vmas", metric="instructions", cgroup="child")
    unit = "instructions"
    return ExperimentResult(
        experiment=experiment(*labels, mode="exact", plan=plans.Sweep()),
        results=(),
        boots_done=20,
        boots_planned=24,
        warnings=(Remark("compiler", "6.9 was built by gcc 14, 6.8 by gcc 13: a step may be the compiler's work"),),
    ), Detail(sweeps=(Sweep(cell=name, unit=unit, better="lower", points=points, steps=(step,)),))


def sweep() -> tuple[ExperimentResult, Detail]:
    """Six versions, exact: a step up with its because, a gap, a step down."""
    labels = ("6.1", "6.12", "6.16", "6.18", "7.0", "7.3")
    values = (3314.0, 5569.0, None, 5571.0, 4100.0, 4100.0)
    points = tuple(
        SweepPoint(kernel=label, value=value, state="ok")
        if value is not None
        else SweepPoint(kernel=label, value=None, state="unsupported", why="needs CONFIG_ANON_VMA_NAME")
        for label, value in zip(labels, values, strict=True)
    )
    steps = (
        SweepStep(
            last="6.1",
            first="6.12",
            baseline=3314.0,
            patched=5569.0,
            effect_percent=68.04,
            verdict="regressed",
            because=functions(),
        ),
        SweepStep(
            last="6.18",
            first="7.0",
            baseline=5571.0,
            patched=4100.0,
            effect_percent=-26.4,
            verdict="improved",
            because_line=Because(changed=(("__call_rcu_common", -264),)),
        ),
    )
    name = CellName(case="pidfd_open", metric="instructions")
    detail = Detail(
        sweeps=(Sweep(cell=name, unit="instructions", better="lower", points=points, steps=steps),),
        functions=(FunctionDiff(cell=name, baseline_label="6.1", patched_label="6.12", functions=functions()),),
    )
    results = tuple(
        cell(
            "pidfd_open",
            "instructions",
            unit="instructions",
            baseline_label="6.1",
            patched_label=label,
            baseline=3314.0,
            patched=value,
            effect_percent=100 * (value / 3314.0 - 1) if value else None,
            interval_percent=None,
            verdict=("regressed" if value else None),
            state="ok" if value else "unsupported",
        )
        for label, value in zip(labels[1:], values[1:], strict=True)
    )
    return ExperimentResult(
        experiment=experiment(*labels, mode="exact", plan=plans.Sweep()),
        results=results,
        boots_done=18,
        boots_planned=18,
    ), detail


def timed_sweep() -> tuple[ExperimentResult, Detail]:
    """Four versions in times, eight blocks: two levels, and a version that does not build between them."""
    labels, levels = ("6.8", "6.10", "6.11"), (300.0, 420.0, 420.0)
    why = "does not build: fs/pipe.c:12:3: error: 'nr' undeclared"
    values = tuple(SweepPoint(kernel=label, value=level) for label, level in zip(labels, levels, strict=True))
    step = SweepStep(
        last="6.8", first="6.10", baseline=300.0, patched=420.0, effect_percent=39.6, verdict="regressed", p_value=0.001
    )
    name = CellName(case="pipe", metric="ns_per_op")
    rng = random.Random(5)
    boots = tuple(
        Point(block, slot, slot, level * (1 + 0.02 * rng.random()))
        for block in range(8)
        for slot, level in enumerate(levels)
    )
    points = (values[0], SweepPoint(kernel="6.9", value=None, state="failed", why=why), *values[1:])
    detail = Detail(
        points=(CellPoints(cell=name, unit="ns", better="lower", points=boots),),
        sweeps=(Sweep(cell=name, unit="ns", better="lower", points=points, steps=(step,)),),
    )
    return ExperimentResult(
        experiment=experiment(*labels, plan=plans.Sweep(), blocks=8),
        results=(),
        boots_done=24,
        boots_planned=24,
        warnings=(Remark("gap", f"6.9 left out: {why}"),),
    ), detail


SAMPLES = {
    "timed": timed, "exact": exact, "gaps": gaps, "several": several, "sweep": sweep, "timed_sweep": timed_sweep,
}  # fmt: skip
