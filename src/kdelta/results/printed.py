# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a program prints other things on one kernel than on another, under each seed alike, or that it lacks a file.

A program may go on where a kernel has not what it asks for (ENOSYS), end well, and have done less: its count then is
of other work, and what it printed may be all that says so. So it is where the guest has not what it asks for:
``script -qc 'stty -a'`` found no /bin/sh, ended with 0, and was the same on 6.12 under two command lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdelta.guest import protocol
from kdelta.model import Experiment
from kdelta.results.warnings import PrintedLacking, PrintedOtherwise
from kdelta.store.rows import BootRow
from kdelta.store.store import Store

_PROGRAM = "program"  # the workload
_READ = 5  # boots of a kernel: a program that prints what varies shows it in these
_LEAST = 2  # of those: what one seed prints may be its own
_LONGEST = 100  # characters of a line
# By errno(3), or as shells say it. What is meant for reading has such words too: a line that is long is of that kind.
_LACKS = re.compile(r"No such file or directory|: (?:command )?not found$|Read-only file system")


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


def lacking(experiment: Experiment, store: Store, boots: Sequence[BootRow]) -> tuple[PrintedLacking, ...]:
    """Of programs in guests that ended as they should: the first line that says of each that it did not find a file."""
    if experiment.machine.native or len(experiment.cases) != 1 or experiment.cases[0].workload != _PROGRAM:
        return ()
    seen = [_lines(store.stream(experiment.id, boot.block, boot.slot)) for boot in _first(boots, 0)]
    always = (line for line in seen[0] if all(line in other for other in seen[1:])) if seen else ()
    found = next((line for line in always if _LACKS.search(line) and len(line) <= _LONGEST), None)
    return (PrintedLacking(experiment.cases[0].name, found),) if found else ()


def _first(boots: Sequence[BootRow], kernel: int) -> list[BootRow]:
    return [boot for boot in boots if boot.kernel == kernel and boot.state == "ok"][:_READ]


def _of(experiment: Experiment, store: Store, boots: Sequence[BootRow], kernel: int) -> tuple[str, ...] | None:
    """What it prints on a kernel; None where that is not known, or not always the same."""
    mine = _first(boots, kernel)
    seen = {_lines(store.stream(experiment.id, boot.block, boot.slot)) for boot in mine}
    return seen.pop() if len(seen) == 1 and len(mine) >= _LEAST else None


def _lines(stream: bytes) -> tuple[str, ...]:
    return tuple(record.text for record in protocol.parse(stream).records if isinstance(record, protocol.Output))
