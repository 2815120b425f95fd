# SPDX-License-Identifier: GPL-2.0-or-later
"""The map case x function of a kernel: each case counted once.

A map that was begun goes on where it ended, and a case that is new, or that changed, is the only one that is counted.
Of an image that differs little from a mapped one, those that execute what differs (``reach_carried.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution.reach import Reach, Row
from kdelta.errors import UserError
from kdelta.experiment import functions, kinds, place, reach_carried, runner
from kdelta.experiment.boot_once import boot_each
from kdelta.experiment.reach_rows import Counted, count, ready, recall
from kdelta.experiment.templates import Asked, run
from kdelta.experiment.work import Site, Work
from kdelta.kernel.symbols import SymbolTable
from kdelta.machine.boot import RawBoot
from kdelta.model import Case, Effort, Kernel, MachineOptions, Progress
from kdelta.spec import counted, sameness
from kdelta.spec.workloads import Workload

_TOGETHER = 8  # cases of a boot: what is lost where a map is broken off


def can_be_counted(cases: Sequence[Case], workloads: Mapping[str, Workload]) -> list[Case]:
    """Those of ``cases`` that have an exact mode."""
    return [case for case in cases if workloads[case.workload].exact_ops]


class Setup(Struct, frozen=True, kw_only=True):
    """What guests of a map are made of beside their kernel and its cases."""

    workloads: Mapping[str, Workload]
    folders: tuple[Path, ...] = ()
    machine: MachineOptions = MachineOptions()


def prepared(
    kernel: Kernel, cases: Sequence[Case], asked: Setup, progress: Progress
) -> tuple[list[Counted], Site, SymbolTable]:
    """The boots of ``cases``, for one exact repetition each, where they are made, and the kernel's functions.

    Raises:
        UserError: a kernel that cannot be booted in a guest, or whose functions have no names.
        HostError: no QEMU.
    """
    if not kernel.image_path:
        raise UserError("reach counts in a guest: name a kernel with an image, as in debian:6.12, not 'running'")
    effort = Effort(repetitions=1, seeds=1)
    wanted = Asked(cases=tuple(cases), machine=asked.machine, effort=effort, folders=asked.folders)
    experiment = run(wanted, (kernel,), "exact", 1)
    here = place.of(experiment, progress).site
    table = functions.table_of(kernel, here, progress)
    alone = (replace(experiment, cases=(case,)) for case in cases)
    digests = [sameness.digest(asked.workloads[case.workload], case) for case in cases]
    return ready([kinds.counting(one, asked.workloads) for one in alone], digests, here, table), here, table


def build(
    kernel: Kernel,
    cases: Sequence[Case],
    asked: Setup,
    progress: Progress,
    *,
    anew: bool = False,
    over: Callable[[], bool] = lambda: False,
) -> Reach:
    """The map of ``kernel`` over ``cases``: rows from the cache, the others counted now, each kept as it is done.

    Args:
        anew: none is taken over from another kernel's map, and those that were are counted.
        over: whether there is no time for further cases.

    Raises:
        UserError: as ``prepared``.
        HostError: no QEMU, a full disk.
    """
    rows, here, table = prepared(kernel, cases, asked, progress)
    if not anew:
        reach_carried.take_over(kernel, rows, here, table, progress)
    boot, workers = partial(boot_each, here), os.cpu_count() or 1
    last = counted.programs(cases, asked.workloads)
    return filled(
        kernel.label, rows, table, boot, progress, workers=workers, together=_TOGETHER, last=last, anew=anew, over=over
    )


def _batched(rows: Sequence[Counted], size: int) -> list[Sequence[Counted]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def filled(
    label: str,
    rows: Sequence[Counted],
    table: SymbolTable,
    boot: Callable[[Sequence[Work]], Sequence[RawBoot]],
    progress: Progress,
    *,
    workers: int,
    together: int,
    last: Collection[str] = (),
    anew: bool = False,
    over: Callable[[], bool] = lambda: False,
) -> Reach:
    """The map of ``rows``: what the cache does not know is booted, ``together`` cases a boot, ``workers`` at once.

    ``last`` are cases to map after all others: a program takes as long as dozens of single calls.
    """
    found = ((one, recall(one.path, table)) for one in rows)
    known = {one.case.name: row for one, row in found if row is not None and not (anew and row.beyond)}
    missing = [one for one in rows if one.case.name not in known]
    todo = iter(_batched(sorted(missing, key=lambda one: one.case.name in last), together))
    if 0 < len(known) < len(rows):
        progress.note(f"{len(known)} of {len(rows)} cases are mapped already")
    with runner.workers(workers) as pool:
        running: dict[Future[list[Row]], Sequence[Counted]] = {}
        while True:
            for several in islice(todo, 0 if over() else workers - len(running)):
                running[pool.submit(count, boot, several, table)] = several
            if not running:
                break
            shown = ", ".join(several[0].case.name for several in running.values())
            progress.step(f"mapping {label}: {shown}", len(known), len(rows))
            for future in wait(running, return_when=FIRST_COMPLETED)[0]:
                known |= {row.case: row for row in future.result()}
                del running[future]
    names = [one.case.name for one in rows]
    left = tuple(name for name in names if name not in known)
    if left:
        progress.note(f"no time to map {len(left)} of {len(rows)} cases; the same command goes on with them")
    return Reach(kernel=label, rows=tuple(known[name] for name in names if name in known), no_time=left)
