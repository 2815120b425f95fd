# SPDX-License-Identifier: GPL-2.0-or-later
"""Times and counts in one answer: which counts go with a time, and what is said where they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.experiment import templates
from kdelta.model import CellResult, ExperimentResult, plans
from kdelta.report import json_, mail
from kdelta.report.sentences import sentence
from kdelta.report.view import build
from kdelta.results import answer, beside
from kdelta.results.warnings import Layout
from kdelta.store.store import Store
from unit.report.report_samples import cell, experiment


def time(word: str | None, percent: float) -> CellResult:
    return cell("open", "latency_p50", verdict=word, effect_percent=percent, primary=True, patched_label="7.0")


def count(metric: str, word: str | None, percent: float | None) -> CellResult:
    return cell("open", metric, unit=f"{metric}/op", verdict=word, effect_percent=percent, patched_label="7.0")


def joined(timed: CellResult, *counts: CellResult) -> ExperimentResult:
    times, exact = (experiment("6.12", "7.0", mode=mode) for mode in ("timed", "exact"))
    counted = ExperimentResult(experiment=exact, results=counts)
    return beside.explained(ExperimentResult(experiment=times, results=(timed,)), counted)


def told(timed: CellResult, *counts: CellResult) -> str:
    (row,) = joined(timed, *counts).results
    return "; ".join(map(sentence, row.warnings))


SAID: dict[str, tuple[CellResult, list[tuple[str, str, float | None]]]] = {
    "layout of the code": (time("regressed", 3.0), [("instructions", "same", 0.1), ("locked", "same", 0.0)]),
    "although instructions -2.0 %": (time("regressed", 3.0), [("instructions", "improved", -2.0)]),
    "and so locked +23.6 %": (time("regressed", 12.0), [("instructions", "same", 0.9), ("locked", "regressed", 23.6)]),
    "changes by much more": (time("improved", -30.0), [("instructions", "improved", -2.0)]),
    "nothing explains it yet": (time("improved", -3.0), [("instructions", "inconclusive", -2.0)]),
    "is the same, but instructions -9.0 %": (time("same", 0.1), [("instructions", "improved", -9.0)]),
    "more boots would tell": (time("inconclusive", -1.0), [("instructions", "improved", -9.0)]),
    "is undecided; instructions the same": (time(None, -1.0), [("instructions", "same", 0.0)]),
    "and so locked from 0": (time("regressed", 30.0), [("instructions", "same", 0.1), ("locked", "regressed", None)]),
    "although locked from 0": (time("improved", -3.0), [("locked", "regressed", None)]),
    "though locked -4.0 %": (
        time("regressed", 9.0),
        [("instructions", "regressed", 8.0), ("locked", "improved", -4.0)],
    ),
}


@pytest.mark.parametrize("said", SAID)
def test_what_counts_say_of_a_time(said: str) -> None:
    timed, counts = SAID[said]
    assert said in told(timed, *(count(*one) for one in counts))


def test_lines_of_code_that_only_moved_explain_no_time() -> None:
    same, lines = count("instructions", "same", 0.1), count("code_lines", "regressed", 6.0)
    assert "and so code lines +6.0 %" in told(time("regressed", 3.0), same, lines)
    laid = replace(lines, warnings=(Layout(1.0, 0.0),))
    assert "layout of the code" in told(time("regressed", 3.0), same, laid)


def test_a_time_and_counts_that_are_the_same_need_no_word() -> None:
    assert told(time("same", 0.1), count("instructions", "same", 0.0)) == ""


def test_counts_stand_below_the_time_and_decide_nothing() -> None:
    found = joined(time("same", 0.0), count("locked", "regressed", 9.0), count("instructions", "regressed", 9.0))
    view = build(found)
    (group,) = view.tables[0].groups
    assert [(row.metric, row.explains) for row in group.rows] == [
        ("latency_p50", False), ("instructions", True), ("locked", True),
    ]  # fmt: skip
    assert [row.metric for _, row, _ in view.cells()] == ["latency_p50"]
    assert view.headline.text == "7.0 is as fast as 6.12 in open."
    assert "1 same" in view.summary
    text = mail.FORMAT.render(view)
    assert isinstance(text, str) and "locked" in text and "is the same, but" in text
    document = json.loads(json_.FORMAT.render(view))
    assert [row["metric"] for row in document["counts"]] == ["instructions", "locked"]


def test_a_count_of_another_kernel_or_that_failed_explains_nothing() -> None:
    other = cell("open", "instructions", verdict="improved", effect_percent=-9.0, patched_label="7.1")
    lost = cell("open", "instructions", state="lost", verdict=None, effect_percent=None, patched_label="7.0")
    found = joined(time("regressed", 3.0), other, lost)
    assert not found.counts and not found.results[0].warnings


def test_a_store_without_the_counts_says_where_they_are(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        store.create(experiment("6.12", "7.0", plan=plans.Compare(counted="elsewhere")))
        found, _ = answer.result(store, "last")
    assert any("experiment elsewhere, which is not in this store" in sentence(one) for one in found.warnings)


def test_the_report_of_the_times_reads_both_from_the_store(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        counts = experiment("6.12", "7.0", mode="exact", id="20260101-000000-0001")
        store.create(counts)
        timed = templates.explained(experiment("6.12", "7.0", id="20260101-000000-0002"), counts)
        store.create(timed)
        assert plans.counted_by(store.experiment(timed.id).plan) == counts.id
        found, _ = answer.result(store, timed.id)
    assert not any(one.code == "counts-elsewhere" for one in found.warnings)
    assert any(counts.id in line for line in build(found).measured)
