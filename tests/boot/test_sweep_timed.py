# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep in times on real guests: few blocks, and a step too large for emulation to hide."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unit.report import real_benchstat

KERNELS = ("debian:6.1/cloud", "debian:6.12/cloud", "debian:7.0/cloud")
BLOCKS = "16"  # 8 are enough on a quiet host; two boots that a busy one doubles hide any step among 8


@pytest.mark.full
def test_a_timed_sweep_finds_the_step_of_pidfd_open_and_benchstat_agrees(
    benchstat: str, kdelta: Callable[..., Any], tmp_path: Path
) -> None:
    """6.12 gave every pidfd an inode of its own: the counts rise by three quarters."""
    words = ["--case", "pidfd_open", "--timed", "--blocks", BLOCKS, "--seed", "3", "--json", "-q"]
    document = json.loads(kdelta("sweep", *KERNELS, *words, timeout=1800).stdout)
    assert document["experiment"]["boots_done"] == document["experiment"]["boots_planned"] == 3 * int(BLOCKS)
    deciding = [point for point in document["points"] if point["metric"] == "ns_per_op"]
    assert [point["kernel"].rsplit(".", 1)[0] for point in deciding] == ["6.1", "6.12", "7.0"]
    assert all(point["state"] == "ok" and point["value"] > 0 for point in deciding)
    steps = [step for step in document["steps"] if step["first"].startswith("6.12.")]
    assert [(step["last"][:4], step["verdict"]) for step in steps] == [("6.1.", "regressed")]
    assert steps[0]["effect_percent"] > 5 and steps[0]["p_value"] <= 0.05 and not steps[0]["because"]
    report = " ".join(kdelta("report", "last").stdout.split())
    assert "from here on; p = " in report and "Steps: binary segmentation" in report and "Noise floor" not in report
    export = tmp_path / "timed.bench"
    kdelta("report", "last", "--format", "benchfmt", "-o", str(export))
    table = real_benchstat.table(benchstat, export)
    (line,) = [line for (_, unit), line in table.items() if unit.startswith("ns_per_op")]
    assert [1e9 * value for value in line.medians] == pytest.approx([point["value"] for point in deciding])
