# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact lock hold of pipe_write on kernels with and without an allocation inside the lock. Builds kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PATCH = Path(__file__).parents[1] / "data" / "patches" / "pipe-alloc-in-lock.patch"
TREE = "src:debian:6.12"
LONG_S = 5400.0  # a first build on two busy cores


def holds(text: str) -> dict[str, float]:
    """Instructions per hold of pipe_write by kernel."""
    found = {}
    for result in json.loads(text)["traces"][0]["results"]:
        rows = {row["site"]: row for probe in result["probes"] for row in probe["rows"]}
        found[result["kernel"]] = rows["pipe_write"]["sums"]["instructions"] / rows["pipe_write"]["count"]
    return found


@pytest.mark.full
def test_an_allocation_inside_the_lock_lengthens_the_hold_by_the_same_figure_twice(kdelta) -> None:  # type: ignore[no-untyped-def]
    command = ("trace", f"outside={TREE}", f"inside={TREE}+{PATCH}", "--case", "pipe", "--what", "hold", "--json", "-q")
    first, second = (holds(kdelta(*command, timeout=LONG_S).stdout) for _ in range(2))
    assert first == second
    assert first["inside"] > 1.02 * first["outside"]
