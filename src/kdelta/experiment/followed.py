# SPDX-License-Identifier: GPL-2.0-or-later
"""Call stacks of boots that were counted before: each is booted once more, now with its calls followed.

The boot is the same (kernel, seed, case), so its counts are: where they are not, kdelta or QEMU has changed since, and
that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import as_completed

from msgspec.structs import replace

from kdelta.attribution import stacks
from kdelta.errors import GuestError, UserError
from kdelta.experiment import boot_once, prepare
from kdelta.experiment.runner import Job, workers
from kdelta.kernel import naming
from kdelta.kernel.symbols import NoSymbols
from kdelta.model import CellResult, Experiment, PlannedBoot, Profile, Progress
from kdelta.results import explain
from kdelta.store import connect
from kdelta.store.rows import ProfileRow
from kdelta.store.store import Store

Counted = tuple[int, ProfileRow]  # the case of a run, and its counts
Place = tuple[int, int, int]  # case, block and slot


def refuse(experiment: Experiment) -> None:
    """Raises:
    UserError: calls are not followed in guests such as ``experiment`` has.
    """
    if (cpus := experiment.machine.smp) > 1:
        raise UserError(f"calls are followed in guests with one CPU, and {experiment.id or 'these'} have {cpus}")
    if other := next((kernel for kernel in experiment.kernels if kernel.arch != "x86_64"), None):
        raise UserError(f"calls are followed on x86-64, and {other.label} is of {other.arch}")


def differing(store: Store, experiment: Experiment, results: Iterable[CellResult]) -> list[Counted]:
    """The runs behind each of ``results`` that differs, of the median seeds of both kernels; each once.

    Raises:
        UserError: one of them is not stored.
    """
    found: dict[Place, Counted] = {}
    index = {case.name: number for number, case in enumerate(experiment.cases)}
    for row in results:
        if row.metric == "instructions" and row.verdict in ("improved", "regressed"):
            for one in explain.rows_of(experiment, store, row):
                found[index[row.case], one.block, one.slot] = (index[row.case], one)
    return list(found.values())


def follow(
    store: Store, experiment: Experiment, counted: Sequence[Counted], progress: Progress
) -> dict[Place, Profile]:
    """The profiles of ``counted`` with their call stacks; those that had none are booted and stored, one by one.

    Raises:
        UserError: several CPUs; the kernel's functions or its entries are not known, or its image is gone.
        GuestError: the boot gave no counts. HostError: the store can only be read.
    """
    found = {(case, row.block, row.slot): row.profile for case, row in counted}
    missing = [(case, row) for case, row in counted if not row.profile.stacks]
    if not missing:
        return found
    refuse(experiment)
    connect.require_writable(store.address)
    job = prepare.prepare(experiment, store, progress)
    progress.step("following calls", 0, len(missing))
    with workers(min(job.workers, len(missing))) as pool:
        asked = {pool.submit(_followed, job, case, row): (case, row) for case, row in missing}
        for done, future in enumerate(as_completed(asked), 1):
            case, row = asked[future]
            profile, kernel = future.result(), experiment.kernels[row.kernel]
            if profile.functions != row.profile.functions:
                why = "kdelta or QEMU changed since"
                progress.note(f"{kernel.label}: counted otherwise than in {experiment.id}: {why}")
            store.keep_stacks(experiment.id, (row.block, row.slot), case, profile.stacks)
            found[case, row.block, row.slot] = replace(row.profile, stacks=profile.stacks)
            progress.step("following calls", done, len(missing))
    return found


def _followed(job: Job, case: int, row: ProfileRow) -> Profile:
    kernel = job.experiment.kernels[row.kernel]
    table = naming.load(kernel)
    if isinstance(table, NoSymbols):
        raise UserError(f"{kernel.label}: its calls cannot be followed without its functions: {table.why}")
    plan = PlannedBoot(block=row.block, slot=row.slot, kernel=row.kernel, mitigations=row.mitigations, cases=(case,))
    work = job.work(plan)
    if isinstance(work, str):
        raise UserError(f"{kernel.label}: {work}")
    if work.entries is None:
        raise UserError(f"{kernel.label}: calls are followed on x86-64 from Linux 4.17 on")
    raw = boot_once.boot_once(job.site, replace(work, functions=stacks.listing(table).encode("ascii")))
    run = next((run for run in job.runs(plan, raw) if run.case == case), None)
    if run is None or run.profile is None or not run.profile.stacks:
        why = (run.why if run is not None else "") or raw.why or "no counts"
        raise GuestError(f"{kernel.label}: its calls could not be followed: {why}")
    return run.profile
