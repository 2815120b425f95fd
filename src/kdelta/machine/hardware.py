# SPDX-License-Identifier: GPL-2.0-or-later
"""How the hardware is set that times depend on, as sysfs tells it; what is not there is left out. Changes nothing."""

from __future__ import annotations

from kdelta.machine.settings import Files

_CPU = "/sys/devices/system/cpu"
_MOST = 64  # characters of one entry: a list of many CPUs is cut
_UNSET = ("", "(null)", "notsupported", "notimplemented")
KEYS = ("governor", "turbo", "smt", "isolated")


def state(files: Files) -> dict[str, str]:
    """What a report should say of the machine whose ``files`` these are: ``KEYS``.

    Several governors, where CPUs differ, stand side by side. Source: Documentation/admin-guide/pm/cpufreq.rst,
    intel_pstate.rst; Documentation/ABI/testing/sysfs-devices-system-cpu.
    """
    governors = set(files.read(f"{_CPU}/cpufreq/policy*/scaling_governor").values())
    found = {
        "governor": "+".join(sorted(governors - set(_UNSET))),
        "turbo": _turbo(files),
        "smt": _read(files, f"{_CPU}/smt/control"),
        "isolated": _read(files, f"{_CPU}/isolated"),
    }
    return {key: value[:_MOST] for key, value in found.items() if value not in _UNSET}


def _turbo(files: Files) -> str:
    """ "on" or "off": intel_pstate says whether there is none, the other drivers whether there is some."""
    none, some = _read(files, f"{_CPU}/intel_pstate/no_turbo"), _read(files, f"{_CPU}/cpufreq/boost")
    return {"0": "on", "1": "off"}.get(none) or {"1": "on", "0": "off"}.get(some, "")


def _read(files: Files, path: str) -> str:
    return files.read(path).get(path, "")
