# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of a page: labels that can be read and name the right kernel, scales that say what they are."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from kdelta.model import ExperimentResult, FunctionDelta
from kdelta.report import charts, curves, svg
from kdelta.report.figures import absolute, count
from kdelta.report.view import build
from kdelta.results.types import CellName, FunctionDiff, Scaling, ScalingLine
from unit.report.report_samples import cell, experiment, timed

PATCHED = "6.12.118+0001-sys-think-in-getppid"
_WIDE = 7.2  # px of a digit, as drawn


def texts(markup: str, kind: str) -> list[ET.Element]:
    return [one for one in ET.fromstring(markup).iter("text") if one.get("class") == kind]


def test_a_patched_kernel_is_not_called_by_its_series() -> None:
    assert charts.fitting(["6.12.118", "7.0.13"], 40) == ["6.12", "7.0"]
    assert charts.fitting(["6.12.118", PATCHED], 40) == ["6.12", PATCHED]
    assert charts.fitting(["6.12.117", "6.12.118"], 40) == ["6.12.117", "6.12.118"], "else they would be one"
    area = svg.canvas("x", "x", "x", 100)
    svg.axis_x(area, [(100.0, PATCHED), (200.0, f"{PATCHED}-again")], "kernel")
    drawn = [one.text for one in texts(area.markup(), "tick")]
    assert len(set(drawn)) == 2 and all(one and "…" in one for one in drawn)


@pytest.mark.parametrize("size", [1e7, 4e5, 3e4, 700.0, 0.5])
def test_bars_of_functions_have_figures_that_fit_and_no_exponent(size: float) -> None:
    deltas = (size, -size * 1.1, size / 2, -size / 400)
    known = tuple(
        FunctionDelta(function=f"f{n}", baseline=1.0, patched=1.0, delta=delta) for n, delta in enumerate(deltas)
    )
    name = CellName(case="fork_vmas", metric="instructions")
    figure = curves.functions(FunctionDiff(cell=name, baseline_label="a", patched_label="b", functions=known), 0)
    assert figure is not None and not re.search(r"\de[+-]\d", figure.markup + str(figure.rows))
    ticks = texts(figure.markup, "tick")
    assert all(
        float(one.get("x") or 0) + _WIDE * len(one.text or "") / (1 + (one.get("text-anchor") == "middle")) <= svg.WIDTH
        for one in ticks
    )
    axis = sorted((float(one.get("x") or 0), len(one.text or "")) for one in ticks if one.get("text-anchor"))
    assert len(axis) > 1
    assert all(right - left > _WIDE * (a + b) / 2 for (left, a), (right, b) in pairwise(axis))


def test_only_a_rate_is_called_throughput() -> None:
    """Instructions over the number of tasks were "Throughput of all tasks together"."""
    for unit, said in (("ops/s", "Throughput"), ("instructions/op", ""), ("ns", "")):
        cell = CellName(case="path_lookup", metric="m")
        line = ScalingLine(kernel="7.0", points=((1, 4.0), (2, 5.0)))
        figure = curves.scaling(Scaling(cell=cell, unit=unit, lines=(line,)), 0)
        assert figure is not None and figure.caption.partition(" ")[0] == said


def test_a_scale_says_where_twice_as_high_is_not_twice_as_much() -> None:
    assert charts.cut(svg.Scale(0.0, 2.0, 0, 1)) == ""
    assert charts.cut(svg.Scale(1.0, 2.0, 0, 1)) == " The scale does not begin at 0."
    assert charts.cut(svg.Scale(1.0, 2.0, 0, 1, log=True)) == " The scale is logarithmic."


@pytest.mark.parametrize("floor", [None, 1.2])
def test_a_band_is_told_of_where_there_is_one(floor: float | None) -> None:
    result, _ = timed()
    cells = tuple(replace(one, floor_percent=floor) for one in result.results)
    figure = charts.intervals(build(replace(result, results=cells)))
    assert figure is not None and ("noise floor" in figure.caption) is (floor is not None)


def test_a_floor_of_some_hundred_percent_presses_no_effect_together() -> None:
    """A row of 0.0078 transfers had a floor of 640 %: effects of -11 and -33 % were drawn in one place."""
    small = [cell(f"case{n}", effect_percent=-11.0 * n, floor_percent=0.5) for n in (1, 2, 3)]
    next_to_nothing = cell("idle", "transfers", effect_percent=0.0, floor_percent=640.0, verdict="same")
    result = ExperimentResult(experiment=experiment("6.12", "7.0"), results=(*small, next_to_nothing))
    figure = charts.intervals(build(result))
    assert figure is not None and "from edge to edge is wider" in figure.caption
    drawn = ET.fromstring(figure.markup)
    places = [float(one.get("cx") or 0) for one in drawn.iter("circle")]
    assert min(abs(a - b) for a, b in pairwise(places)) > 50
    bands = [one for one in drawn.iter("rect") if one.get("class") == "floor"]
    assert all(float(one.get("x") or 0) + float(one.get("width") or 0) <= svg.WIDTH for one in bands)


def test_rows_of_one_suite_and_metric_have_names_of_their_own() -> None:
    """contention/open_separate and contention/open_shared were both "contention/open_…uctions"."""
    cases = ("contention/open_separate", "contention/open_shared")
    found = [cell(case, metric, effect_percent=2.0) for case in cases for metric in ("instructions", "transfers")]
    figure = charts.intervals(build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=tuple(found))))
    assert figure is not None
    names = [(one.text or "")[:24] for one in texts(figure.markup, "label")]
    assert len(set(names)) == len(found) and names[0].startswith("open_se") and names[0].endswith("instructions")


def test_a_unit_that_ends_the_metrics_name_is_left_out() -> None:
    assert absolute(134, "instructions/op", "user_instructions") == "134/op"
    assert absolute(134, "instructions/op", "instructions") == "134/op"
    assert absolute(134, "B/op", "rep_bytes") == "134 B/op"
    assert absolute(16, "transfers/op", "transfers of task_struct.pi_lock") == "16/op"
    assert (count(-433339.4), count(152.21, signed=True), count(0.0, signed=True)) == ("-433339", "+152.2", "0")


def test_a_case_that_failed_on_one_kernel_has_one_reason_and_says_its_state_once() -> None:
    why = "7.0: failed: twice the operations cost no more"
    failed = cell("perf/basic", verdict=None, state="failed", why=why)
    other = replace(failed, metric="data_lines", primary=False, state="lost", why=f"6.12: not booted yet; {why}")
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=(failed, other, cell("pipe"))))
    reason = "failed: twice the operations cost no more"
    assert next(one.sentence for _, _, one in view.cells()) == reason
    assert [line for line in view.not_measured if "perf/basic" in line] == [f"perf/basic on 7.0 ({reason})."]
