# SPDX-License-Identifier: GPL-2.0-or-later
"""One boot of a machine that is no guest: send, start, listen, have it back; what it said is read as a guest's is.

Between boots the machine runs its own system, which is where commands go. A kernel under test is never asked for
anything: what it says comes over the serial line, and it ends by resetting the machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from kdelta import locks, paths
from kdelta.errors import HostError
from kdelta.guest import protocol
from kdelta.lab.control import Control, opened
from kdelta.lab.describe import Described
from kdelta.lab.in_system import InSystem
from kdelta.lab.one_boot import Boot, Order, boot_id
from kdelta.machine import settings
from kdelta.machine.boot import RawBoot

__all__ = ["Machine", "Order", "held", "identity"]
_GOING_DOWN_S = 2.0


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

    def free(self) -> None:
        """Let other experiments have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

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
            made = InSystem if order.program else Boot
            return self._booted(made(control, self._clock, order, self._nonce()), folder)

    def _booted(self, boot: Boot, folder: Path) -> RawBoot:
        argv = boot.started(folder)
        boot.listen()
        said, (state, why) = boot.said(), boot.outcome()
        elapsed_s = self._clock() - boot.began
        missing = _missing(boot, at_once=boot.timed_out or boot.dark, clock=self._clock)
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
            facts=boot.facts,
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
    found = {"cpu": model, "cpus": cpus, "kernel": release, "arch": arch, "machine": described.name}
    return found | settings.told(described.options.hardware)


def held(described: Described) -> BinaryIO:
    """The lock of a machine, against other experiments of this user, until it is closed.

    Raises:
        HostError: another kdelta has it, or the cache cannot be written.
    """
    name = hashlib.sha256(f"{described.path}:{described.name}".encode()).hexdigest()[:32]
    path = paths.cache_dir() / "lab" / f"{name}.lock"
    try:
        return locks.take(path)
    except locks.Taken as other:
        who = f"another kdelta (process {other.process})"
        raise HostError(f"machine {described.name} is in use by {who}: wait for its end") from None


def _ready(control: Control) -> None:
    """Have the machine's own system answer; the power is cycled once where it does not, and not where it refuses us.

    It may be on its way back from what an interrupted experiment started, so it has as long as after any reset.

    Raises:
        HostError: it does not answer, or does not let us in.
    """
    options = control.machine.options
    watchdog_s = options.start_limit_s if options.watchdog else 0.0
    if control.connected(options.return_limit_s + watchdog_s):
        return
    said = f" ({control.unheard})" if control.unheard else ""
    if control.refused:
        raise HostError(f"{control} does not let us in{said}: user, key or password of its description is wrong")
    silent = f"{control} does not answer on {'adb' if options.adb else 'ssh'}{said}"
    try:
        cycled = control.cycled()
    except HostError as error:
        raise HostError(f"{silent}; {error}") from None
    if cycled and control.connected(options.return_limit_s):
        return
    also = "also not after its power was cycled" if cycled else "and its description has no power switch"
    raise HostError(f"{silent}, {also}: it is set aside")


def _missing(boot: Boot, at_once: bool, clock: Callable[[], float]) -> str:
    """Wait until the machine's own system answers again after ``boot``: "", else what became of it.

    ``at_once``: it hangs, and its power is cycled without waiting; without a switch its watchdog is waited for.
    """
    control, before = boot.control, boot.latest
    control.disconnected()
    limit_s = control.machine.options.return_limit_s
    if not (at_once and control.cycled()):
        waits_s = max(0.0, boot.reset_at - clock()) + limit_s
        if _is_back(control, before, waits_s, clock):
            return ""
        if at_once or not control.cycled():
            return f"did not come back within {waits_s:.0f} s, and its description has no power switch"
    if _is_back(control, before, limit_s, clock):
        return ""
    return f"did not come back within {limit_s:g} s after its power was cycled"


def _is_back(control: Control, before: str, limit_s: float, clock: Callable[[], float]) -> bool:
    end = clock() + limit_s
    while True:
        if control.connected(max(0.0, end - clock())):
            with contextlib.suppress(HostError):  # it is going down
                if boot_id(control) != before:
                    return True
            control.disconnected()
        if clock() >= end:
            return False
        control.sleep(_GOING_DOWN_S)
