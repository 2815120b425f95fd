# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest, from files to raw output: write the payload, start QEMU, wait, read back what it said."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from kdelta.errors import HostError
from kdelta.guest import protocol
from kdelta.machine import plugin, process, qemu
from kdelta.machine.options import GuestSpec
from kdelta.model import BOOTING, Kernel, State

ENDED_INSIDE = "a process ended the guest"  # begins why it is failed, by the kernel's last word
_STARTS = ("BLK_DEV_INITRD", "BINFMT_ELF")  # the guest's program is an ELF file in an initramfs
_LAST_WORD = re.compile(rb"reboot: (?:Power down|Restarting system|System halted)|sysrq: Resetting")  # kernel/reboot.c
_TO_CONSOLE = re.compile(rb"^kd1 0 ", re.MULTILINE)  # the first record (guest/init.c, open_port)
_NO_PORT = (
    "the guest found no port for its records, and wrote them to the console: timed runs need CONFIG_SYSFS and "
    "CONFIG_VIRTIO_CONSOLE, or CONFIG_PROC_FS and a serial line besides the console's; exact ones need neither"
)


class RawBoot(Struct, frozen=True, kw_only=True):
    """What a boot left behind, and the state that follows from it.

    A boot is one guest, or several that each ran one of its cases from the same snapshot; ``counts``, ``holds`` and
    ``lines`` have what the plugin wrote in each that ended well. ``ended``: by job, what became of the others.
    """

    argv: tuple[str, ...]
    state: State
    why: str
    records: tuple[protocol.Record, ...]
    console: bytes
    stream: bytes
    counts: tuple[bytes | mmap.mmap, ...] = ()
    holds: tuple[bytes, ...] = ()
    lines: tuple[bytes | mmap.mmap, ...] = ()
    elapsed_s: float
    first_sample_s: float | None
    qemu_log: str
    ended: Mapping[int, tuple[State, str]] = {}
    killed: bool = False  # QEMU was, by a signal: a boot for a snapshot
    facts: Mapping[str, float | str] = {}  # of a machine that is not this one

    def end_of(self, job: int) -> tuple[State, str]:
        """What became of the guest that ran a job, and why."""
        return self.ended.get(job, (self.state, self.why))


def read_output(path: Path) -> bytes:
    """A guest's output file, clipped to the limit; empty when it was never made."""
    try:
        with path.open("rb") as file:
            return file.read(process.OUTPUT_LIMIT)
    except FileNotFoundError:
        return b""


def read_counts(path: Path) -> bytes | mmap.mmap:
    """The plugin's file, mapped: hundreds of intervals need not be in memory. The map outlives the file's name."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):  # ValueError: it is empty
        return b""


def _qemu_refused(status: int | None, log: str, console: bytes, stream: bytes) -> str:
    """QEMU's own complaint when it never started the guest."""
    if status and not console and not stream and log.strip():
        why = log.strip().splitlines()[-1]
        return f"{why}; {plugin.COUNTS_IN}" if "plugin requires API version" in why else why
    return ""


def _ended_inside(console: bytes, restored: bool) -> str:
    """That a process ended the guest, by the kernel's last word; "" where none did.

    A guest that is not restored restarts itself at its end (guest/init.c), also where its stream broke off.
    """
    found = _LAST_WORD.search(console)
    if found is None or (not restored and found[0] == b"reboot: Restarting system"):
        return ""
    return f"{ENDED_INSIDE} ({found[0].decode('ascii')})"


def _lacks(kernel: Kernel) -> str:
    """Options that its config is known to lack, and without which no program of ours is started."""
    off = [f"CONFIG_{option}" for option in _STARTS if kernel.config.get(option) == "n"]
    return f"; its config lacks {' and '.join(off)}, without which no guest starts" if off else ""


