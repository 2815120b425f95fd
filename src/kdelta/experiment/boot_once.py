# SPDX-License-Identifier: GPL-2.0-or-later
"""The one way to boot: a job list and its files, on a kernel, at a site; what comes back is raw.

A site is QEMU on this machine, or with ``native`` this machine itself. Measured, traced and tested guests, and the KVM
trial, differ in their jobs and files alone; a guest whose instructions are counted also has the plugin, and starts
from a snapshot of its settled state where it can pause itself.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.guest import image
from kdelta.guest.jobs import JobList
from kdelta.kernel import intact
from kdelta.machine import boot, native, snapshot
from kdelta.machine.boot import RawBoot
from kdelta.machine.options import Accel, GuestSpec, Port
from kdelta.machine.probe import Qemu
from kdelta.model import Arch, Kernel, MachineOptions, Mitigations

# Boot-time work (crypto, deferred probes, RCU) settles in virtual time, which costs nothing with sleep=off.
SETTLE_MS = 10_000
_NOWHERE = Path("/folder-of-the-boot")  # stands for the private folder, which changes no count


class Site(Struct, frozen=True, kw_only=True):
    """Where boots happen. ``scratch`` holds their private folders, ``snapshots`` what settled guests are restored from.

    ``programs``: the guest's own program for every architecture at hand; ``data``: the folder of the workloads' data.
    """

    programs: Mapping[Arch, Path]
    data: Path
    scratch: Path
    snapshots: Path
    qemus: Mapping[Arch, Qemu] = {}
    accel: Accel = "tcg"
    port: Port = "uart"
    options: MachineOptions = MachineOptions()
    cpu: int | None = None  # timed guests keep to one core of the host

    @property
    def native(self) -> bool:
        """Whether it is the running machine itself, without a guest."""
        return self.options.native


class Work(Struct, frozen=True, kw_only=True):
    """What one boot does. ``data``: files of the site's; ``programs``: further ones by path in the guest, executable.

    With a ``plugin`` instructions are counted; ``hold_sites`` (attribution/holds.py) adds those between taking and
    releasing a lock.
    """

    kernel: Kernel
    jobs: JobList
    limit_s: float
    mitigations: Mitigations = "default"
    data: tuple[str, ...] = ()
    programs: Mapping[str, Path] = {}
    plugin: Path | None = None
    hold_sites: bytes | None = None


def boot_once(site: Site, work: Work) -> RawBoot:
    """Boot, run the jobs, read back what was said and counted.

    Raises:
        UserError: the kernel's image is not what it was resolved as, or did not stay so while it was booted.
        HostError: QEMU refused to run, or the disk is full.
    """
    if site.native:
        return _boot(site, work)
    intact.require(work.kernel)
    raw = _boot(site, work)
    intact.require(work.kernel)
    return raw


def _boot(site: Site, work: Work) -> RawBoot:
    with _folder(site) as folder:
        if site.native:
            program = site.programs[work.kernel.arch]
            return native.run(program, site.data, work.jobs.text(), Path(folder), work.limit_s)
        guest = _guest(site, work, Path(folder))
        if work.plugin is None:
            return boot.run(guest, _payload(site, work, work.jobs.text()), work.limit_s, cpu=site.cpu)
        if work.hold_sites is not None:
            guest = replace(guest, hold_sites=guest.path("sites"))
            boot.write_file(guest.path("sites"), work.hold_sites)
        return _counted(site, work, guest)


def identity(site: Site, work: Work) -> str:
    """Digest of all that an exact boot's counts depend on; 64 hex digits.

    Image, command line and mitigations, the guest's program, data and jobs (cases, repetitions, seed), QEMU and its
    arguments, the plugin. Labels, paths and the host are left out: they change no count.
    """
    guest = _guest(site, work, _NOWHERE)
    payload = _payload(site, work, work.jobs.text(settle_ms=SETTLE_MS))
    plugin = work.plugin.read_bytes() if work.plugin is not None else b""
    parts = (snapshot.key(guest, payload).encode(), hashlib.sha256(plugin).hexdigest().encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _folder(site: Site) -> tempfile.TemporaryDirectory[str]:
    try:
        site.scratch.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="boot-", dir=site.scratch)
    except OSError as error:
        raise HostError(f"cannot make a folder in {site.scratch}: {error.strerror}") from None


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
    )


def _payload(site: Site, work: Work, jobs: str) -> bytes:
    data = {name: site.data / name for name in work.data}
    return image.payload(site.programs[work.kernel.arch], data, jobs, work.programs)


def _counted(site: Site, work: Work, guest: GuestSpec) -> RawBoot:
    """One guest with the plugin: from its snapshot (made on first use), or cold where it cannot pause itself."""
    if guest.arch == "x86_64":
        settled = _payload(site, work, JobList(mode="exact").text(settle_ms=SETTLE_MS, snapshot=True))
        paused = replace(guest, hold_sites=None, snapshot_save=True)
        state = snapshot.ensure(paused, settled, site.snapshots, work.limit_s)
        if state is not None:
            return _restored(work, guest, state)
    cold = _payload(site, work, work.jobs.text(settle_ms=SETTLE_MS))
    return boot.run(replace(guest, plugin=work.plugin), cold, work.limit_s)


def _restored(work: Work, guest: GuestSpec, state: Path) -> RawBoot:
    boot.write_file(guest.path("jobs"), work.jobs.text().encode("ascii"))
    boot.write_file(guest.path("initramfs"), b"")
    fd = os.open(state, os.O_RDONLY)
    try:
        woken = replace(guest, plugin=work.plugin, incoming_fd=fd, jobs_in_fw_cfg=True)
        return snapshot.restore(woken, work.limit_s)
    finally:
        os.close(fd)
