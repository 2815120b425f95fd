# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer where several kernels are compared with one."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kdelta.report.headline import of_cells
from unit.report.report_samples import cell

EXACT: dict[str, Any] = {"metric": "instructions", "unit": "instructions/op"}


def test_of_several_kernels_it_says_whose_console_it_was() -> None:
    failed = replace(cell("a", verdict=None, state="panicked"), patched_label="early")
    rows = [("a", cell("a", **EXACT)), ("a", failed)]
    told = of_cells(rows, True, False, {"early": "Kernel panic - not syncing: VFS", "7.0": "WARNING"}).text
    assert told.endswith("On the console of early: Kernel panic - not syncing: VFS."), told
