# SPDX-License-Identifier: GPL-2.0-or-later
"""Facts of the host that can disturb a timing, read before and after each boot; absent facts are left out."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def identity() -> dict[str, str]:
    """What stays the same while the host does: CPU model, cores, kernel, machine id hashed by the store's user."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in _read("/proc/cpuinfo").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {"cpu": model, "cpus": str(os.cpu_count() or 1), "kernel": platform.release(), "arch": platform.machine()}


def memory_mib() -> int:
    """All of this machine's memory, in MiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


def _stat_ticks() -> tuple[float, float, float]:
    """(all ticks, busy ticks, stolen ticks) of all CPUs since boot, from the first line of /proc/stat (proc(5))."""
    fields = [float(f) for f in _read("/proc/stat").split("\n", 1)[0].split()[1:]]
    if len(fields) < 8:
        return 0.0, 0.0, 0.0
    idle, iowait, steal = fields[3], fields[4], fields[7]
    return sum(fields[:8]), sum(fields[:8]) - idle - iowait - steal, steal


def _own_ticks() -> float:
    """CPU time of this process and of its children that have ended, in ticks."""
    times = os.times()
    return (times.user + times.system + times.children_user + times.children_system) * os.sysconf("SC_CLK_TCK")


def _thermal_zone(root: str = "/sys/class/thermal") -> str:
    """The temperature of the CPUs where one is known to be theirs, else of the first zone (sysfs-class-thermal)."""
    zones = sorted(Path(root).glob("thermal_zone*"))
    of_cpus = [zone for zone in zones if re.search(r"x86_pkg_temp|cpu|soc", _read(f"{zone}/type"))]
    return str(next(iter([*of_cpus, *zones]), Path(root) / "thermal_zone0") / "temp")


def snapshot() -> dict[str, float]:
    """Counters and gauges at one instant: ticks, steal, load, temperature (C), frequency (MHz)."""
    total, busy, steal = _stat_ticks()
    facts = {"ticks": total, "steal_ticks": steal, "other_ticks": busy - _own_ticks()}
    if load := _read("/proc/loadavg"):
        facts["load1"] = float(load.split()[0])
    for key, path, scale in (
        ("temperature_c", _thermal_zone(), 1e-3),
        ("cpu_mhz", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", 1e-3),
        ("throttled", "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", 1.0),
    ):
        value = _read(path)
        if value.lstrip("-").isdigit():
            facts[key] = float(value) * scale
    return facts


def during(before: dict[str, float], after: dict[str, float]) -> dict[str, float | str]:
    """What one boot saw: stolen time, CPUs that other programs kept busy, load, temperature, frequency, throttling."""
    facts: dict[str, float | str] = {}
    ticks = after.get("ticks", 0.0) - before.get("ticks", 0.0)
    if ticks > 0:
        facts["steal_percent"] = 100.0 * (after["steal_ticks"] - before["steal_ticks"]) / ticks
        others = (after["other_ticks"] - before["other_ticks"]) / ticks * (os.cpu_count() or 1)
        facts["other_cpus"] = max(0.0, round(others, 3))
    for key in ("load1", "temperature_c", "cpu_mhz"):
        if key in after:
            facts[key] = after[key]
    if "throttled" in after and "throttled" in before:
        facts["throttle_events"] = after["throttled"] - before["throttled"]
    return facts
