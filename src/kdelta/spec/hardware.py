# SPDX-License-Identifier: GPL-2.0-or-later
"""How the hardware is to be, as a user writes it: ``governor=performance,turbo=off,smt=off,cpus=2-3``."""

from __future__ import annotations

import re

from kdelta.errors import UserError
from kdelta.model import Hardware

_NAME = re.compile(r"^[a-z0-9_]{1,15}$")  # CPUFREQ_NAME_LEN
_CPUS = re.compile(r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$")
_ON_OFF = {"on": True, "off": False}


def parse(text: str, option: str) -> Hardware:
    """The hardware that ``text`` asks for.

    Raises:
        UserError: a key is unknown or comes twice, or a value is none.
    """
    given: dict[str, str] = {}
    for part in re.split(r",(?=[a-z]+=)", text):
        key, equals, value = part.partition("=")
        if not equals or key not in Hardware.__struct_fields__ or key in given:
            raise UserError(
                f"{option} {text!r}: {part!r} is none of governor=NAME, turbo=on|off, smt=on|off, cpus=LIST"
            )
        given[key] = value
    for key in ("turbo", "smt"):
        if given.get(key, "on") not in _ON_OFF:
            raise UserError(f"{option} {text!r}: {key} is on or off")
    wanted = Hardware(
        governor=given.get("governor", ""),
        turbo=_ON_OFF.get(given.get("turbo", "")),
        smt=_ON_OFF.get(given.get("smt", "")),
        cpus=given.get("cpus", ""),
    )
    if empty := [key for key, value in given.items() if not value]:
        raise UserError(f"{option} {text!r}: {empty[0]} has no value")
    return checked(wanted, f"{option} {text!r}")


def checked(wanted: Hardware, where: str) -> Hardware:
    """``wanted``, whose words can stand in a file of the kernel.

    Raises:
        UserError: one cannot.
    """
    if wanted.governor and not _NAME.match(wanted.governor):
        raise UserError(f"{where}: {wanted.governor!r} is no name of a governor, as performance is one")
    if wanted.cpus and (not _CPUS.match(wanted.cpus) or _backwards(wanted.cpus)):
        raise UserError(f"{where}: {wanted.cpus!r} is no list of CPUs, as 2-3 is one")
    return wanted


def _backwards(cpus: str) -> bool:
    ranges = [part.partition("-") for part in cpus.split(",")]
    return any(dash and int(last) < int(first) for first, dash, last in ranges)
