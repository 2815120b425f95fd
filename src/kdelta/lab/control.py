# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine under labgrid's drivers: commands and files over ssh, its serial console, its boot loader, its power.

Nothing else imports labgrid. It is not made for threads: its steps are one stack (labgrid 26.0).
"""

from __future__ import annotations

import copy
import logging
import shlex
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kdelta import distributions
from kdelta.errors import HostError, UserError
from kdelta.lab.adb import Adb
from kdelta.lab.describe import Described
from kdelta.lab.loaders import Loaders
from kdelta.lab.start import reboot
from kdelta.machine.process import find_program

_CONNECT_S = 30.0
_RETRY_S = 2.0
_COMMAND_S = 120.0
_REFUSALS = ("Permission denied", "Too many authentication failures")


def _labgrid() -> Any:
    """labgrid, with what it logs kept from the terminal.

    Raises:
        HostError: it is not installed.
    """
    try:
        import labgrid
        import labgrid.driver
        import labgrid.resource
    except ImportError:
        raise HostError(f"--on drives machines with labgrid: {distributions.extra('lab')}") from None
    if not logging.getLogger().handlers:  # else warnings go to standard error (logging.lastResort)
        logging.getLogger().addHandler(logging.NullHandler())
    return labgrid


def targets_of(path: Path) -> dict[str, Any]:
    """The targets of an environment of labgrid, by name.

    Raises:
        UserError: labgrid cannot read it. HostError: no labgrid.
    """
    labgrid = _labgrid()
    try:
        targets: dict[str, Any] = labgrid.Environment(str(path)).config.get_targets()
    except (labgrid.exceptions.InvalidConfigError, labgrid.exceptions.NoConfigFoundError, OSError) as error:
        raise UserError(f"--on: {path}: {error}") from None
    return targets


@contextmanager
def _in_one_line(machine: Described) -> Iterator[None]:
    """Raises:
    UserError: instead of what labgrid raises where it does not take a description.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - labgrid raises Exception itself, and what its parts raise
        cause = error.__cause__
        why = f"{error}: {cause.args[0]}" if cause is not None and cause.args else str(error)
        raise UserError(f"--on: {machine.path}: {machine.name}: {' '.join(why.split())}") from None


def places_of(machine: Described) -> tuple[str, ...]:
    """The places of labgrid's coordinator that a machine is made of; () where it needs none.

    Raises:
        UserError: labgrid does not understand its description. HostError: no labgrid.
    """
    labgrid = _labgrid()
    target = machine.target or targets_of(machine.path)[machine.name]
    with _in_one_line(machine):
        resources, _ = labgrid.factory.target_factory.normalize_config(copy.deepcopy(target))
    return tuple(resources.get("RemotePlace", {}))


_NEEDED = {
    "SSHDriver": "an SSHDriver",
    "ConsoleProtocol": "a serial console (a resource NetworkSerialPort)",
    "UBootDriver": "a UBootDriver",
    "TFTPProviderDriver": "a TFTP server (a resource TFTPProvider)",
    "AndroidFastbootDriver": "a fastboot device (a resource AndroidUSBFastboot)",
}
_LOADERS = {
    "u-boot": ("UBootDriver",),
    "tftp": ("UBootDriver", "TFTPProviderDriver"),
    "fastboot": ("AndroidFastbootDriver",),
}


