# SPDX-License-Identifier: GPL-2.0-or-later
"""Call stacks of boots that were counted before: each is booted once more, now with its calls followed.

The boot is the same (kernel, seed, case), so its counts are: where they are not, kdelta or QEMU has changed since, and
that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.attribution import stacks
from kdelta.errors import GuestError, UserError
from kdelta.experiment import boot_once, prepare
from kdelta.experiment.runner import Job
from kdelta.kernel import naming
from kdelta.kernel.symbols import NoSymbols
from kdelta.model import Experiment, PlannedBoot, Profile, Progress
from kdelta.store import connect
from kdelta.store.rows import ProfileRow
from kdelta.store.store import Store


def follow(
    store: Store, experiment: Experiment, case: int, rows: Sequence[ProfileRow], progress: Progress
) -> dict[tuple[int, int], Profile]:
    """The profiles of ``rows`` with their call stacks, by block and slot; those that had none are booted and stored.

    Raises:
        UserError: several CPUs; the kernel's functions or its entries are not known, or its image is gone.
        GuestError: the boot gave no counts. HostError: the store can only be read.
    """
    found = {(row.block, row.slot): row.profile for row in rows}
    missing = [row for row in rows if not row.profile.stacks]
    if not missing:
        return found
    if (cpus := experiment.machine.smp) > 1:
        raise UserError(f"calls are followed in guests with one CPU, and those of {experiment.id} had {cpus}")
    connect.require_writable(store.address)
    job = prepare.prepare(experiment, store, progress)
    for row in missing:
        kernel = experiment.kernels[row.kernel]
        progress.step(f"following the calls of {experiment.cases[case].name} on {kernel.label}")
        plan = PlannedBoot(
            block=row.block, slot=row.slot, kernel=row.kernel, mitigations=row.mitigations, cases=(case,)
        )
        profile = _followed(job, plan, case)
        if profile.functions != row.profile.functions:
            progress.note(f"{kernel.label}: counted otherwise than in {experiment.id}: kdelta or QEMU changed since")
        store.keep_stacks(experiment.id, (row.block, row.slot), case, profile.stacks)
        found[row.block, row.slot] = replace(row.profile, stacks=profile.stacks)
    return found


def _followed(job: Job, plan: PlannedBoot, case: int) -> Profile:
    kernel = job.experiment.kernels[plan.kernel]
    table = naming.load(kernel)
    if isinstance(table, NoSymbols):
        raise UserError(f"{kernel.label}: its calls cannot be followed without its functions: {table.why}")
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
