# SPDX-License-Identifier: GPL-2.0-or-later
"""No text from outside breaks a format, its width, its syntax or its reader."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from lxml import etree, html
from msgspec.structs import replace
from rich.cells import cell_len
from tap.parser import Parser

from kdelta.model import ExperimentResult
from kdelta.report.csv_ import COLUMNS
from kdelta.report.registry import find, formats
from kdelta.report.view import Options, View, build
from kdelta.results.types import Detail, Sweep, SweepPoint
from kdelta.units import finite
from unit.report.hostile import NASTY, inputs
from unit.report.report_samples import exact, gaps, kernel, timed
from unit.report.sweep_samples import SAMPLES, broken_sweep, sweep, timed_sweep

XSD = etree.XMLSchema(etree.parse(str(Path(__file__).parents[2] / "data" / "junit" / "junit.xsd")))
_TAGS = """html head meta link title style body a header main p strong h1 h2 h3 div table caption thead tbody tr th td
    span sup b section figure figcaption ul ol li details summary dl dt dd pre svg desc text line path circle rect"""
ALLOWED_TAGS = frozenset(re.findall(r"\w+", _TAGS))
thorough = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def rendered(name: str, pair: tuple[ExperimentResult, Detail | None], all_metrics: bool = True) -> str:
    text = find(name).render(build(*pair, Options(all_metrics=all_metrics)))
    assert isinstance(text, str)
    text.encode()  # no lone surrogate is left
    for char in text:
        assert char in "\r\n" or unicodedata.category(char)[0] != "C"
    return text


@pytest.mark.parametrize("name", formats())
@thorough
@given(pair=inputs())
def test_every_format_renders_hostile_input_without_control_characters(
    name: str, pair: tuple[ExperimentResult, Detail]
) -> None:
    assert rendered(name, pair) or name == "b4"  # which says nothing where nothing became worse


@pytest.mark.parametrize("name", ["mail", "terminal"])
@thorough
@given(pair=inputs())
def test_plain_text_is_never_wider_than_72_columns(name: str, pair: tuple[ExperimentResult, Detail]) -> None:
    for line in rendered(name, pair).splitlines():
        assert cell_len(line) <= 72


@thorough
@given(pair=inputs())
def test_mail_has_no_line_that_a_mail_tool_takes_as_its_own(pair: tuple[ExperimentResult, Detail]) -> None:
    for line in rendered("mail", pair).splitlines():
        assert not re.match(r">?From |---|diff |Index: |-- ?$", line)


def version_word(sweep: Sweep, point: SweepPoint, kernels: set[str]) -> str:
    """The word of a comparison that means for a test what a version of ``sweep`` is."""
    figures = [one for one in sweep.points if one.state == "ok" and finite(one.value) is not None]
    steps = {step.first: step.verdict or "descriptive" for step in sweep.steps}
    if point not in figures:
        return point.state.replace("ok", "failed") if point.kernel in kernels else "unsupported"
    level = "descriptive" if point.unseen and point is not figures[0] else "same"
    return steps.get(point.kernel, level)


def expected(view: View) -> list[str]:
    """pass, skipped, failure or error of every test, in order, from the figures alone."""
    kernels = {kernel.label for kernel in view.result.experiment.kernels}
    words = [cell.verdict for _, _, cell in view.cells()]
    words += [version_word(sweep, point, kernels) for sweep in view.detail.sweeps for point in sweep.points]
    results = {"improved": "pass", "same": "pass", "regressed": "failure"}
    results |= dict.fromkeys(("inconclusive", "unsupported", "descriptive"), "skipped")
    return ["failure"] * bool(view.gate) + [results.get(word, "error") for word in words]


def tap_results(text: str) -> list[str]:
    """pass, skipped or not ok of every test."""
    tests = [line for line in parsed_tap(text) if line.category == "test"]
    assert [test.number for test in tests] == list(range(1, len(tests) + 1))
    return ["skipped" if test.skip else "pass" if test.ok else "not ok" for test in tests]


def junit_results(text: str) -> list[str]:
    """pass, skipped, failure or error of every test of a valid document, whose suites count what they hold."""
    root = etree.fromstring(text.encode())
    XSD.assertValid(root)
    found = []
    for suite in root.iter("testsuite"):
        results = [next((part.tag for part in test), "pass") for test in suite.iter("testcase")]
        counts = {"tests": len(results)}
        counts |= {f"{word}s": results.count(word) for word in ("failure", "error")}
        assert {name: int(suite.get(name)) for name in counts} == counts
        assert int(suite.get("skipped")) == results.count("skipped")
        found += results
    return found


@thorough
@given(pair=inputs())
def test_junit_is_valid_with_one_test_per_cell_and_version(pair: tuple[ExperimentResult, Detail]) -> None:
    assert junit_results(rendered("junit", pair)) == expected(build(*pair, Options(all_metrics=True)))


@thorough
@given(pair=inputs())
def test_ktap_has_one_numbered_result_per_cell_and_version(pair: tuple[ExperimentResult, Detail]) -> None:
    results = expected(build(*pair, Options(all_metrics=True)))
    wanted = [result if result in ("pass", "skipped") else "not ok" for result in results]
    assert tap_results(rendered("ktap", pair)) == wanted


def parsed_tap(text: str) -> list[Any]:
    first, rest = text.split("\n", 1)
    assert first == "KTAP version 1"  # KTAP's own first line; the rest is TAP
    lines = list(Parser().parse_text(rest))
    assert not [line for line in lines if line.category == "unknown"]
    return lines


@thorough
@given(pair=inputs())
def test_html_holds_only_the_elements_of_the_template(pair: tuple[ExperimentResult, Detail]) -> None:
    page = html.document_fromstring(rendered("html", pair))
    for element in page.iter(etree.Element):
        assert element.tag in ALLOWED_TAGS
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert name != "href" or value.startswith(("#", "data:,"))
            assert name != "src"


@thorough
@given(pair=inputs())
def test_csv_reads_back_and_starts_no_formula(pair: tuple[ExperimentResult, Detail]) -> None:
    rows = list(csv.DictReader(io.StringIO(rendered("csv", pair), newline="")))
    sweeps = pair[1].sweeps
    assert len(rows) == len(pair[0].results) + sum(len(s.points) + len(s.steps) for s in sweeps)
    for row in rows:
        assert None not in row
        assert tuple(row) == COLUMNS
        for value in row.values():
            if value.strip() and value.lstrip()[0] in "=+-@":
                float(value)  # a negative number, not a text


@thorough
@given(pair=inputs())
def test_json_is_strict_and_null_has_a_state(pair: tuple[ExperimentResult, Detail]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = rendered("json", pair)
    assert text.isascii()
    document = json.loads(text, parse_constant=refuse)
    for item in document["results"]:
        if item["state"] != "ok":
            assert item["interval_percent"] is None
    for point in document.get("points", []):
        assert (point["value"] is None) <= (point["state"] != "ok")


@thorough
@given(pair=inputs())
def test_benchfmt_has_no_line_of_an_unknown_form(pair: tuple[ExperimentResult, Detail]) -> None:
    for line in rendered("benchfmt", pair).splitlines():
        words = line.split()
        if line.startswith("Benchmark"):
            assert words[1] == "1"
            assert not re.search(r"-\d+$", words[0])
            assert len(words) % 2 == 0
            assert all(float(value) is not None for value in words[2::2])
        else:
            assert line.startswith(("# ", "Unit ", "kernel:"))


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("name", ["terminal", "mail", "markdown"])
def test_markup_in_a_label_stays_text(name: str, text: str) -> None:
    result, detail = timed()
    kernels = (kernel("6.12"), replace(kernel("7.0"), label=text, spec=text))
    hostile = replace(result, experiment=replace(result.experiment, kernels=kernels), gate=text)
    report = rendered(name, (hostile, detail))
    if name == "markdown":
        prose = re.sub(r"(?s)(`{3,})\n.*?\n\1", "", report)
        assert "<script" not in prose.replace("\\<", "")
        assert "](" not in prose.replace("\\]", "")


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_are_valid_in_the_formats_that_have_a_schema(sample: str) -> None:
    pair = SAMPLES[sample]()
    assert len(tap_results(rendered("ktap", pair))) == len(junit_results(rendered("junit", pair))) > 0


@pytest.mark.parametrize(
    ("sample", "passes", "failures", "errors", "skips"),
    [
        (exact, 2, 2, 0, 0),  # the gate is one
        (gaps, 0, 0, 3, 3),
        (sweep, 4, 1, 0, 1),
        (timed_sweep, 2, 1, 0, 1),
        (broken_sweep, 2, 0, 4, 3),
    ],
)
def test_readers_of_ktap_and_junit_count_the_same(
    sample: Callable[[], tuple[ExperimentResult, Detail | None]], passes: int, failures: int, errors: int, skips: int
) -> None:
    tap, xml = Counter(tap_results(rendered("ktap", sample()))), Counter(junit_results(rendered("junit", sample())))
    assert (xml["pass"], xml["failure"], xml["error"], xml["skipped"]) == (passes, failures, errors, skips)
    assert (tap["pass"], tap["not ok"], tap["skipped"]) == (passes, failures + errors, skips)


def test_the_view_is_clean_once_for_all() -> None:
    view: View = build(*timed())
    assert view.result.experiment.kernels[0].label == "6.12"
