# SPDX-License-Identifier: GPL-2.0-or-later
"""What each format promises beyond its looks."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from lxml import html
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.model import ExperimentResult, Looked, Unreached
from kdelta.report import benchfmt, json_, junit, ktap
from kdelta.report import html as page
from kdelta.report.registry import find, formats
from kdelta.report.view import build
from kdelta.results.types import CellName, CellPoints, Detail, Point
from unit.report import real_benchstat
from unit.report.report_samples import cell, exact, experiment, gaps, timed
from unit.report.sweep_samples import SAMPLES, broken_sweep, sweep, timed_sweep

CHECKS = ["b4", "codequality", "github", "kcidb", "patchwork", "sarif"]
NAMES = sorted(["benchfmt", "csv", "html", "json", "junit", "ktap", "mail", "markdown", "terminal", *CHECKS])


def test_formats_are_found_by_their_files() -> None:
    assert list(formats()) == NAMES
    suffixes = [item.suffix for item in formats().values()]
    assert len(set(suffixes)) == len(suffixes)


def test_an_unknown_format_is_one_clear_line() -> None:
    with pytest.raises(UserError, match="report format 'pdf' is not known; one of b4, benchfmt, codequality, csv"):
        find("pdf")


def test_json_has_the_documented_keys_in_a_fixed_order() -> None:
    document = json.loads(json_.render(build(*timed())))
    assert list(document) == ["schema", "experiment", "host", "kernels", "gate", "answer", "results", "warnings"]
    assert document["schema"] == "kdelta/1"
    promised = "case params cgroup metric unit better baseline patched effect_percent interval_percent verdict state"
    promised += " boots floor_percent because warnings"
    for item in document["results"]:
        assert set(promised.split()) <= set(item)
    assert document["results"][2]["because"][0]["function"] == "__call_rcu_common"


def test_json_holds_every_metric_shown_or_not() -> None:
    result, detail = timed()
    assert len(json.loads(json_.render(build(result, detail)))["results"]) == len(result.results)


def test_json_of_a_sweep_has_points_and_steps_and_gaps_are_null() -> None:
    document = json.loads(json_.render(build(*sweep())))
    values = {point["kernel"]: (point["value"], point["state"]) for point in document["points"]}
    assert values["6.1"] == (3314.0, "ok")
    assert values["6.16"] == (None, "unsupported")
    assert [(step["last"], step["first"]) for step in document["steps"]] == [("6.1", "6.12"), ("6.18", "7.0")]


def test_json_of_a_figure_that_is_not_finite_is_null_with_a_state() -> None:
    broken = json.loads(json_.render(build(*gaps())))["results"][-1]
    assert (broken["patched"], broken["state"], broken["verdict"]) == (None, "failed", None)


def test_the_result_part_of_the_same_exact_experiment_repeats_byte_for_byte() -> None:
    result, detail = exact()
    again = replace(
        result,
        experiment=replace(result.experiment, id="other", created_at="2027-01-01T00:00:00", host={"cpu": "other"}),
        boots_faulty=("console other",),
    )
    first, second = (json_.render(build(item, detail)).encode() for item in (result, again))
    assert first != second
    assert json_.result_part(first) == json_.result_part(second)
    changed = replace(result, results=(replace(result.results[0], patched=5570.0), *result.results[1:]))
    assert json_.result_part(json_.render(build(changed, detail)).encode()) != json_.result_part(first)


def test_ktap_never_passes_what_is_not_known() -> None:
    lines = ktap.render(build(*gaps())).splitlines()
    results = [line for line in lines if re.match(r"(not )?ok ", line)]
    assert [line.split(" # ")[-1].split(":")[0] for line in results if "SKIP" in line] == [
        "SKIP unsupported",
        "SKIP inconclusive",
        "SKIP descriptive only, no verdict",
    ]
    assert [line.split(" ")[0] for line in results] == ["ok", "not", "not", "ok", "ok", "not"]


def test_a_closed_gate_fails_in_ktap_and_junit_above_any_speed() -> None:
    view = build(*exact())
    assert "not ok 1 gate" in ktap.render(view)
    assert '<testcase name="gate"' in junit.render(view)


def test_what_of_a_change_was_not_looked_at_is_a_skipped_test() -> None:
    result, detail = exact()
    missed = Looked(functions=9, differ=2, candidates=5, unreached=(Unreached(name="foo#1"),), left_out=("late",))
    notes = replace(result.experiment.annotations, looked=missed)
    view = build(replace(result, experiment=replace(result.experiment, annotations=notes)), detail)
    text = ktap.render(view)
    last = [line for line in text.splitlines() if re.match(r"(not )?ok ", line)][-1]
    said = "not looked at # SKIP no case executes it in its operations (1 of 2): foo_1."
    assert last == f"ok {text.splitlines()[1][3:]} {said}"
    assert "\n# no time (1; raise --time-budget): late.\n" in text
    document = junit.render(view)
    assert '<skipped message="no case executes it in its operations (1 of 2): foo#1." />' in document
    assert "not looked at" not in ktap.render(build(*exact())) + junit.render(build(*exact()))


def test_junit_counts_what_it_holds() -> None:
    text = junit.render(build(*gaps()))
    assert sum(map(int, re.findall(r' skipped="(\d+)"', text))) == text.count("<skipped ") == 3
    assert sum(map(int, re.findall(r' errors="(\d+)"', text))) == text.count("<error ") == 3


def test_a_version_of_a_sweep_fails_where_a_regression_arrives_and_passes_at_its_level() -> None:
    lines = ktap.render(build(*sweep())).splitlines()
    name = "pidfd_open: instructions on"
    assert [line for line in lines if re.match(r"(not )?ok ", line)] == [
        f"ok 1 {name} 6.1",
        f"not ok 2 {name} 6.12",
        f"ok 3 {name} 6.16 # SKIP unsupported: needs CONFIG_ANON_VMA_NAME",
        f"ok 4 {name} 6.18",
        f"ok 5 {name} 7.0",
        f"ok 6 {name} 7.3",
    ]
    assert f"# {name} 6.1: value 3314, first" in lines
    assert f"# {name} 6.12: baseline 3314, value 5569, effect +68.04 % after 6.1, regressed" in lines
    assert any(line.startswith("# regressed: +68.04 %; because +264 __call_rcu_common") for line in lines)
    assert f"# {name} 6.18: value 5571, as before" in lines


def test_a_regression_of_times_tells_its_levels_in_ktap_and_junit() -> None:
    view = build(*timed_sweep())
    message = "regressed: +39.60 %; level 300.0 ns before, 420.0 ns from here on; p = 0.001"
    assert f"# {message}\nnot ok 3 pipe: ns_per_op on 6.10\n" in ktap.render(view)
    assert f'<failure message="{message}" type="regressed">' in junit.render(view)


def test_a_gap_of_a_sweep_is_skipped_only_where_the_version_could_have_no_figure() -> None:
    text = ktap.render(build(*broken_sweep()))
    results = re.findall(r"^(not ok|ok) \d+ fork_vmas \(memcg\): instructions on (\S+)(?: # SKIP (.*))?$", text, re.M)
    assert results == [
        ("ok", "6.1", "left out: cannot be fetched: the archive does not answer"),
        ("ok", "6.2", ""),
        ("ok", "6.3", "unsupported: needs CONFIG_ANON_VMA_NAME"),
        ("not ok", "6.4", ""),
        ("not ok", "6.5", ""),
        ("not ok", "6.6", ""),
        ("not ok", "6.7", ""),
        ("ok", "6.8", "descriptive only, no verdict: 1 of the 2 seeds that a step needs"),
        ("ok", "6.9", ""),
    ]
    assert "# failed: the value is not a finite number\nnot ok 7" in text
    assert "# panicked: Kernel panic - not syncing: VFS\nnot ok 5" in text


def test_junit_of_a_sweep_has_a_suite_per_case_with_its_figures_and_notes() -> None:
    text = junit.render(build(*broken_sweep()))
    assert '<testcase name="instructions on 6.9" classname="kdelta.fork_vmas (memcg)" time="0" />' in text
    assert '<error message="lost: no end record" type="lost">no value</error>' in text
    assert "instructions on 6.9: baseline 3314, value 3000, effect -9.48 % after 6.8, improved (I)" in text
    assert "[1] 6.9 was built by gcc 14, 6.8 by gcc 13" in text


def test_benchmark_names_and_units_follow_the_format() -> None:
    name = benchfmt.bench_name
    assert name(CellName(case="pidfd_open", metric="x")) == "BenchmarkPidfd_open"
    assert name(CellName(case="pipe writers=2 size=a/b (memcg)", metric="x", mitigations="off")) == (
        "BenchmarkPipe/writers=2/size=a_b/cgroup=child/mitigations=off"
    )
    assert name(CellName(case="threads-8", metric="x")) == "BenchmarkThreads_8"
    units = [("ns", "x"), ("MB/s", "x"), ("ops/s", "x"), ("instructions", "instructions"), ("", "objects left")]
    made = [benchfmt.bench_unit(unit, metric, shared=False) for unit, metric in units]
    assert made == ["ns/op", "MB/s", "ops/s", "instructions/op", "objects_left/op"]
    assert benchfmt.bench_unit("ns", "p99", shared=True) == "p99-ns/op"
    allocated = benchfmt.bench_unit("B/op", "rep_bytes", shared=False)
    assert allocated == "rep_bytes-B/op", "B/op alone is what a Go benchmark allocated"


def test_benchfmt_has_one_line_per_boot() -> None:
    lines = benchfmt.render(build(*timed())).splitlines()
    assert len([line for line in lines if line.startswith("Benchmark")]) == 2 * 24
    assert "Unit ns/op better=lower" in lines


def test_the_real_benchstat_reads_it(benchstat: str, tmp_path: Path) -> None:
    path = tmp_path / "boots.bench"
    path.write_text(benchfmt.render(build(*timed())))
    assert re.search(r"Pidfd_open +\d+\.\dn .* -2\d\.\d+% \(p=0\.000 n=12\)", real_benchstat.text(benchstat, path))


def counted(**cases: tuple[tuple[float, ...], tuple[float, ...]]) -> str:
    """An exact comparison as benchfmt: counts of both kernels by case, one a seed."""
    result, detail = exact()
    points = tuple(
        CellPoints(
            cell=CellName(case=case, metric="instructions"),
            unit="instructions",
            better="lower",
            points=tuple(Point(seed, k, k, value) for k in (0, 1) for seed, value in enumerate(values[k])),
        )
        for case, values in cases.items()
    )
    return benchfmt.render(build(result, replace(detail, points=points)))


MOVING = ((1000.0, 1009.0, 1008.0, 1010.0, 1009.0), (1002.0, 1001.0, 1003.0, 1001.0, 1000.0))


def test_only_units_whose_every_count_repeats_are_assumed_exact() -> None:
    facts = ((1000.0,) * 5, (990.0,) * 5)
    assert "Unit instructions/op better=lower assume=exact" in counted(getppid=facts).splitlines()
    assert "Unit instructions/op better=lower" in counted(getppid=facts, pipe=MOVING).splitlines()


def test_the_real_benchstat_reads_counts_that_move_with_their_sign(benchstat: str, tmp_path: Path) -> None:
    path = tmp_path / "boots.bench"
    path.write_text(counted(pipe=MOVING, getppid=((1000.0,) * 5, (990.0,) * 5)))
    table = real_benchstat.table(benchstat, path)
    assert table["Getppid", "instructions/op"].changes == ("-1.00%",)
    (change,) = table["Pipe", "instructions/op"].changes
    assert change == "~" or change.startswith("-"), "taken for exact, the first seed's +0.20 % would be the answer"


def test_the_real_benchstat_finds_the_medians_of_our_boots(benchstat: str, tmp_path: Path) -> None:
    path = tmp_path / "boots.bench"
    result, detail = timed_sweep()
    path.write_text(benchfmt.render(build(result, detail)))
    (line,) = real_benchstat.table(benchstat, path).values()
    boots: dict[int, list[float]] = {}
    for point in detail.points[0].points:
        boots.setdefault(point.kernel, []).append(point.value)
    medians = [median(boots[kernel]) for kernel in sorted(boots)]
    assert [1e9 * value for value in line.medians] == pytest.approx(medians)
    assert line.changes == tuple(f"{100 * (value / medians[0] - 1):+.2f}%" for value in medians[1:])


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_page_loads_nothing_and_runs_nothing(sample: str) -> None:
    text = page.render(build(*SAMPLES[sample]()))
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", text)
    assert "url(" not in text
    assert "@import" not in text


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_page_is_readable_without_eyes(sample: str) -> None:
    root = html.document_fromstring(page.render(build(*SAMPLES[sample]())))
    assert root.get("lang") == "en"
    ids = root.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert set(root.xpath("//a[starts-with(@href, '#')]/@href")) <= {f"#{name}" for name in ids}
    for table in root.xpath("//table"):
        assert table.xpath("./caption")
        assert table.xpath(".//th[@scope='col']")
    for drawing in root.xpath("//*[local-name()='svg' and not(@aria-hidden='true')]"):
        assert drawing.get("role") == "img"
        for name in drawing.get("aria-labelledby").split():
            assert root.xpath(f"//*[@id='{name}']")[0].text
        assert drawing.xpath("ancestor::figure//table")
    for label in root.xpath("//@aria-labelledby"):
        assert set(label.split()) <= set(ids)
    levels = [int(item.tag[1]) for item in root.xpath("//h1|//h2|//h3")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_draws_everything_that_detail_holds() -> None:
    text = page.render(build(*timed())) + page.render(build(*sweep()))
    for name in ("effects", "boots0", "boots1", "dist0", "scale0", "sweep0", "func0"):
        assert f'<figure id="{name}">' in text
    assert "Legacy view kbest" in text


def test_ten_thousand_boots_stay_a_small_page_and_say_that_they_are_thinned() -> None:
    cases = [f"case{index}" for index in range(5)]
    results = tuple(cell(case) for case in cases)
    points = tuple(Point(block, k, k, 400.0 + block % 7) for block in range(5_000) for k in (0, 1))
    detail = Detail(
        points=tuple(
            CellPoints(cell=CellName(case=case, metric="latency_p50"), unit="ns", better="lower", points=points)
            for case in cases
        )
    )
    text = page.render(build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=results), detail))
    assert len(text.encode()) < 3_000_000
    assert "Every 5th block is shown." in text


@pytest.mark.parametrize(("sample", "broad", "hint"), [("several", True, "hint most"), ("exact", False, "")])
def test_a_table_of_many_kernels_has_the_width_of_the_window(sample: str, broad: bool, hint: str) -> None:
    """Of ten kernels four stood in a window of 1400 pixels, and nothing said that there are more."""
    root = html.document_fromstring(page.render(build(*SAMPLES[sample]())))
    (around,) = root.xpath("//table[starts-with(caption/@id, 'table-')]/..")[:1]
    assert ("broad" in around.get("class").split()) is broad
    told = around.getprevious()
    assert (told.get("class") if told is not None and "hint" in told.get("class", "") else "") == hint
