# SPDX-License-Identifier: GPL-2.0-or-later
"""Real boots as Go benchmarks: the real benchstat comes to our medians, and in exact mode to our effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unit.report import real_benchstat


def test_benchstat_prints_the_effect_of_an_exact_comparison(
    benchstat: str,
    kdelta: Callable[..., object],
    answer: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    found = answer(
        "compare",
        "debian:6.1/cloud",
        "debian:6.12/cloud",
        "--exact",
        "-c",
        "pidfd_open",
        "-c",
        "getppid",
        "--seeds",
        "5",
    )
    export = tmp_path / "exact.bench"
    kdelta("report", "last", "--format", "benchfmt", "-o", str(export))
    table = real_benchstat.table(benchstat, export)
    checked = 0
    for row in found["results"]:
        line = table.get((row["case"].capitalize(), f"{row['metric']}/op"))
        if line is None:
            continue  # bytes are called B/op
        checked += 1
        assert line.medians == (row["baseline"], row["patched"])
        if row["effect_percent"] is None:
            assert line.changes == ("?",)
        elif line.changes != ("~",):  # of counts that vary it takes the medians' ratio, we the median of the ratios
            low, high = row["interval_percent"] or [row["effect_percent"]] * 2
            assert low - 0.02 <= float(line.changes[0].removesuffix("%")) <= high + 0.02
    assert checked >= 10, json.dumps(sorted(map(str, table)))