class Control:
    """The drivers of one machine; made by ``opened``."""

    def __init__(self, machine: Described, target: Any, clock: Callable[[], float], sleep: Callable[[float], None]):
        self.machine, self._target, self._clock, self._sleep = machine, target, clock, sleep
        self._adb = Adb(machine.options.adb) if machine.options.adb else None
        if not self._adb:
            for tool in ("ssh", "scp"):  # else nobody would seem to answer
                find_program(tool, "openssh-client")
        self._ssh: Any = self._adb or self._driver("SSHDriver")
        self._power = self._driver("PowerProtocol", optional=True)
        self._console = self._driver("ConsoleProtocol")
        drivers = {kind: self._driver(kind) for kind in _LOADERS.get(machine.options.start, ())}
        self.loaders = Loaders(str(self), drivers, self._on, target.deactivate)
        self._connected = False
        self.unheard = ""  # why the last attempt to connect failed, in ssh's words
        self.refused = False  # by the machine's own system: it answers, and lets us not in
        self._deaf_since: float | None = None
        self._mute = ""  # why the console cannot be opened

    def _driver(self, kind: str, optional: bool = False) -> Any:
        exceptions = _labgrid().exceptions
        try:
            return self._target.get_driver(kind, activate=False)
        except exceptions.NoDriverFoundError:
            if optional:
                return None
            raise UserError(f"--on: {self.machine.path}: {self.machine.name} has not {_NEEDED[kind]}") from None

    def __str__(self) -> str:
        return f"machine {self.machine.name}"

    def connected(self, limit_s: float) -> bool:
        """Connect by ssh; false where nobody answered within ``limit_s``, and at once where we are ``refused``."""
        end = self._clock() + limit_s
        while not self._connected:
            self._ssh.connection_timeout = max(1.0, min(_CONNECT_S, end - self._clock()))
            try:
                if self._adb:
                    self._adb.on()
                else:
                    self._target.activate(self._ssh)
                self._connected = True
                self.unheard, self.refused = "", False
            except Exception as error:  # noqa: BLE001 - labgrid raises Exception itself where nobody answers
                self.unheard, self.refused = _unheard(error)
                if self.refused or self._clock() >= end:
                    return False
                self._sleep(_RETRY_S)
        return True

    def disconnected(self) -> None:
        """Give the connection up: the machine is about to restart, or has."""
        if self._connected:
            self._connected = False
            if not self._adb:
                self._target.deactivate(self._ssh)

    def run(self, script: str, *, root: bool = False, limit_s: float = _COMMAND_S) -> str:
        """What a script of the shell prints there; ``root``: by sudo where the user is another.

        Raises:
            HostError: it failed, or did not end.
        """
        line = f"sh -c {shlex.quote(script)}"
        if root:
            line = f'if [ "$(id -u)" = 0 ]; then {line}; else sudo -n {line}; fi'
        try:
            out, err, status = self._ssh.run(line, timeout=limit_s, decodeerrors="replace")
        except subprocess.TimeoutExpired:
            raise HostError(f"{self}: a command did not end within {limit_s:g} s: {script.splitlines()[0]}") from None
        except _labgrid().driver.ExecutionError as error:
            raise HostError(f"{self}: the connection broke: {error}") from None
        if status:
            said = " ".join((err or out)[-1:]) or f"exit status {status}"
            raise HostError(f"{self}: {said.strip()}")
        return "\n".join(out)

    def put(self, path: Path, there: str) -> None:
        """Copy a file there.

        Raises:
            HostError: it could not be copied.
        """
        quiet = [*self._ssh.ssh_prefix, "-q"]  # scp's progress would mix with ours
        before, self._ssh.ssh_prefix = self._ssh.ssh_prefix, quiet
        try:
            self._ssh.put(str(path), there)
        except _labgrid().driver.ExecutionError:
            raise HostError(f"{self}: {path.name} could not be copied to {there}: is its disk full?") from None
        finally:
            self._ssh.ssh_prefix = before

    def reboot(self, mode: str = "") -> None:
        """Restart it; ``mode``: what its boot loader is to do (reboot(2)), as in "bootloader".

        Raises:
            HostError: it refuses.
        """
        if self._adb:
            self._adb.reboot(mode)
        else:
            self.run("\n".join(reboot(mode)), root=True)
        self.disconnected()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._sleep(seconds)

    def _on(self, driver: Any) -> Any:
        self._target.activate(driver)
        return driver

    def listening(self) -> None:
        """Open the console, and forget what it said before.

        Raises:
            HostError: it cannot be opened.
        """
        if not self._opened():
            raise HostError(f"{self}: its serial console cannot be opened: {self._mute}")
        while self.heard(0.2):
            pass

    def _opened(self) -> bool:
        try:
            self._target.activate(self._console)
        except OSError as error:  # serial.SerialException is one
            self._mute = str(error)
            return False
        self._deaf_since = None
        return True

    @property
    def deaf_s(self) -> float:
        """For how long nobody has served the console."""
        return 0.0 if self._deaf_since is None else self._clock() - self._deaf_since

    def heard(self, wait_s: float) -> bytes:
        """What the console said, waiting at most ``wait_s`` for the first byte; b"" for nothing.

        Where whoever serves it went away, as with the power of a machine, it is opened again as soon as it can be.
        """
        import pexpect

        if self._deaf_since is not None and not self._opened():
            self._sleep(wait_s)
            return b""
        try:
            data: bytes = self._console.read(size=1, timeout=wait_s)
        except pexpect.TIMEOUT:
            return b""
        except OSError:
            self._deaf_since = self._clock()
            self._target.deactivate(self._console)
            return b""
        return data

    def cycled(self) -> bool:
        """Switch the power off and on; false where nothing of it is described.

        Raises:
            HostError: the switch does not obey.
        """
        if self._power is None:
            return False
        try:
            self._target.activate(self._power)
            self._power.cycle()
        except (OSError, subprocess.SubprocessError, _labgrid().driver.ExecutionError) as error:
            raise HostError(f"{self}: its power could not be cycled: {error}") from None
        return True


def _unheard(error: Exception) -> tuple[str, bool]:
    """What ssh said of an attempt to connect, "" where nothing; whether that is the machine's refusal."""
    if isinstance(error, HostError):
        return str(error), False  # adb
    said = b"\n".join(getattr(error.__cause__, "stdout", None) or ()).decode(errors="replace")
    refusals = [line.strip() for line in said.splitlines() if any(sign in line for sign in _REFUSALS)]
    lines = refusals or [line.strip() for line in said.splitlines() if line.strip()]
    return (lines[-1] if lines else ""), bool(refusals)


@contextmanager
def opened(
    machine: Described, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Control]:
    """The drivers of ``machine``, which are given back when the block is left.

    Raises:
        UserError: labgrid does not understand its description. HostError: no labgrid, or no ssh.
    """
    target = _target(machine)
    with _own_temporaries():
        try:
            yield Control(machine, target, clock, sleep)
        finally:
            target.cleanup()


def _target(machine: Described) -> Any:
    labgrid = _labgrid()
    with _in_one_line(machine), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # what labgrid does not know of a resource is misspelt
        if machine.target is None:
            return labgrid.Environment(str(machine.path)).get_target(machine.name)
        return labgrid.target_factory.make_target(machine.name, copy.deepcopy(machine.target))


@contextmanager
def _own_temporaries() -> Iterator[None]:
    """Each attempt to connect leaves a directory behind where nobody answers (labgrid 26.0): they go at the end."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="kdelta-lab-", ignore_cleanup_errors=True) as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before
