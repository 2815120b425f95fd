# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a program prints other things on one kernel than on another, under each seed alike.

A program may go on where a kernel has not what it asks for (ENOSYS), end well, and have done less: its count then is
of other work, and what it printed may be all that says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.guest import protocol
from kdelta.model import Experiment
from kdelta.results.warnings import PrintedOtherwise
from kdelta.store.rows import BootRow
from kdelta.store.store import Store

_PROGRAM = "program"  # the workload
_READ = 5  # boots of a kernel: a program that prints what varies shows it in these
_LONGEST = 100  # characters of a line


def otherwise(experiment: Experiment, store: Store, boots: Sequence[BootRow]) -> tuple[PrintedOtherwise, ...]:
    """Of a comparison of a program: the kernels on which it prints other lines than on the baseline."""
    programs = all(case.workload == _PROGRAM for case in experiment.cases)
    if not experiment.cases or not programs or experiment.in_steps or len(experiment.kernels) < 2:
        return ()
    found = [_of(experiment, store, boots, kernel) for kernel in range(len(experiment.kernels))]
    labels = [kernel.label for kernel in experiment.kernels]
    warnings = []
    for kernel, lines in enumerate(found[1:], 1):
        if found[0] is None or lines is None or lines == found[0]:
            continue
        for mine, other, which in ((lines, found[0], (kernel, 0)), (found[0], lines, (0, kernel))):
            if alone := [line for line in mine if line not in other]:
                one, two = (labels[index] for index in which)
                warnings.append(PrintedOtherwise(experiment.cases[0].name, one, two, alone[0][:_LONGEST]))
                break
    return tuple(warnings)


def _of(experiment: Experiment, store: Store, boots: Sequence[BootRow], kernel: int) -> tuple[str, ...] | None:
    """What it prints on a kernel; None where that is not known, or not always the same."""
    mine = [boot for boot in boots if boot.kernel == kernel and boot.state == "ok"][:_READ]
    seen = {_lines(store.stream(experiment.id, boot.block, boot.slot)) for boot in mine}
    return seen.pop() if len(seen) == 1 else None


def _lines(stream: bytes) -> tuple[str, ...]:
    return tuple(record.text for record in protocol.parse(stream).records if isinstance(record, protocol.Output))
