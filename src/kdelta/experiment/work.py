# SPDX-License-Identifier: GPL-2.0-or-later
"""What a boot does (its work), and where it happens (its site); boot_once.py makes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.experiment.forks import Forks
from kdelta.guest.jobs import JobList
from kdelta.lab.boot import Machine
from kdelta.machine.options import Accel, Port
from kdelta.machine.probe import Qemu
from kdelta.machine.slots import Slots
from kdelta.model import Arch, Kernel, MachineOptions, Mitigations


class CannotPause(HostError):
    """The guest of a kernel cannot be paused for a snapshot: no access to ports (lockdown, CONFIG_X86_IOPL_IOPERM)."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(f"{kernel.label}: its guest cannot be paused (lockdown, or no CONFIG_X86_IOPL_IOPERM)")


class Site(Struct, frozen=True, kw_only=True):
    """Where boots happen. ``scratch`` holds their private directories, ``snapshots`` the snapshots of settled guests.

    ``programs``: the guest's own program for every architecture at hand. ``alike``: a guest that cannot be paused is an
    error, not booted cold: it would stand beside restored ones.
    """

    programs: Mapping[Arch, Path]
    scratch: Path
    snapshots: Path
    qemus: Mapping[Arch, Qemu] = {}
    accel: Accel = "tcg"
    port: Port = "uart"
    options: MachineOptions = MachineOptions()
    cpu: int | None = None  # timed guests keep to one core of the host
    lab: Machine | None = None
    slots: Slots | None = None  # for guests of counts, over all boots under way; without, a boot has one at a time
    forks: Forks | None = None  # what boots that differ in their seeds share
    alike: bool = False

    @property
    def native(self) -> bool:
        """Whether it is the running machine itself, without a guest."""
        return self.options.native


class Work(Struct, frozen=True, kw_only=True):
    """What one boot does. ``data``: the workloads' files by name in the guest; ``programs``: further ones, executable.

    ``own``: files like ``data`` that its cases alone need. In all other guests they would be names and inodes more,
    which moved pidfd_open of 6.12 by 0.8 %.

    With a ``plugin`` instructions are counted; ``hold_sites`` (attribution/holds.py) adds those between taking and
    releasing a lock, ``entries`` (attribution/entries.py) those of each system call, and with them ``functions``
    (attribution/stacks.py) those of each call stack; ``kernel_facts`` (attribution/callers.py) is what lines that move
    are named by. ``job_limits_s``: the limit of a job, by its number, where it has a guest of its own;
    ``wall_limits_s``: where that one is restored.
    """

    kernel: Kernel
    jobs: JobList
    limit_s: float
    mitigations: Mitigations = "default"
    data: Mapping[str, Path] = {}
    own: Mapping[str, Path] = {}
    programs: Mapping[str, Path] = {}
    trees: tuple[Path, ...] = ()  # archives that the initramfs ends with
    plugin: Path | None = None
    hold_sites: bytes | None = None
    entries: bytes | None = None
    functions: bytes | None = None
    kernel_facts: bytes | None = None
    job_limits_s: Mapping[int, float] = {}
    wall_limits_s: Mapping[int, float] = {}

    @property
    def files(self) -> dict[str, Path]:
        """All files by name in the guest."""
        return {**self.data, **self.own}

    def alone(self, job: int, jobs: JobList, restored: bool) -> Work:
        """The work of the guest that has one job."""
        limit_s = self.job_limits_s.get(job, self.limit_s)
        return replace(
            self, jobs=jobs, limit_s=min(limit_s, self.wall_limits_s.get(job, limit_s)) if restored else limit_s
        )
