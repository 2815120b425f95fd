# SPDX-License-Identifier: GPL-2.0-or-later
"""What is found out beside a measurement of built kernels, and kept with it: their selftests, their machine code."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.attribution import images, stripped
from kdelta.errors import KdeltaError
from kdelta.experiment import selftests
from kdelta.kernel import changed
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Experiment, Progress, Remark, plans
from kdelta.store.store import Store


def run_gate(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """Run the selftests that ``experiment`` asks for, and keep their judgement and KTAP with it."""
    names = experiment.plan.selftests if isinstance(experiment.plan, plans.Compare) else ()
    if not names:
        return experiment
    gate = selftests.gate(experiment.kernels, names, experiment.machine, progress)
    for note in (*gate.notes, *filter(None, [gate.failed])):
        progress.note(note)
    notes = tuple(Remark("selftests", note) for note in gate.notes)
    return store.annotate(
        experiment.id, lambda known: replace(known, gate=gate.failed, ktap=gate.ktap, notes=(*known.notes, *notes))
    )


def note_code(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """Keep a line on the machine code of each built kernel with ``experiment``: against the baseline, or its step."""
    if not selftests.built(experiment.kernels):
        return experiment
    lines = []
    one_image = len({kernel.image_sha256 for kernel in experiment.kernels}) == 1
    try:
        found = [] if one_image else [images.image_of(kernel) for kernel in experiment.kernels]
        for index, kernel in enumerate(experiment.kernels[1:], 1):
            if one_image:
                lines.append(f"{kernel.label}: the machine code is identical")
                continue
            progress.step(f"comparing the machine code of {kernel.label}")
            before = found[index - 1 if experiment.in_steps else 0]
            lines.append(f"{kernel.label}: {stripped.sentence(images.compare(before, found[index])[0])}")
    except (KdeltaError, OSError) as error:  # two architectures, a stripped image: the comparison itself goes on
        lines.append(f"machine code was not compared: {error}")
    notes = tuple(Remark("machine-code", line) for line in lines)
    return store.annotate(experiment.id, lambda known: replace(known, notes=(*known.notes, *notes)))


def note_locations(store: Store, experiment: Experiment, progress: Progress) -> Experiment:
    """Keep with ``experiment`` where its last kernel changes the source of the first, for reviewers' tools."""
    if not selftests.built(experiment.kernels):
        return experiment
    first, last = (parse_kernel(one.spec.partition("#")[0]) for one in (experiment.kernels[0], experiment.kernels[-1]))
    try:
        found = changed.between(first, last)
    except (KdeltaError, OSError) as error:  # a tree that moved on: the figures need no lines
        progress.note(f"which lines changed is not known: {error}")
        return experiment
    return store.annotate(experiment.id, lambda known: replace(known, locations=found)) if found else experiment
