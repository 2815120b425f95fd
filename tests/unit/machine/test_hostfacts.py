# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host did beside a boot."""

from __future__ import annotations

import os
from pathlib import Path

from kdelta.machine import hostfacts


def test_cpus_that_others_kept_busy_are_told_from_ticks() -> None:
    cpus = os.cpu_count() or 1
    before = {"ticks": 1000.0, "steal_ticks": 10.0, "other_ticks": 400.0}
    after = {"ticks": 1000.0 + 100 * cpus, "steal_ticks": 10.0, "other_ticks": 475.0, "load1": 1.5}
    facts = hostfacts.during(before, after)
    assert facts == {"steal_percent": 0.0, "other_cpus": 0.75, "load1": 1.5}


def test_no_time_tells_nothing() -> None:
    now = hostfacts.snapshot()
    assert {"ticks", "steal_ticks", "other_ticks"} <= now.keys() and now["ticks"] > now["other_ticks"]
    assert "other_cpus" not in hostfacts.during(now, now)


def test_the_temperature_is_that_of_the_cpus(tmp_path: Path) -> None:
    for number, kind in enumerate(("acpitz", "x86_pkg_temp")):
        zone = tmp_path / f"thermal_zone{number}"
        zone.mkdir()
        (zone / "type").write_text(f"{kind}\n")
    assert hostfacts._thermal_zone(str(tmp_path)) == f"{tmp_path}/thermal_zone1/temp"
    (tmp_path / "thermal_zone1/type").write_text("iwlwifi_1\n")
    assert hostfacts._thermal_zone(str(tmp_path)) == f"{tmp_path}/thermal_zone0/temp"
