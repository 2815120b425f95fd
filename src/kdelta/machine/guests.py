# SPDX-License-Identifier: GPL-2.0-or-later
"""Planned boots -> raw boots: in a timed guest, in an exact guest, or on the running machine.

``Site`` holds what is the same for all boots of an experiment; each ``run_*`` takes one planned boot.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kdelta.errors import HostError
from kdelta.guest import image
from kdelta.guest.jobs import jobs_text
from kdelta.machine import boot, native, snapshot
from kdelta.machine.options import Accel, GuestSpec, Port
from kdelta.machine.probe import Qemu
from kdelta.model import Arch, Case, Effort, Experiment, PlannedBoot

# Boot-time work (crypto, deferred probes, RCU) settles in virtual time, which costs nothing with sleep=off.
SETTLE_MS = 10_000


class Site(Struct, frozen=True, kw_only=True):
    """Where an experiment's boots happen. Paths: ``tmp`` for private folders, ``cache`` for snapshots."""

    experiment: Experiment
    efforts: Mapping[int, Effort]  # by case index
    exact_ops: Mapping[int, int]
    data: Mapping[str, Path]  # data files of all workloads
    data_folder: Path
    programs: Mapping[str, Path] = {}  # further files of timed guests: path in the guest -> file
    binaries: Mapping[Arch, Path]
    qemus: Mapping[Arch, Qemu]
    accel: Accel = "tcg"
    port: Port = "uart"
    plugin: Path | None = None
    hold_sites: Mapping[int, Path] = {}  # by kernel: where its locks are taken; counts holds where there
    cache: Path
    tmp: Path
    cpu: int | None = None  # timed guests keep to one core of the host


def _cases(site: Site, plan: PlannedBoot) -> dict[int, Case]:
    indexes = plan.cases or tuple(range(len(site.experiment.cases)))
    return {index: site.experiment.cases[index] for index in indexes}


def _limit_s(site: Site, cases: Mapping[int, Case]) -> float:
    runs = sum(site.efforts[i].limit_ms for i in cases) / 1000
    return site.experiment.machine.boot_limit_s + min(runs, 20 * site.experiment.machine.boot_limit_s)


def _jobs(site: Site, cases: Mapping[int, Case], seed: int, settle_ms: int = 0) -> str:
    return jobs_text(
        cases,
        mode=site.experiment.mode,
        efforts=site.efforts,
        exact_ops=site.exact_ops,
        seed=seed,
        settle_ms=settle_ms,
    )


def _spec(site: Site, plan: PlannedBoot, folder: Path) -> GuestSpec:
    kernel = site.experiment.kernels[plan.kernel]
    qemu = site.qemus[kernel.arch]
    return GuestSpec(
        kernel=kernel,
        mode=site.experiment.mode,
        accel="tcg" if site.experiment.mode == "exact" else site.accel,
        options=site.experiment.machine,
        mitigations=plan.mitigations,
        qemu=qemu.path,
        qemu_version=qemu.version,
        folder=folder,
        port=site.port,
        hold_sites=site.hold_sites.get(plan.kernel) if site.plugin is not None else None,
    )


def _folder(site: Site) -> tempfile.TemporaryDirectory[str]:
    try:
        site.tmp.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="boot-", dir=site.tmp)
    except OSError as error:
        raise HostError(f"cannot make a folder in {site.tmp}: {error.strerror}") from None


def run_timed(site: Site, plan: PlannedBoot) -> boot.RawBoot:
    """One timed guest: cold boot, all its cases, power off."""
    with _folder(site) as folder:
        guest = _spec(site, plan, Path(folder))
        cases = _cases(site, plan)
        payload = image.payload(
            site.binaries[guest.arch], site.data, _jobs(site, cases, seed=plan.block + 1), site.programs
        )
        return boot.run(guest, payload, _limit_s(site, cases), cpu=site.cpu)


def run_exact(site: Site, plan: PlannedBoot) -> boot.RawBoot:
    """One exact guest: from its snapshot (made on first use), or cold where the guest cannot pause itself."""
    cases = _cases(site, plan)
    seed = site.experiment.seed * 1000 + plan.block + 1
    with _folder(site) as folder:
        guest = _spec(site, plan, Path(folder))
        limit_s = _limit_s(site, cases)
        if guest.arch == "x86_64":
            settled = jobs_text({}, mode="exact", efforts={}, exact_ops={}, settle_ms=SETTLE_MS, snapshot=True)
            payload = image.payload(site.binaries[guest.arch], site.data, settled)
            paused = _evolve(guest, snapshot_save=True)
            state = snapshot.ensure(paused, payload, site.cache / "snapshots", limit_s)
            if state is not None:
                return _restored(site, guest, state, _jobs(site, cases, seed), limit_s)
        payload = image.payload(site.binaries[guest.arch], site.data, _jobs(site, cases, seed, SETTLE_MS))
        return boot.run(_evolve(guest, plugin=site.plugin), payload, limit_s)


def identity(site: Site, plan: PlannedBoot) -> str:
    """Digest of all that an exact boot's counts depend on; 64 hex digits.

    Image, command line and mitigations, the guest's binary, data and jobs (cases, repetitions, seed), QEMU and its
    arguments, the plugin. Labels, paths and the host are left out: they change no count.
    """
    cases = _cases(site, plan)
    guest = _spec(site, plan, Path("/folder-of-the-boot"))
    jobs = _jobs(site, cases, site.experiment.seed * 1000 + plan.block + 1, SETTLE_MS)
    payload = image.payload(site.binaries[guest.arch], site.data, jobs)
    plugin = site.plugin.read_bytes() if site.plugin is not None else b""
    parts = (snapshot.key(guest, payload).encode(), hashlib.sha256(plugin).hexdigest().encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _restored(site: Site, guest: GuestSpec, state: Path, jobs: str, limit_s: float) -> boot.RawBoot:
    boot.write_file(guest.path("jobs"), jobs.encode("ascii"))
    boot.write_file(guest.path("initramfs"), b"")
    fd = os.open(state, os.O_RDONLY)
    try:
        return snapshot.restore(_evolve(guest, plugin=site.plugin, incoming_fd=fd, jobs_in_fw_cfg=True), limit_s)
    finally:
        os.close(fd)


def _evolve(guest: GuestSpec, **changes: object) -> GuestSpec:
    fields = {name: getattr(guest, name) for name in guest.__struct_fields__}
    return GuestSpec(**(fields | changes))


def run_native(site: Site, plan: PlannedBoot) -> boot.RawBoot:
    """One start of the harness on the running machine."""
    with _folder(site) as folder:
        cases = _cases(site, plan)
        jobs = _jobs(site, cases, seed=plan.block + 1)
        return native.run(site.binaries["x86_64"], site.data_folder, jobs, Path(folder), _limit_s(site, cases))
