# SPDX-License-Identifier: GPL-2.0-or-later
"""Cache lines by function: of code, whether the function only lies elsewhere."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.report.touched import touched_lines
from unit.attribution import counts


def test_lines_of_code_of_a_function_that_runs_the_same_are_layout() -> None:
    old, new = (
        replace(counts.profile({"read": 90, "walk": walk}, ops=1), code_lines=lines, data_lines={"read": 1})
        for walk, lines in ((0, {"read": 2}), (80, {"read": 3, "walk": 4}))
    )
    said = {line.split()[0]: line.partition("+")[2].split("  ")[1] for line in touched_lines(old, new, None)[4:]}
    assert said == {"walk": "code lines", "read": "code lines, layout alone"}
