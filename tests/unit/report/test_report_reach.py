# SPDX-License-Identifier: GPL-2.0-or-later
"""The map of a kernel as text and as JSON."""

from __future__ import annotations

import json

from msgspec.structs import replace

from kdelta.attribution.reach import Near, Reach
from kdelta.report import reach as report
from unit.attribution.test_reach import row


def test_cases_mapped_on_another_kernel_are_told_in_text_and_json() -> None:
    rows = (row("a", read=(1, 5)), replace(row("b", write=(1, 5)), beyond=("opens",)))
    found = Reach(kernel="k", rows=rows)
    for told in (report.functions_text(found, {"read": ()}, 5), report.coverage_text(found, (), "")):
        assert "1 of 2 cases were mapped on another kernel, which differs in opens: their operations" in told
    assert "mapped on another" not in report.functions_text(Reach(kernel="k", rows=rows[:1]), {"read": ()}, 5)
    assert [case["beyond"] for case in json.loads(report.document(found, {}, ()))["cases"]] == [[], ["opens"]]


def test_of_what_is_charged_to_a_group_it_is_told_that_the_map_has_none() -> None:
    """try_charge_memcg() was "no case executes it", and so it is with no memory cgroup."""
    found = Reach(kernel="k", rows=(row("a", read=(1, 5)),))
    for name in ("page_counter_charge", "consume_stock"):
        assert "kdelta compare --memcg counts in" in report.functions_text(found, {name: ()}, 5)
    near = (Near(function="read", path=("read", "charge_memcg", "slow"), cases=1),)
    assert "kdelta compare --memcg" in report.functions_text(found, {"slow": near}, 5)
    for name in ("read", "write", "stockpile"):
        assert "memcg" not in report.functions_text(found, {name: ()}, 5)
