# SPDX-License-Identifier: GPL-2.0-or-later
"""One boot of a machine under way: what is sent there and started, and what is heard of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import HostError
from kdelta.guest import protocol
from kdelta.lab import hearing, start
from kdelta.lab.begin import Load, begin, sends
from kdelta.lab.control import Control
from kdelta.machine.boot import write_file
from kdelta.machine.process import OUTPUT_LIMIT
from kdelta.model import Kernel, State

_SILENT_S = 15.0  # of the line, before the machine is asked whether it runs its own system again
_PANIC_S = 3.0  # in which a panic has said all
_GONE_S = 20.0  # without a line to listen to, after which nothing more is expected of a boot
_PEEK_S = 10.0  # for a machine to answer while it is listened to
_MARGIN_S = 60.0  # that a watchdog leaves us to end a boot ourselves
_RECORD_HEAD = 64  # bytes in which a record says what it is
MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}  # as uname(1) calls them


class Order(Struct, frozen=True, kw_only=True):
    """What one boot is to do. ``initramfs`` is the same for many boots, ``jobs`` an archive of its own behind it."""

    kernel: Kernel
    mitigations_off: bool
    initramfs: bytes
    jobs: bytes
    limit_s: float  # from the first record to the last
    program: Path | None = None  # to be run inside the installed system, with ``job_list`` and ``data``
    job_list: str = ""
    data: Mapping[str, Path] = {}


def boot_id(control: Control) -> str:
    """What tells the boot that answers on ssh from any other (random(4)).

    Raises:
        HostError: it is going down.
    """
    return control.run("cat /proc/sys/kernel/random/boot_id").strip()


class Boot:
    """One boot under way: what was started, and what came of it so far."""

    def __init__(self, control: Control, clock: Callable[[], float], order: Order, nonce: str) -> None:
        self.control, self.order, self._clock = control, order, clock
        self.cmdline = self._command_line(nonce)
        self.before = self.latest = boot_id(control)
        self.facts: dict[str, float | str] = {}
        self.line = bytearray()
        self.timed_out, self.dark, self.cut_short = False, False, ""
        self.first_sample_s: float | None = None
        self.began = self._deadline = self.reset_at = clock()
        self._spoken = False

    def _command_line(self, nonce: str) -> str:
        options, order = self.control.machine.options, self.order
        machine = " ".join(filter(None, [options.cmdline, *start.hardware_words(options.hardware)]))
        return start.command_line(options.console, order.mitigations_off, machine, order.kernel.cmdline, nonce)

    def started(self, folder: Path) -> tuple[str, ...]:
        """Send what is missing there, open the console, start the kernel; returns what describes it.

        Raises:
            HostError: the machine is of another architecture, its disk is full, it refuses the kernel.
        """
        options, kernel = self.control.machine.options, self.order.kernel
        there = self._folder()
        base, jobs = folder / "initramfs", folder / "jobs"
        write_file(base, self.order.initramfs)
        write_file(jobs, self.order.jobs)
        files = (Path(kernel.image_path), base, jobs)
        names = tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
        if sends(options.start):
            self._send(there, names, files)
        load = Load(
            arch=kernel.arch, kernel=files[0], initramfs=files[1:], cmdline=self.cmdline, there=there, names=names
        )
        self._begin(load)
        return (options.start, *names, self.cmdline)

    def _begin(self, load: Load) -> None:
        """Start it, heard from its first word on; its watchdog, where it has one, ends it if nobody else does."""
        options, last = self.control.machine.options, ""
        self.control.listening()
        if options.watchdog:
            seconds = math.ceil(options.start_limit_s + self.order.limit_s + _MARGIN_S)
            self.reset_at = self._clock() + seconds
            last = f"seconds={seconds}\n{options.watchdog}"
        begin(self.control, replace(load, last=last), self._clock)
        self.began = self._clock()
        self._deadline = self.began + options.start_limit_s

    def _folder(self) -> str:
        """Where files go there; its architecture is asked for first."""
        kernel = self.order.kernel
        machine, uid = self.control.run("uname -m; id -u").split()
        if machine != MACHINES[kernel.arch]:
            raise HostError(f"{self.control} is {machine}, and kernel {kernel.label} is of {kernel.arch}")
        return start.folder(uid)

    def said(self) -> hearing.Said:
        """Records and console."""
        return hearing.apart(bytes(self.line))

    def outcome(self) -> tuple[State, str]:
        """The state of it, and why."""
        kernel, said = self.order.kernel, self.said()
        return hearing.outcome(said, kernel, self.cmdline, self.before, self.timed_out, self.cut_short)

    def _send(self, there: str, names: tuple[str, ...], paths: tuple[Path, ...]) -> None:
        """Copy the files there, each under its sha256; those that are there whole are not sent again."""
        self.control.run(f"umask 077; mkdir -p {there} && find {there} -type f -mtime +14 -delete")
        for name, path in zip(names, paths, strict=True):
            check = f"cd {there} && [ -f {name} ] && echo '{name}  {name}' | sha256sum --check --status && touch {name}"
            if self.control.run(f"{check} && echo whole || true") != "whole":
                self.control.put(path, f"{there}/{name}")
                if self.control.run(f"{check} && echo whole || true") != "whole":
                    raise HostError(f"{self.control}: {path.name} did not arrive whole in {there}")

    def listen(self) -> None:
        """Until the last record, a panic, the limit, or the machine's own system answers again."""
        heard_at = self._clock()
        while not hearing.ended(bytes(self.line[-4096:])):
            now = self._clock()
            if now > self._deadline:
                self.timed_out = True
                return
            if len(self.line) > OUTPUT_LIMIT:
                self.cut_short = f"it wrote more than {OUTPUT_LIMIT >> 20} MiB"
                return
            data = self.control.heard(1.0)
            self.dark = self.control.deaf_s > _GONE_S
            if self.dark:
                self.cut_short = "its serial line went away"
                return
            if data:
                heard_at = now
                self._take(data, now)
            elif protocol.panic_of(bytes(self.line)) and now - heard_at > _PANIC_S:
                return
            elif now - heard_at > _SILENT_S:
                heard_at = now
                if self._own_system():
                    self.cut_short = "the machine started its own system again before the records were complete"
                    return

    def _take(self, data: bytes, now: float) -> None:
        self.line += data
        latest = bytes(self.line[-len(data) - _RECORD_HEAD :])
        if not self._spoken and hearing.spoken(latest):
            self._spoken, self._deadline = True, now + self.order.limit_s
        if self.first_sample_s is None and hearing.sampled(latest):
            self.first_sample_s = now - self.began

    def _own_system(self) -> bool:
        """Whether ssh answers, and it is not what was running before the start."""
        if not self.control.connected(_PEEK_S):
            return False
        try:
            return boot_id(self.control) != self.before
        except HostError:  # it is going down
            return False
        finally:
            self.control.disconnected()
