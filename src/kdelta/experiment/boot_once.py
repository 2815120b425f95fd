# SPDX-License-Identifier: GPL-2.0-or-later
"""The one way to boot: a job list and its files, on a kernel, at a site; what comes back is raw.

A site is QEMU on this machine, with ``native`` this machine itself, or a machine of a lab. Measured, traced and tested
guests, and the KVM trial, differ in their jobs and files alone; where instructions are counted, the guest also has the
plugin, and each job gets a guest of its own, from the same snapshot where the kernel can be paused for one, else booted
cold.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from kdelta.errors import HostError, UserError
from kdelta.experiment.forks import Forks
from kdelta.experiment.work import CannotPause, Site, Work
from kdelta.guest import image
from kdelta.guest.jobs import JobList
from kdelta.kernel import intact
from kdelta.lab.boot import Order
from kdelta.machine import boot, deaths, folders, native, orders, served, snapshot, turns
from kdelta.machine.boot import RawBoot
from kdelta.machine.options import GuestSpec
from kdelta.machine.patience import not_in_time

# Boot-time work (crypto, deferred probes, RCU) settles in virtual time, which costs nothing with sleep=off.
SETTLE_MS = 10_000
# Jobs of a boot that shares no guest with others from which counters pay from the start (163: a third less CPU time).
_MANY = 16
_BELIEVED = ("ok", "hung")  # of a forked guest; one that stands still is "lost" (machine/served.py)
_ASIDE = 4  # guests that have rehearsed, where a boot has no further one to share them with
_APART = 5  # seeds until the first look
_NOWHERE = Path("/folder-of-the-boot")  # stands for the private directory, which changes no count


def boot_once(site: Site, work: Work) -> RawBoot:
    """Boot, run the jobs, read back what was said and counted.

    Raises:
        UserError: the kernel's image is not what it was resolved as, or did not stay so while it was booted.
        HostError: QEMU refused to run, or the disk is full.
        CannotPause: a guest of counts, where all are to be ``alike``.
    """
    if site.native:
        return _boot(site, work)
    intact.require(work.kernel)
    raw = _boot(site, work)
    intact.require(work.kernel)
    return raw


def boot_each(site: Site, works: Sequence[Work]) -> list[RawBoot]:
    """Several exact works, as ``boot_once`` does them one by one, but in the time of fewer boots.

    Those of one job that differ in it alone share what a guest does before it knows its job.

    Raises:
        UserError, HostError: as ``boot_once``.
    """
    found: dict[int, RawBoot] = {}
    for index, work in enumerate(works):
        if index in found:
            continue
        like = [other for other in range(index, len(works)) if other not in found and _alike(work, works[other])]
        if len(like) < 2:
            found[index] = boot_once(site, work)
            continue
        intact.require(work.kernel)
        guests = _guests(site, _together([works[other] for other in like]))
        intact.require(work.kernel)
        for job, other in enumerate(like):  # of a guest that never spoke, no other was booted
            found[other] = guests[job] if job in guests else boot_once(site, works[other])
    return [found[index] for index in range(len(works))]


def _alike(one: Work, other: Work) -> bool:
    bare = {"jobs": JobList(mode="exact"), "limit_s": 0.0, "job_limits_s": {}, "wall_limits_s": {}}
    head = replace(one.jobs, lines=()) == replace(other.jobs, lines=())
    single = all(len(work.jobs.apart()) == 1 for work in (one, other))
    return single and head and replace(one, **bare) == replace(other, **bare)


def _together(works: Sequence[Work]) -> Work:
    """One work of all their jobs, numbered as they come."""

    def by_job(limits: Sequence[Mapping[int, float]]) -> dict[int, float]:
        return {job: limit_s for job, of_one in enumerate(limits) for limit_s in of_one.values()}

    return replace(
        works[0],
        jobs=JobList.joined([work.jobs for work in works]),
        limit_s=max(work.limit_s for work in works),
        job_limits_s=by_job([work.job_limits_s for work in works]),
        wall_limits_s=by_job([work.wall_limits_s for work in works]),
    )


def _boot(site: Site, work: Work) -> RawBoot:
    if work.plugin is not None and not site.native:
        return _counted(site, work)
    with folders.private(site.scratch) as folder:
        if site.native:
            program = site.programs[work.kernel.arch]
            return native.run(program, work.files, work.jobs.text(), folder, work.limit_s, site.options.hardware)
        if site.lab is not None:
            return site.lab.boot(_order(site, work, site.lab.described.options.tty), folder)
        guest = _guest(site, work, folder)
        return boot.run(guest, _payload(site, work, work.jobs.text()), work.limit_s, cpu=site.cpu)


def identity(site: Site, work: Work) -> str:
    """Digest of all that an exact boot's counts depend on; 64 hex digits.

    Image, command line and mitigations, the guest's program, data and jobs (cases, repetitions, seed), QEMU and its
    arguments, the plugin. Labels, paths and the host are left out: they change no count.
    """
    guest = _guest(site, work, _NOWHERE)
    content = _content(site, work, work.jobs.text(settle_ms=SETTLE_MS, turns_ms=_turns_ms(site)))
    plugin = work.plugin.read_bytes() if work.plugin is not None else b""
    parts = [snapshot.key(guest, content).encode(), hashlib.sha256(plugin).hexdigest().encode()]
    if site.options.cold:
        parts.append(b"cold")
    if site.options.smp > 1:
        parts.append(f"turns of {site.options.turn_ns} ns, {turns.EARLIER_MS} ms early".encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _scatter(site: Site, work: Work) -> int:
    """Where the kernel's objects lie: on several CPUs each seed has a boot of its own, with other random numbers."""
    return work.jobs.seed if work.plugin is not None and site.options.smp > 1 else 0


