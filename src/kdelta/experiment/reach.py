# SPDX-License-Identifier: GPL-2.0-or-later
"""The map case x function of a kernel: each case counted once, kept in the cache under its exact identity.

A map that was begun goes on where it ended, and a case that is new, or that changed, is the only one that is counted.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kdelta import paths
from kdelta.attribution import exact, profiles, reach
from kdelta.attribution.exact import Names
from kdelta.attribution.reach import Reach, Row
from kdelta.errors import UserError
from kdelta.experiment import boot_once, functions, runner, templates
from kdelta.experiment.allowed import refuse_unknown
from kdelta.experiment.measure import Measuring, measuring
from kdelta.experiment.programs import programs_for
from kdelta.experiment.survey import site, survey
from kdelta.guest.jobs import JobList
from kdelta.guest.metrics import repetitions
from kdelta.kernel import cache, maps, naming
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.machine import plugin
from kdelta.machine.boot import RawBoot
from kdelta.model import Case, Effort, Kernel, MachineOptions, PlannedBoot, Progress, RunResult
from kdelta.spec.workloads import Workload

FORMAT = 1  # of the cached rows: raised when their content changes
_PLAN = PlannedBoot(block=0, slot=0, kernel=0)
_PASSING = ("hung", "lost")  # a matter of the host's load: tried again by the next map


class _Kept(Struct, frozen=True, kw_only=True):
    """A row in the cache."""

    format: int
    names: str  # the source of the function names
    row: Row


class Counted(Struct, frozen=True, kw_only=True):
    """One case made ready: ``work`` is its boot, ``read`` what becomes of it, ``path`` where its row is kept."""

    case: Case
    work: boot_once.Work
    read: Callable[[RawBoot], RunResult]
    parts: int
    path: Path


def table_of(kernel: Kernel, here: boot_once.Site, progress: Progress) -> SymbolTable:
    """The names of a kernel's functions, from its image or from a guest of it.

    Raises:
        UserError: it has none that its code proves.
    """
    functions.missing(here, (kernel,), progress)
    table = naming.load(kernel)
    if isinstance(table, NoSymbols):
        raise UserError(f"{kernel.label}: its functions have no names, so nothing can be said of them: {table.why}")
    return table


def can_be_counted(cases: Sequence[Case], workloads: Mapping[str, Workload]) -> list[Case]:
    """Those of ``cases`` that have an exact mode."""
    return [case for case in cases if workloads[case.workload].exact_ops]


def build(
    kernel: Kernel,
    cases: Sequence[Case],
    workloads: Mapping[str, Workload],
    folders: Sequence[Path],
    machine: MachineOptions,
    progress: Progress,
) -> Reach:
    """The map of ``kernel`` over ``cases``: rows from the cache, the others counted now, each kept as it is done.

    Raises:
        UserError: a kernel that cannot be booted in a guest, or whose functions have no names.
        HostError: no QEMU, a full disk.
    """
    if not kernel.image_path:
        raise UserError("reach counts in a guest: name a kernel with an image, as in debian:6.12, not 'running'")
    programs = programs_for((kernel,), folders)
    here = site((kernel,), machine, "exact", programs, survey((kernel,), "off", machine.qemu, programs))
    table = table_of(kernel, here, progress)
    ready = _ready(kernel, cases, workloads, folders, machine, here, table)
    boot = partial(boot_once.boot_once, here)
    return filled(kernel.label, ready, table, boot, progress, workers=os.cpu_count() or 1)


def filled(
    label: str,
    ready: Sequence[Counted],
    table: SymbolTable,
    boot: Callable[[boot_once.Work], RawBoot],
    progress: Progress,
    *,
    workers: int,
) -> Reach:
    """The map over ``ready`` cases: what the cache does not know is booted, ``workers`` at once."""
    known = {one.case.name: row for one in ready if (row := _recall(one.path, table)) is not None}
    todo = (one for one in ready if one.case.name not in known)
    if 0 < len(known) < len(ready):
        progress.note(f"{len(known)} of {len(ready)} cases are mapped already")
    with runner.workers(workers) as pool:
        running: dict[Future[Row], Counted] = {}
        while True:
            for one in islice(todo, workers - len(running)):
                running[pool.submit(_count, boot, one, table)] = one
            if not running:
                break
            shown = ", ".join(one.case.name for one in running.values())
            progress.step(f"mapping {label}: {shown}", len(known), len(ready))
            for future in wait(running, return_when=FIRST_COMPLETED)[0]:
                known[running.pop(future).case.name] = future.result()
    return Reach(kernel=label, rows=tuple(known[one.case.name] for one in ready))


def _ready(
    kernel: Kernel,
    cases: Sequence[Case],
    workloads: Mapping[str, Workload],
    folders: Sequence[Path],
    machine: MachineOptions,
    here: boot_once.Site,
    table: SymbolTable,
) -> list[Counted]:
    """Every case as a boot of its own, with the name of its row: a digest of all that its counts depend on."""
    counter = plugin.build(paths.cache_dir())
    base, found = "", []
    for case in cases:
        asked = templates.Asked(
            cases=(case,), machine=machine, effort=Effort(repetitions=1, seeds=1), folders=tuple(folders)
        )
        experiment = templates.run(asked, (kernel,), "exact", 1)
        refuse_unknown(experiment, workloads)
        kind = measuring(experiment, workloads, lambda _: Names(), counter)
        work = kind.work(_PLAN)
        base = base or boot_once.identity(here, replace(work, jobs=JobList(mode="exact")))
        identity = hashlib.sha256(f"{base}\0{work.jobs.text()}".encode()).hexdigest()
        found.append(
            Counted(
                case=case,
                work=work,
                read=partial(_read, kind),
                parts=exact.parts_of(kind.metrics[0]),
                path=_folder(kernel) / f"{identity[:40]}.{table.source}.msgpack",
            )
        )
    return found


def _read(kind: Measuring, raw: RawBoot) -> RunResult:
    return kind.runs(_PLAN, raw)[0]


def _folder(kernel: Kernel) -> Path:
    return maps.folder_of(kernel.image_sha256)


def _recall(path: Path, table: SymbolTable) -> Row | None:
    try:
        kept = msgspec.msgpack.decode(cache.read_checked(path) or b"", type=_Kept)
    except msgspec.MsgspecError:
        return None  # never made, or of another version: made anew
    return kept.row if kept.format == FORMAT and kept.names == table.source else None


def _count(boot: Callable[[boot_once.Work], RawBoot], one: Counted, table: SymbolTable) -> Row:
    """Boot for one case, and keep what it executed."""
    raw = boot(one.work)
    run = one.read(raw)
    row = Row(case=one.case.name, state=run.state, why=run.why, elapsed_s=raw.elapsed_s)
    if run.state == "ok":
        intervals = [interval for file in raw.counts for interval in profiles.read(file)]
        executed, total = reach.ran(intervals, table)
        ops = sum(repetition.ops for repetition in repetitions(raw.records, 0)) * one.parts
        row = replace(row, functions=executed, total=total, ops=ops)
    if run.state not in _PASSING:
        cache.write_checked(one.path, msgspec.msgpack.encode(_Kept(format=FORMAT, names=table.source, row=row)))
    return row
