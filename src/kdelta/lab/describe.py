# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user wrote of a machine -> ``Described``: a TOML file of ours, or an environment of labgrid (YAML).

The resources and drivers are labgrid's, by its names (its documentation, "Configuration"); of a TOML file the ssh
service and the drivers that usually belong to a resource need not be written.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct, field

from kdelta import paths
from kdelta.errors import UserError
from kdelta.model import Hardware
from kdelta.spec import hardware, toml

Start = Literal["kexec", "grub", "systemd-boot", "u-boot", "tftp", "fastboot"]
T = TypeVar("T")
Limit = Annotated[float, msgspec.Meta(gt=0, le=86400)]

_CONSOLE = re.compile(r"^[A-Za-z0-9]{1,15}(,[0-9]+[neo]?[0-9]?r?)?$")
_USUAL_DRIVERS = {
    "RawSerialPort": "SerialDriver",
    "NetworkSerialPort": "SerialDriver",
    "USBSerialPort": "SerialDriver",
    "NetworkPowerPort": "NetworkPowerDriver",
    "PDUDaemonPort": "PDUDaemonDriver",
    "TFTPProvider": "TFTPProviderDriver",
    "RemoteTFTPProvider": "TFTPProviderDriver",
    "AndroidUSBFastboot": "AndroidFastbootDriver",
    "AndroidNetFastboot": "AndroidFastbootDriver",
}


class UBoot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What U-Boot is told. ``load``: its command that loads a file, without address and name.

    ``folder``: where the machine's own system puts files for it, ``path``: the same directory as U-Boot names it; for
    ``tftp`` neither is used. ``first``: commands before all others. ``boot``: the command that starts what was loaded.
    """

    load: str = ""
    folder: str = "/boot/kdelta"
    path: str = "/boot/kdelta"
    first: tuple[str, ...] = ()
    boot: str = ""


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"u_boot": "u-boot"}):
    """What labgrid does not know of a machine.

    ``start``: how a kernel is started there. ``console``: the serial line that labgrid reads, as the kernel takes it.
    ``u_boot``: for ``u-boot`` and ``tftp``; ``fastboot``: words for fastboot(1) before ``boot``.
    ``adb``: the serial number of a machine whose own system answers on adb, not on ssh. ``hardware``: how it is set
    for each boot.
    ``cmdline``: words that every kernel needs on this machine. ``start_limit_s``: how long it may take to shut down, go
    through its firmware and boot a kernel until that says a first word; ``return_limit_s``: from a reset until its own
    system answers on ssh. ``watchdog``: a command of its own system that has the hardware reset it in ``$seconds``.
    """

    start: Start = "kexec"
    console: str = "ttyS0,115200"
    cmdline: str = ""
    start_limit_s: Limit = 600.0
    return_limit_s: Limit = 600.0
    u_boot: UBoot = UBoot()
    fastboot: tuple[str, ...] = ()
    adb: str = ""
    hardware: Hardware = Hardware()
    watchdog: str = ""

    @property
    def tty(self) -> str:
        """The device of the console."""
        return self.console.split(",")[0]


class _Table(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine in a TOML file."""

    address: str = ""
    user: str = "root"
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 22
    key: str = ""
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    drivers: dict[str, dict[str, Any]] = field(default_factory=dict)


class Described(Struct, frozen=True, kw_only=True):
    """A machine: ``target`` is labgrid's configuration of it, None where ``path`` is an environment of labgrid."""

    name: str
    path: Path
    options: Options
    target: dict[str, Any] | None = None


def parse(text: str) -> tuple[Path, str]:
    """``lab.toml:NAME`` -> the file's whole path and the name.

    Raises:
        UserError: it is not written so.
    """
    path, colon, name = text.rpartition(":")
    if not colon or not path or not name:
        raise UserError(f"--on {text!r}: give a file and the name of a machine in it, as in lab.toml:bench1")
    return Path(os.path.abspath(os.path.expanduser(path))), name