def _turns_ms(site: Site) -> int:
    return turns.AFTER_MS if site.options.smp > 1 else 0


def _guest(site: Site, work: Work, folder: Path) -> GuestSpec:
    """The guest without its plugin."""
    qemu = site.qemus[work.kernel.arch]
    return GuestSpec(
        kernel=work.kernel,
        mode="timed" if work.plugin is None else "exact",
        accel=site.accel if work.plugin is None else "tcg",
        options=site.options,
        mitigations=work.mitigations,
        qemu=qemu.path,
        qemu_version=qemu.version,
        folder=folder,
        port=site.port,
        seed=_scatter(site, work) or 1,
    )


def _order(site: Site, work: Work, port: str) -> Order:
    """Raises:
    UserError: files of a program, or of memory pressure, which are put where the installed system has its own.
    """
    if site.options.in_system and (work.programs or work.trees):
        raise UserError("--in-system runs cases alone: programs and --pressure need kdelta's initramfs; leave it out")
    return Order(
        kernel=work.kernel,
        mitigations_off=work.mitigations == "off",
        initramfs=b"" if site.options.in_system else _payload(site, work, None),
        jobs=image.jobs_archive(work.jobs.text(port=port)),
        limit_s=work.limit_s,
        program=site.programs[work.kernel.arch] if site.options.in_system else None,
        job_list=work.jobs.text(),
        data=work.files,
    )


def _payload(site: Site, work: Work, jobs: str | None) -> bytes:
    return image.payload(site.programs[work.kernel.arch], work.files, jobs, work.programs, work.trees)


def _content(site: Site, work: Work, jobs: str) -> bytes:
    return image.content(site.programs[work.kernel.arch], work.files, jobs, work.programs, work.trees)


def _counted(site: Site, work: Work) -> RawBoot:
    """The guests of all its jobs as one boot; what each said as number 0 has the job's own number there."""
    try:
        return boot.merged(_guests(site, work))
    except snapshot.Removed:
        return boot.merged(_guests(site, work))


def _guests(site: Site, work: Work) -> dict[int, RawBoot]:
    """Each job in a guest of its own, from the snapshot (made on first use) that is the same for all of its seed.

    Where the guest cannot pause itself, each boots cold; none does where the first said nothing. Cold ones count
    otherwise (pidfd_open by 1.3 %), so what was killed is no reason for it.

    Raises:
        HostError: it has several CPUs and cannot pause itself, so that nobody can set their turns.
        CannotPause: all are to be ``alike``.
    """
    apart = work.jobs.apart()
    pausable = work.kernel.arch == "x86_64" and not site.options.cold
    saved = _snapshot(site, work) if pausable else None
    if isinstance(saved, RawBoot):
        if saved.state in deaths.DEAD or saved.killed:
            return {next(iter(apart)): saved}
        if site.alike and site.options.smp == 1:
            raise CannotPause(work.kernel)
        saved = None
    if saved is None and site.options.smp > 1:
        why = "its guest cannot be paused, so several CPUs are not counted"
        raise HostError(f"{work.kernel.label}: {why}; add --timed")
    with snapshot.used_once(saved) if saved is not None and site.options.smp > 1 else contextlib.nullcontext():
        return _of_snapshot(site, work, saved, apart)


def _of_snapshot(
    site: Site, work: Work, saved: snapshot.Saved | None, apart: Mapping[int, JobList]
) -> dict[int, RawBoot]:
    """The guests of the jobs: forked from one that is restored, restored each, or, without a snapshot, booted."""
    found: dict[int, RawBoot] = {}
    told = {job: jobs for job, jobs in apart.items() if _takes_orders(site, work, jobs)}
    if saved is not None and (len(told) > 1 or site.forks is not None):
        found = _served(site, work, saved, told)
    for job, jobs in apart.items():
        if job in found:
            continue
        alone = work.alone(job, jobs, saved is not None)
        raw = _cold(site, alone) if saved is None else _restored(site, alone, saved)
        found[job] = raw
        if saved is None and len(found) == 1 and not raw.records:
            break
    if saved is not None:  # what the kernel said as it booted is said once, not for each guest that came of it
        first = next(iter(apart))
        found[first] = replace(found[first], console=saved.console() + found[first].console)
    return found


def _takes_orders(site: Site, work: Work, jobs: JobList) -> bool:
    """Whether a restored guest is told its jobs once it is perturbed; what comes to several CPUs moves their turns."""
    short = len(jobs.text()) <= orders.LIMIT
    return site.options.smp == 1 and short and orders.are_taken(site.qemus[work.kernel.arch].path)


