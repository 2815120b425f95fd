# SPDX-License-Identifier: GPL-2.0-or-later
"""One boot of a machine that is no guest: send, start, listen, have it back; what it said is read as a guest's is.

Between boots the machine runs its own system, which is where commands go. A kernel under test is never asked for
anything: what it says comes over the serial line, and it ends by resetting the machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from kdelta import paths
from kdelta.errors import HostError
from kdelta.guest import protocol
from kdelta.lab import hearing, start
from kdelta.lab.begin import Load, begin, sends
from kdelta.lab.control import Control, opened
from kdelta.lab.describe import Described
from kdelta.machine.boot import RawBoot, write_file
from kdelta.machine.process import OUTPUT_LIMIT
from kdelta.model import Kernel

_SILENT_S = 15.0  # of the line, before the machine is asked whether it runs its own system again
_PANIC_S = 3.0  # in which a panic has said all
_GONE_S = 20.0  # without a line to listen to, after which nothing more is expected of a boot
_PEEK_S = 10.0  # for a machine to answer while it is listened to
_RECORD_HEAD = 64  # bytes in which a record says what it is
_MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}


class Order(Struct, frozen=True, kw_only=True):
    """What one boot is to do. ``initramfs`` is the same for many boots, ``jobs`` an archive of its own behind it."""

    kernel: Kernel
    mitigations_off: bool
    initramfs: bytes
    jobs: bytes
    limit_s: float  # from the first record to the last


class Machine:
    """A described machine; once it did not come back, it is set aside: no further boot is tried by this process."""

    def __init__(
        self,
        described: Described,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        nonce: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self.described, self._clock, self._sleep, self._nonce = described, clock, sleep, nonce
        self._aside = ""
        self._lock: BinaryIO | None = None

    def boot(self, order: Order, folder: Path) -> RawBoot:
        """Start the kernel there and listen until its program ends, or the limit; ``folder`` is private to this boot.

        Raises:
            HostError: the machine cannot be had: it does not answer, or refuses what it is asked for.
        """
        if self._aside:
            raise HostError(self._aside)
        self._lock = self._lock or held(self.described)
        with opened(self.described, self._clock, self._sleep) as control:
            _ready(control)
            return self._booted(_Boot(control, self._clock, order, self._nonce()), folder)

    def _booted(self, boot: _Boot, folder: Path) -> RawBoot:
        argv = boot.started(folder)
        boot.listen()
        said = hearing.apart(bytes(boot.line))
        state, why = hearing.outcome(said, boot.order.kernel, boot.cmdline, boot.before, boot.timed_out, boot.cut_short)
        elapsed_s = self._clock() - boot.began
        missing = _missing(boot.control, boot.before, at_once=boot.timed_out or boot.dark)
        if missing:
            self._aside = f"{boot.control} {missing}: it is set aside"
            why = "; ".join(filter(None, [why, f"it {missing}"]))
        return RawBoot(
            argv=argv,
            state=state,
            why=why,
            records=protocol.parse(said.stream).records,
            console=said.console,
            stream=said.stream,
            elapsed_s=elapsed_s,
            first_sample_s=boot.first_sample_s,
            qemu_log="",
        )


def identity(described: Described) -> dict[str, str]:
    """What a machine is (as machine/hostfacts.py says of a host), asked for over ssh.

    Raises:
        UserError: its description is wrong. HostError: it does not answer.
    """
    with held(described), opened(described) as control:
        _ready(control)
        model, cpus, release, arch = control.run(
            "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | grep . || uname -m; nproc; uname -r; uname -m"
        ).splitlines()
    return {"cpu": model, "cpus": cpus, "kernel": release, "arch": arch, "machine": described.name}


def held(described: Described) -> BinaryIO:
    """The lock of a machine, against other experiments of this user, until it is closed.

    Raises:
        HostError: another kdelta has it, or the cache cannot be written.
    """
    name = hashlib.sha256(f"{described.path}:{described.name}".encode()).hexdigest()[:32]
    path = paths.cache_dir() / "lab" / f"{name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("wb")
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise HostError(f"machine {described.name} is in use by another kdelta: wait for its end") from None
    return lock


def _ready(control: Control) -> None:
    """Have the machine's own system answer; the power is cycled once where it does not.

    It may be on its way back from what an interrupted experiment started, so it has as long as after any reset.

    Raises:
        HostError: it does not answer.
    """
    options = control.machine.options
    if control.connected(options.return_limit_s):
        return
    cycled = control.cycled()
    if not cycled or not control.connected(options.return_limit_s):
        also = "also not after its power was cycled" if cycled else "and its description has no power switch"
        raise HostError(f"{control} does not answer on ssh, {also}: it is set aside")


def _missing(control: Control, before: str, at_once: bool) -> str:
    """Wait until the machine's own system answers again: "", else what became of it.

    ``at_once``: it hangs, and its power is cycled without waiting.
    """
    control.disconnected()
    limit_s = control.machine.options.return_limit_s
    if not (at_once and control.cycled()):
        if _is_back(control, before, limit_s):
            return ""
        if at_once or not control.cycled():
            return f"did not come back within {limit_s:g} s, and its description has no power switch"
    if _is_back(control, before, limit_s):
        return ""
    return f"did not come back within {limit_s:g} s after its power was cycled"


def _is_back(control: Control, before: str, limit_s: float) -> bool:
    return control.connected(limit_s) and _boot_id(control) != before


def _boot_id(control: Control) -> str:
    return control.run("cat /proc/sys/kernel/random/boot_id").strip()


class _Boot:
    """One boot under way: what was started, and what came of it so far."""

    def __init__(self, control: Control, clock: Callable[[], float], order: Order, nonce: str) -> None:
        self.control, self.order, self._clock = control, order, clock
        options, kernel = control.machine.options, order.kernel
        self.cmdline = start.command_line(
            options.console, order.mitigations_off, options.cmdline, kernel.cmdline, nonce
        )
        self.before = _boot_id(control)
        self.line = bytearray()
        self.timed_out, self.dark, self.cut_short = False, False, ""
        self.first_sample_s: float | None = None
        self.began = self._deadline = clock()
        self._spoken = False

    def started(self, folder: Path) -> tuple[str, ...]:
        """Send what is missing there, open the console, start the kernel; returns what describes it.

        Raises:
            HostError: the machine is of another architecture, its disk is full, it refuses the kernel.
        """
        options, kernel = self.control.machine.options, self.order.kernel
        machine, uid = self.control.run("uname -m; id -u").split()
        if machine != _MACHINES[kernel.arch]:
            raise HostError(f"{self.control} is {machine}, and kernel {kernel.label} is of {kernel.arch}")
        there = start.folder(uid)
        base, jobs = folder / "initramfs", folder / "jobs"
        write_file(base, self.order.initramfs)
        write_file(jobs, self.order.jobs)
        files = (Path(kernel.image_path), base, jobs)
        names = tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
        if sends(options.start):
            self._send(there, names, files)
        self.control.listening()
        load = Load(
            arch=kernel.arch, kernel=files[0], initramfs=files[1:], cmdline=self.cmdline, there=there, names=names
        )
        begin(self.control, load, self._clock)
        self.began = self._clock()
        self._deadline = self.began + options.start_limit_s
        return (options.start, *names, self.cmdline)

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
            return _boot_id(self.control) != self.before
        except HostError:  # it is going down
            return False
        finally:
            self.control.disconnected()