def described(text: str) -> Described:
    """The machine that ``text`` names (see ``parse``).

    Raises:
        UserError: there is no such file or machine, or what it says is wrong.
    """
    path, name = parse(text)
    try:
        content = paths.written(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UserError(f"--on: {path} cannot be read: {why}") from None
    if path.suffix in (".yaml", ".yml"):
        return _of_environment(path, name)
    try:
        tables = toml.decode(content, dict[str, Any])
    except ValueError as error:
        raise UserError(f"--on: {path}: {error}") from None
    table = _convert(_named(tables, path, name), _Table, f"{path}: {name}")
    if bool(table.address) == bool(table.adb):
        raise UserError(f"--on: {path}: {name}: give an address (ssh), or a serial number for adb, and not both")
    options = Options(**{key: getattr(table, key) for key in Options.__struct_fields__})
    return _checked(
        Described(name=name, path=path, options=options, target=_target(table, _key(table.key, path, name)))
    )


def refuse(machine: Described, in_system: bool) -> None:
    """Raises:
    UserError: this machine cannot be measured so.
    """
    from kdelta.lab.start import by_script  # which takes Start from here

    options = machine.options
    if in_system and not by_script(options.start):
        raise UserError(
            f"--in-system: {machine.name} starts by {options.start}; kexec, grub and systemd-boot can do it"
        )
    if not in_system and (options.hardware.turbo is not None or options.hardware.cpus):
        what = "turbo" if options.hardware.turbo is not None else "cpus"
        raise UserError(f"--on: {machine.name}: hardware.{what} is set in the installed system alone: add --in-system")


def _named(tables: object, path: Path, name: str) -> Any:
    """The table of a machine, or what there is instead."""
    known = [key for key, value in tables.items() if isinstance(value, dict)] if isinstance(tables, dict) else []
    if not isinstance(tables, dict) or name not in known:
        raise UserError(f"--on: {path} has no machine {name!r}: it has {', '.join(map(str, known)) or 'none'}")
    return tables[name]


def _convert(value: object, kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        known = f": one of {', '.join(get_args(Start))}" if str(error).endswith("`$.start`") else ""
        raise UserError(f"--on: {where}: {error}{known}") from None


def _target(table: _Table, key: Path | None) -> dict[str, Any]:
    """labgrid's configuration of a machine, with what goes without saying."""
    resources = {name: dict(values) for name, values in table.resources.items()}
    drivers = {name: dict(values) for name, values in table.drivers.items()}
    if table.address:
        service = {"address": table.address, "username": table.user, "port": table.port}
        resources.setdefault("NetworkService", service)
        drivers.setdefault("SSHDriver", {"keyfile": str(key)} if key else {})
    for resource, driver in _USUAL_DRIVERS.items():
        if resource in resources:
            drivers.setdefault(driver, {})
    if table.start in ("u-boot", "tftp"):
        drivers.setdefault("UBootDriver", {"prompt": "=> "})
    return {"resources": resources, "drivers": drivers}


def _key(text: str, path: Path, name: str) -> Path | None:
    """Where the key of a machine is; without it the machine would seem to refuse us.

    Raises:
        UserError: it cannot be read.
    """
    if not text:
        return None
    key = path.parent / os.path.expanduser(text)
    try:
        key.open("rb").close()
    except OSError as error:
        raise UserError(f"--on: {path}: {name}: key {key} cannot be read: {error.strerror}") from None
    return key


def _of_environment(path: Path, name: str) -> Described:
    """A target of an environment of labgrid; what labgrid does not know stands in its ``options`` as ``kdelta``."""
    from kdelta.lab.control import targets_of

    target = _named(targets_of(path), path, name)
    ours = _convert(target.get("options") or {}, dict[str, Any], f"{path}: {name}: options").get("kdelta", {})
    return _checked(Described(name=name, path=path, options=_convert(ours, Options, f"{path}: {name}: kdelta")))


def _checked(machine: Described) -> Described:
    """Raises:
    UserError: its console is not written as the kernel takes it, its command line cannot be passed on, or its watchdog
    would be stopped.
    """
    if not _CONSOLE.match(machine.options.console):
        raise UserError(
            f"--on: {machine.path}: {machine.name}: console {machine.options.console!r} is not as the kernel takes it "
            "(ttyS0,115200)"
        )
    if not machine.options.cmdline.isprintable():
        raise UserError(f"--on: {machine.path}: {machine.name}: cmdline has characters that cannot be printed")
    if machine.options.watchdog and machine.options.start != "kexec":
        raise UserError(
            f'--on: {machine.path}: {machine.name}: watchdog is for start = "kexec": the reset before others stops it'
        )
    hardware.checked(machine.options.hardware, f"--on: {machine.path}: {machine.name}: hardware")
    return machine
