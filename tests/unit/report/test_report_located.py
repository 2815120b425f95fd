# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings at lines of the source: SARIF by its schema as a model, GitLab's code quality, GitHub's annotations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Schema

from kdelta.model import ExperimentResult, Location, Looked, Unreached
from kdelta.report.located import located
from kdelta.report.registry import find
from kdelta.report.standing import standing
from kdelta.report.view import View, build
from kdelta.results.types import Detail
from unit.report.hostile import inputs
from unit.report.report_samples import exact
from unit.report.sweep_samples import SAMPLES

thorough = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

ELSEWHERE = Location(function="other", path="fs/a.c", line=7)
CAUSE = Location(function="do_dentry_open", path="fs/open.c", line=31)
UNSEEN = Location(function="foo_probe", path="drivers/foo.c", line=12)


def reviewed(*locations: Location, unreached: tuple[str, ...] = (), left_out: tuple[str, ...] = ()) -> View:
    """The sample with a regression because of do_dentry_open and others, as a review that knows ``locations``."""
    result, detail = exact()
    looked = Looked(
        functions=9,
        differ=3,
        candidates=5,
        unreached=tuple(Unreached(name=one) for one in unreached),
        left_out=left_out,
    )
    notes = replace(result.experiment.annotations, looked=looked, locations=locations)
    return build(replace(result, experiment=replace(result.experiment, annotations=notes), gate=""), detail)


def log(view: View) -> dict[str, Any]:
    text = find("sarif").render(view)
    Schema.model_validate_json(text)
    found: dict[str, Any] = json.loads(text)["runs"][0]
    return found


def quality(view: View) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(find("codequality").render(view))
    return found


@thorough
@given(pair=inputs())
def test_every_log_is_valid_and_has_a_file_and_a_rule_for_each_result(pair: tuple[ExperimentResult, Detail]) -> None:
    view = build(*pair)
    run = log(view)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == len(quality(view)) == len(located(view))
    for one in run["results"]:
        assert rules[one["ruleIndex"]] == one["ruleId"] and one["message"]["text"]
        place = one["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] and place["region"]["startLine"] >= 1


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_is_found_is_the_same_in_all_and_fingerprints_differ(sample: str) -> None:
    view = build(*SAMPLES[sample]())
    found = quality(view)
    assert len({one["fingerprint"] for one in found}) == len(found)
    assert [one["description"] for one in found] == [one["message"]["text"] for one in log(view)["results"]]
    words = [one.word for one in standing(view).findings]
    levels = {"fail": "error", "warning": "warning"}
    assert [one["level"] for one in log(view)["results"]] == [levels[word] for word in words]


def test_a_regression_stands_where_its_function_changed() -> None:
    view = reviewed(ELSEWHERE, CAUSE)
    (one,) = log(view)["results"]
    (place,) = one["locations"]
    assert (one["ruleId"], one["level"]) == ("regression", "error")
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "fs/open.c"
    assert place["physicalLocation"]["region"] == {"startLine": 31}
    assert place["logicalLocations"] == [{"name": "do_dentry_open", "kind": "function"}]
    assert quality(view)[0]["location"] == {"path": "fs/open.c", "lines": {"begin": 31}}
    assert "::error file=fs/open.c,line=31,title=" in str(find("github").render(view))


def test_a_change_in_none_of_its_functions_is_told_at_the_changes_first_line() -> None:
    header = Location(function="", path="include/linux/fs.h", line=3)
    assert [one.location for one in located(reviewed(header, ELSEWHERE))] == [ELSEWHERE]
    assert [one.location for one in located(reviewed(header))] == [header]
    assert [(one.location.path, one.location.line) for one in located(reviewed())] == [("Makefile", 1)]
    assert "file=" not in str(find("github").render(reviewed()))


def test_changed_functions_that_no_case_executes_are_told_where_they_are() -> None:
    view = reviewed(CAUSE, UNSEEN, ELSEWHERE, unreached=("foo_probe (new)",), left_out=("other",))
    told = [(one.finding.rule, one.location) for one in located(view)]
    assert told == [("regression", CAUSE), ("not-looked-at", UNSEEN), ("not-looked-at", ELSEWHERE)]
    assert "::warning file=drivers/foo.c,line=12,title=kdelta not looked at::foo_probe (new)" in str(
        find("github").render(view)
    )
    starts = reviewed(CAUSE, UNSEEN, unreached=("foo_probe (boot only)",))
    assert "no case executes it in its operations; what is set at boot may change" in str(find("github").render(starts))
    some = located(reviewed(CAUSE, UNSEEN, unreached=("foo_probe", "its_caller")))
    assert [one.location for one in some] == [CAUSE, CAUSE], "where a line is missing, one sentence names them all"
    assert "foo_probe" in some[1].message and "its_caller" in some[1].message


def test_a_finding_keeps_its_fingerprint_when_figures_and_lines_move() -> None:
    moved = replace(CAUSE, line=99)
    first, second = (log(reviewed(one))["results"][0]["partialFingerprints"] for one in (CAUSE, moved))
    assert first == second
