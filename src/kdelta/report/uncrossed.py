# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said where a patch is about what CPUs share, and one CPU was counted: nothing moves between CPUs there."""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.model import Annotations, Experiment, Remark, Warn
from kdelta.model.experiment import SHARED

_CPUS = 8


def is_told(warning: Warn) -> bool:
    """Whether a note stands above the table and in the answer, so that no footnote is needed."""
    return isinstance(warning, Remark) and warning.about == SHARED


def _names(warnings: Sequence[Warn]) -> str:
    return next((w.text for w in warnings if isinstance(w, Remark) and w.about == SHARED), "")


def can_be_counted(experiment: Experiment) -> bool:
    """Whether guests of several CPUs are counted, of all its kernels."""
    return all(kernel.arch == "x86_64" for kernel in experiment.kernels)


def sentence(experiment: Experiment) -> str:
    """Part of the answer, "" where there is nothing to say."""
    told = _names(experiment.annotations.notes) if experiment.machine.smp == 1 and experiment.cases else ""
    how = f": --smp {_CPUS} does" if can_be_counted(experiment) else ""
    return f"What moves between CPUs ({told}) was not looked at{how}" if told else ""


def above(notes: Annotations, counted: bool) -> tuple[str, ...]:
    """The line above the table of what was counted on one CPU; ``counted``: several could be."""
    how = f"; the same command with --smp {_CPUS} does" if counted else ""
    if told := _names(notes.notes):
        return (
            f"What moves between CPUs: not looked at, on one CPU, though changed lines are about it ({told}){how}.",
        )
    locks = any(one.what == "locks" for one in notes.beside)  # of a review that an older kdelta made
    return (f"What moves between CPUs at these locks: not looked at, on one CPU{how}.",) if locks else ()
