# SPDX-License-Identifier: GPL-2.0-or-later
"""The map of a kernel as text and as JSON."""

from __future__ import annotations

import json

from msgspec.structs import replace

from kdelta.attribution.reach import Reach
from kdelta.report import reach as report
from unit.attribution.test_reach import row


def test_cases_mapped_on_another_kernel_are_told_in_text_and_json() -> None:
    rows = (row("a", read=(1, 5)), replace(row("b", write=(1, 5)), beyond=("opens",)))
    found = Reach(kernel="k", rows=rows)
    for told in (report.functions_text(found, {"read": ()}, 5), report.coverage_text(found, (), "")):
        assert "1 of 2 cases were mapped on another kernel, which differs in opens: their operations" in told
    assert "mapped on another" not in report.functions_text(Reach(kernel="k", rows=rows[:1]), {"read": ()}, 5)
    assert [case["beyond"] for case in json.loads(report.document(found, {}, ()))["cases"]] == [[], ["opens"]]
