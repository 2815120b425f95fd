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


def _how(notes: Annotations, counted: bool) -> str:
    """What looks at it; of a kernel that only has things elsewhere no case is chosen, and yet lines may be shared."""
    if not counted:
        return ""
    moved = notes.looked is not None and notes.looked.shifted
    case = f"kdelta compare BASELINE PATCHED --smp {_CPUS} --case CASE"
    return f"{case} does" if moved else f"the same command with --smp {_CPUS} does"


def sentence(experiment: Experiment) -> str:
    """Part of the answer, "" where there is nothing to say."""
    notes = experiment.annotations
    told = _names(notes.notes) if experiment.machine.smp == 1 else ""
    if not told or not (experiment.cases or (notes.looked is not None and notes.looked.shifted)):
        return ""
    how = _how(notes, can_be_counted(experiment)).removeprefix("the same command with ")
    return f"What moves between CPUs ({told}) was not looked at" + (f": {how}" if how else "")


def above(notes: Annotations, counted: bool) -> tuple[str, ...]:
    """The line above the table of what was counted on one CPU; ``counted``: several could be."""
    looked = notes.looked
    if looked is not None and not (looked.differ or looked.shifted or looked.boot_patched or looked.sizes_only):
        return ()  # what the config does not build moves nothing on any number of CPUs
    how = _how(notes, counted)
    after = f"; {how}" if how else ""
    if told := _names(notes.notes):
        return (
            f"What moves between CPUs: not looked at, on one CPU, though changed lines are about it ({told}){after}.",
        )
    locks = any(one.what == "locks" for one in notes.beside)  # of a review that an older kdelta made
    return (f"What moves between CPUs at these locks: not looked at, on one CPU{after}.",) if locks else ()
