# SPDX-License-Identifier: GPL-2.0-or-later
"""How the hardware is set that times depend on, as sysfs tells it; what is not there is left out. Changes nothing."""

from __future__ import annotations

from pathlib import Path

_CPU = "sys/devices/system/cpu"
_MOST = 64  # characters of one entry: a list of many CPUs is cut
_UNSET = ("", "(null)", "notsupported", "notimplemented")


def state(root: Path = Path("/")) -> dict[str, str]:
    """What a report should say of the machine below ``root``: ``governor``, ``turbo``, ``smt``, ``isolated``.

    Several governors, where CPUs differ, stand side by side. Source: Documentation/admin-guide/pm/cpufreq.rst,
    intel_pstate.rst; Documentation/ABI/testing/sysfs-devices-system-cpu.
    """
    cpu = root / _CPU
    governors = {_read(path) for path in cpu.glob("cpufreq/policy*/scaling_governor")}
    found = {
        "governor": "+".join(sorted(governors - set(_UNSET))),
        "turbo": _turbo(cpu),
        "smt": _read(cpu / "smt/control"),
        "isolated": _read(cpu / "isolated"),
    }
    return {key: value[:_MOST] for key, value in found.items() if value not in _UNSET}


def _turbo(cpu: Path) -> str:
    """ "on" or "off": intel_pstate says whether there is none, the other drivers whether there is some."""
    none, some = _read(cpu / "intel_pstate/no_turbo"), _read(cpu / "cpufreq/boost")
    return {"0": "on", "1": "off"}.get(none) or {"1": "on", "0": "off"}.get(some, "")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