def _cold(site: Site, work: Work) -> RawBoot:
    with folders.private(site.scratch) as folder:
        cold = _payload(site, work, work.jobs.text(settle_ms=SETTLE_MS))
        return boot.run(_with_plugin(work, _guest(site, work, folder)), cold, work.limit_s)


def _snapshot(site: Site, work: Work) -> snapshot.Saved | RawBoot:
    settled = JobList(mode="exact").text(settle_ms=SETTLE_MS, snapshot=True, scatter=_scatter(site, work))
    with folders.private(site.scratch) as folder:
        paused = replace(_guest(site, work, folder), snapshot_save=True, plugin=work.plugin)
        content = _content(site, work, settled)
        boot_s = site.options.boot_limit_s * max(1.0, site.options.smp / 8)  # CPU s: 4 on 4 CPUs, 14 on 24
        return snapshot.ensure(paused, content, lambda: _payload(site, work, settled), site.snapshots, boot_s)


def _with_plugin(work: Work, guest: GuestSpec) -> GuestSpec:
    """``guest`` with the plugin, and with its files of what the plugin watches."""
    names = ("hold_sites", "entries", "functions", "kernel_facts")
    watched: dict[str, bytes | None] = {name: getattr(work, name) for name in names}
    paths = {name: guest.path(name) for name, text in watched.items() if text is not None}
    for name, path in paths.items():
        boot.write_file(path, watched[name] or b"")
    return replace(guest, plugin=work.plugin, **paths)


def _served(site: Site, work: Work, saved: snapshot.Saved, told: Mapping[int, JobList]) -> dict[int, RawBoot]:
    """The guests of a boot, forked from one; those that did not end well are left out, to be tried alone."""
    shared = site.forks is not None
    with contextlib.ExitStack() as ours:
        forks = site.forks or ours.enter_context(Forks(_ASIDE))

        def one(job: int) -> RawBoot | None:
            alone = work.alone(job, told[job], True)
            try:
                raw = _forked(site, alone, saved, forks, counters=shared or len(told) >= _MANY)
            except served.NotForked as error:
                if forks.is_closed:
                    raise
                forks.failed.append(str(error))
                return None
            if raw.state in _BELIEVED:
                return raw
            forks.failed.append(f"{raw.state}: {raw.why}" if raw.why else raw.state)
            return None

        jobs = _spread(list(told), work.jobs.seed)
        guests = [one(job) for job in jobs] if site.slots is None else site.slots.each(one, jobs)
    found = dict(zip(jobs, guests, strict=True))
    return {job: raw for job in told if (raw := found[job]) is not None}


def _spread(jobs: list[int], seed: int) -> list[int]:
    """Boots of one kernel that are under way at once begin at other jobs: none waits for the rehearsal of another."""
    at = seed % _APART * len(jobs) // _APART
    return jobs[at:] + jobs[:at]


def _forked(site: Site, work: Work, saved: snapshot.Saved, forks: Forks, *, counters: bool) -> RawBoot:
    """The guest of one job and seed, forked from one that has rehearsed it.

    Raises:
        NotForked: QEMU could not be forked, or the guest ended in its rehearsal.
    """

    @contextlib.contextmanager
    def server() -> Iterator[served.Server]:
        with folders.private(site.scratch) as folder:
            guest = replace(_ordered(site, work, folder), counters_from_start=counters)
            with served.server(guest, saved, work.limit_s) as server:
                yield server

    watched = (work.plugin, work.hold_sites, work.entries, work.functions, work.kernel_facts, counters)
    text = _unseeded(work.jobs)
    whole = bool(work.wall_limits_s)  # the user's word
    with forks.rehearsed((saved, watched), text, server, work.limit_s, whole=whole) as guest:
        return guest.run(work.jobs.seed)


def _ordered(site: Site, work: Work, folder: Path) -> GuestSpec:
    """A guest to restore that knows no job."""
    guest = replace(_guest(site, work, folder), restored=True, jobs_in_fw_cfg=True)
    boot.write_file(guest.path("jobs"), _unseeded(replace(work.jobs, lines=())))
    boot.write_file(guest.path("initramfs"), b"")
    return _with_plugin(work, guest)


def _unseeded(jobs: JobList) -> bytes:
    """As it is told before the seed is."""
    return replace(jobs, seed=0).text().encode("ascii")


def _restored(site: Site, work: Work, saved: snapshot.Saved) -> RawBoot:
    with folders.private(site.scratch) as folder:
        guest = _ordered(site, work, folder)
        if _takes_orders(site, work, work.jobs):
            guest = replace(guest, order=guest.path("order"))
            boot.write_file(guest.path("order"), served.seed_text(work.jobs.seed) + b"\n" + _unseeded(work.jobs))
        else:
            text = work.jobs.text(turns_ms=_turns_ms(site))
            boot.write_file(guest.path("jobs"), text.encode("ascii"))
        raw = snapshot.restore(guest, saved, work.limit_s)
    return replace(raw, why=not_in_time(work.limit_s)) if raw.state == "hung" else raw