def collect(guest: GuestSpec, argv: tuple[str, ...], ended: process.Ended) -> RawBoot:
    """Read the boot's files and say what became of it.

    Raises:
        HostError: QEMU itself refused to run.
    """
    console, stream = read_output(guest.path("console")), read_output(guest.path("stream"))
    log = read_output(guest.path("qemu.log")).decode("utf-8", "replace")
    if refused := _qemu_refused(ended.status, log, console, stream):
        raise HostError(f"QEMU refused to run: {refused}")
    parsed = protocol.parse(stream)
    state, why = protocol.diagnose(parsed, console, ended.timed_out, ended.status)
    if state in ("lost", "hung") and (inside := _ended_inside(console, guest.restored)):
        state, why = "failed", inside
    if state in ("lost", "hung") and not parsed.records and _TO_CONSOLE.search(console):
        state, why = "failed", _NO_PORT
    if state in ("panicked", "hung") and not parsed.records and not guest.restored:
        why = BOOTING + why + _lacks(guest.kernel)  # a guest says who it is as soon as it can
    if ended.flooded:
        own, plugin = process.OUTPUT_LIMIT >> 20, process.COUNTS_LIMIT >> 30
        state, why = "failed", f"stopped: the guest wrote more than {own} MiB, or had the plugin write {plugin} GiB"
    return RawBoot(
        argv=argv,
        state=state,
        why=why,
        records=parsed.records,
        console=console,
        stream=stream,
        counts=(read_counts(guest.path("counts")),),
        holds=(read_output(guest.path("holds")),),
        lines=(read_counts(guest.path("lines")),),
        elapsed_s=ended.elapsed_s,
        first_sample_s=ended.first_sample_s,
        qemu_log=log,
    )


def merged(parts: Mapping[int, RawBoot]) -> RawBoot:
    """The guests of one boot, by the job that each ran, as one.

    One that did not end well costs its own job; where none did, the boot is what became of the first.
    """
    guests = list(parts.values())
    whole = {job: part for job, part in parts.items() if part.state == "ok"}
    stream = protocol.joined({job: part.stream for job, part in whole.items()}) if whole else guests[0].stream
    first = tuple(record for record in guests[0].records if isinstance(record, protocol.Hello))
    return RawBoot(
        argv=guests[0].argv,
        state="ok" if whole else guests[0].state,
        why="" if whole else guests[0].why,
        records=protocol.parse(stream).records if whole else first,
        console=b"".join(part.console for part in guests),
        stream=stream,
        counts=tuple(file for part in whole.values() for file in part.counts),
        holds=tuple(file for part in whole.values() for file in part.holds),
        lines=tuple(file for part in whole.values() for file in part.lines),
        elapsed_s=sum(part.elapsed_s for part in guests),
        first_sample_s=guests[0].first_sample_s,
        qemu_log="".join(part.qemu_log for part in guests),
        ended={job: (part.state, part.why) for job, part in parts.items() if part.state != "ok"},
    )


def wait(
    running: process.Running, guest: GuestSpec, limit_s: float, given_up: Callable[[], bool] | None = None
) -> process.Ended:
    """Wait for the guest's end, its time limit or the limits of its files, or until it is ``given_up``."""
    stream, console, counts = (guest.path(name) for name in ("stream", "console", "counts"))
    sampled = not guest.restored
    return process.wait(
        running, stream=stream, console=console, counts=counts, limit_s=limit_s, sampled=sampled, given_up=given_up
    )


def run(guest: GuestSpec, payload: bytes, limit_s: float, cpu: int | None = None) -> RawBoot:
    """Boot ``guest`` with the initramfs ``payload`` and wait for its end."""
    write_file(guest.path("initramfs"), payload)
    argv = tuple(qemu.argv(guest))
    with process.started(argv, guest.path("qemu.log"), cpu=cpu, folder=guest.folder) as running:
        ended = wait(running, guest, limit_s)
    return collect(guest, argv, ended)


def write_file(path: Path, content: bytes) -> None:
    """Write one of the boot's files.

    Raises:
        HostError: the disk is full or the directory is gone.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}; free some space or set TMPDIR") from None
