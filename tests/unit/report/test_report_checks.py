# SPDX-License-Identifier: GPL-2.0-or-later
"""The formats of those who collect checks: KCIDB by its published schema, Patchwork, GitHub, and b4 itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from kcidb_io.schema import V5_0, V5_3
from msgspec.structs import replace

from kdelta.model import UNBOOTED, Annotations, Beside, Case, ExperimentResult, Gap, Looked, State, Unreached
from kdelta.report import kcidb, looked
from kdelta.report.outcomes import outcomes, stable_names
from kdelta.report.registry import find
from kdelta.report.standing import standing
from kdelta.report.view import Options, View, build
from kdelta.results import beside
from kdelta.results.types import Detail, SweepPoint
from kdelta.results.warnings import KernelComplained
from kdelta.verdict.warnings import Dropped, Fault
from unit.report.hostile import inputs
from unit.report.report_samples import cell, exact, experiment, gaps, kernel, timed
from unit.report.sweep_samples import SAMPLES, broken_sweep, sweep

thorough = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def quiet() -> View:
    """A comparison in which nothing became worse."""
    cells = (cell("pipe", verdict="same", baseline_label="6.12", patched_label="7.0"),)
    return build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells))


def text(name: str, view: View) -> str:
    found = find(name).render(view)
    assert isinstance(found, str)
    return found


@thorough
@given(pair=inputs())
def test_kcidb_is_valid_whatever_the_texts(pair: tuple[ExperimentResult, Detail]) -> None:
    document = json.loads(text("kcidb", build(*pair, Options(all_metrics=True, origin="my_ci"))))
    for schema in (V5_0, V5_3):
        schema.validate(document)
    names = [one["id"] for kind in ("checkouts", "builds", "tests") for one in document[kind]]
    assert len(document["builds"]) + len({one["id"] for one in document["tests"]}) == len(names) - len(
        document["checkouts"]
    )
    assert all(name.startswith("my_ci:") for name in names)


@pytest.mark.parametrize("sample", SAMPLES)
def test_kcidb_of_every_sample_is_valid_and_refers_to_what_it_holds(sample: str) -> None:
    document = json.loads(text("kcidb", build(*SAMPLES[sample]())))
    V5_0.validate(document)
    builds = {one["id"] for one in document["builds"]}
    assert document["tests"] and {one["build_id"] for one in document["tests"]} <= builds


def test_kcidb_has_the_figures_and_says_what_became_of_them() -> None:
    result, detail = timed()
    document = json.loads(text("kcidb", build(result, detail)))
    found = {(one["path"], one["status"]): one.get("number") for one in document["tests"]}
    first = next(one for one in result.results if one.verdict == "regressed" and one.primary)
    name = kcidb.path(first.case, first.metric)
    assert found[name, "FAIL"] == {"value": first.patched, "unit": first.unit}
    assert found[name, "DONE"] == {"value": first.baseline, "unit": first.unit}  # the baseline's figure
    assert "ERROR" in {one["status"] for one in json.loads(text("kcidb", build(*gaps())))["tests"]}


def test_a_version_that_does_not_build_is_a_failed_build_of_kcidb() -> None:
    result, detail = sweep()
    gaps = (
        Gap(label="6.9", spec="src:.@v6.9", why="no rule", by_host=False),
        Gap(label="6.8", spec="debian:6.8", why="timed out", by_host=True),
    )
    broken = replace(result.experiment, annotations=replace(result.experiment.annotations, gaps=gaps))
    document = json.loads(text("kcidb", build(replace(result, experiment=broken), detail)))
    V5_0.validate(document)
    assert [one["status"] for one in document["builds"]][-2:] == ["FAIL", "MISS"]


def test_what_was_not_booted_yet_is_no_test_of_kcidb() -> None:
    none: dict[str, Any] = {"verdict": None, "effect_percent": None, "interval_percent": None, "patched": None}
    waiting = cell("pipe", **none, state="lost", why=f"7.0: {UNBOOTED}")
    cells = (waiting, cell("thread_spawn", verdict="same"))
    found = json.loads(text("kcidb", build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells))))
    V5_0.validate(found)
    tests = [(one["path"].split(".")[1], one["status"], one["id"].rpartition(".")[2]) for one in found["tests"]]
    assert tests == [("pipe", "DONE", "b0"), ("thread_spawn", "DONE", "b1"), ("thread_spawn", "PASS", "t1")]
    result, detail = sweep()
    points = (*detail.sweeps[0].points[:-1], SweepPoint(kernel="7.3", value=None, state="lost", why=UNBOOTED))
    half = replace(detail, sweeps=(replace(detail.sweeps[0], points=points),))
    found = json.loads(text("kcidb", build(result, half)))
    assert [one["id"].rpartition(".")[2] for one in found["tests"]] == ["0", "1", "2", "3", "4"]


def test_patchwork_takes_the_gravest_word() -> None:
    check = json.loads(text("patchwork", build(*timed())))
    assert (check["state"], check["context"]) == ("fail", "kdelta") and "regressed" in check["description"]
    assert json.loads(text("patchwork", quiet()))["state"] == "success"
    assert set(check) == {"state", "context", "description"} and len(check["description"]) <= 200


def test_what_has_no_verdict_at_all_is_no_success() -> None:
    cells = (cell("pipe", state="unsupported", verdict=None, why="no", baseline_label="6.12", patched_label="7.0"),)
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells))
    assert standing(view).word == "warning" and "nothing was compared" in text("b4", view)


def test_an_experiment_that_was_not_begun_is_no_success() -> None:
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=()))
    assert json.loads(text("patchwork", view))["state"] == "warning" and "nothing was measured" in text("b4", view)


def test_a_case_without_a_verdict_is_no_success_beside_one_that_has_one() -> None:
    """After --time-budget one case had its verdict and one too few seeds."""
    none: dict[str, Any] = {"verdict": None, "interval_percent": None, "p_value": None}
    cells = (cell("pipe", **none), cell("thread_spawn", verdict="same"))
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells))
    assert standing(view).word == "warning" and text("b4", view).startswith("pipe: latency_p50")


def test_what_explains_a_case_without_a_verdict_makes_no_success() -> None:
    """Of several CPUs single lines had verdicts, and transfers and instructions too few seeds."""
    none: dict[str, Any] = {"verdict": None, "interval_percent": None, "p_value": None}
    timed = ExperimentResult(experiment=experiment("6.12", "7.0"), results=(cell("pipe", "latency_p50", **none),))
    exact_rows = (cell("pipe", "instructions", unit="instructions/op", verdict="same"),)
    counted = ExperimentResult(experiment=experiment("6.12", "7.0", mode="exact"), results=exact_rows)
    view = build(beside.explained(timed, counted))
    assert [one.explains for case in outcomes(view) for one in case.outcomes] == [False, True]
    assert standing(view).word == "warning"


@pytest.mark.parametrize("state", ["panicked", "hung", "failed"])
@pytest.mark.parametrize("in_some", [False, True])
def test_what_the_patched_kernel_alone_does_not_end_fails_everywhere(state: State, in_some: bool) -> None:
    none: dict[str, Any] = {"verdict": None, "effect_percent": None, "interval_percent": None, "p_value": None}
    fault = Dropped(1, 5, (Fault(3, "7.0", state),))
    row = cell("pipe", **none, warnings=(fault,)) if in_some else cell("pipe", **none, state=state, patched=None)
    cells = (row, cell("thread_spawn", verdict="same"))
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells))
    assert standing(view).word == "fail" and json.loads(text("patchwork", view))["state"] == "fail"
    assert text("github", view).startswith("::error title=kdelta pipe%3A latency_p50::") and state in text("b4", view)
    assert "\nnot ok 1 pipe: latency_p50\n" in text("ktap", view)
    assert f'<error message="{state}' in text("junit", view)
    statuses = {one["path"]: one["status"] for one in json.loads(text("kcidb", view))["tests"]}
    assert statuses["kdelta.pipe.latency_p50"] == "FAIL"


def test_a_patch_that_has_its_kernel_warn_fails_though_all_is_the_same() -> None:
    """In checks of Patchwork and b4 a WARN was not to be found."""
    warned = KernelComplained("7.0", 5, 5, ("WARNING: CPU: 0 PID: 0 at lib/crypto/chacha.c:21",), 0)
    cells = (cell("pipe", verdict="same", baseline_label="6.12", patched_label="7.0"),)
    found = ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells, warnings=(warned,))
    assert standing(build(found)).word == "warning"
    notes = Annotations(looked=Looked(functions=9, differ=1, candidates=5, cases=("pipe",), measured=("f",)))
    patched = replace(found.experiment, annotations=notes, cases=(Case(workload="pipe"),))
    view = build(replace(found, experiment=patched))
    assert standing(view).word == "fail" and json.loads(text("patchwork", view))["state"] == "fail"
    assert text("b4", view).startswith(
        "ERROR: console: The kernel of 7.0 complains on its console, 6.12 does not: WARN"
    )
    assert "lib/crypto/chacha.c" in text("sarif", view) and "::error" in text("github", view)


def test_what_hung_on_the_baseline_too_is_a_warning() -> None:
    none: dict[str, Any] = {"verdict": None, "effect_percent": None, "interval_percent": None, "patched": None}
    dead = cell("pipe", **none, state="hung", warnings=(Dropped(1, 5, (Fault(3, "6.12", "hung"),)),))
    view = build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=(dead,)))
    assert standing(view).word == "warning" and "ERROR" in text("kcidb", view)


def test_a_version_of_a_sweep_that_hangs_behind_one_that_does_not_fails() -> None:
    view = build(*broken_sweep())
    failed = [one.title for one in standing(view).findings if one.word == "fail"]
    assert [title.rpartition(" on ")[2] for title in failed] == ["6.5", "6.6", "6.7"]
    statuses = [one["status"] for one in json.loads(text("kcidb", view))["tests"]]
    assert statuses == ["PASS", "SKIP", "ERROR", "FAIL", "FAIL", "FAIL", "DONE", "PASS"]


def test_what_no_case_executes_is_a_warning_everywhere() -> None:
    result, detail = exact()
    looked = Looked(functions=9, differ=1, candidates=5, unreached=(Unreached(name="foo_probe"),))
    cells = tuple(one for one in result.results if one.verdict == "same")
    annotated = replace(result.experiment, annotations=replace(result.experiment.annotations, looked=looked))
    view = build(replace(result, experiment=annotated, results=cells, gate=""), detail)
    assert standing(view).word == "warning" and "foo_probe" in text("b4", view)
    assert text("github", view).startswith(
        "::warning title=kdelta not looked at::no case executes it in its operations (1 of "
    )


@pytest.mark.parametrize(
    ("unreached", "left_out", "wanted"),
    [
        ((), (), ""),
        (("foo_probe (new)",), (), "1 of 9 functions or variables that differ was not looked at: foo_probe (new)."),
        (
            ("foo_init (boot only)",),
            (),
            "1 of 9 functions or variables that differ was not looked at: foo_init (boot only). What is set at boot "
            "may change other paths: name cases, as in kdelta compare BASELINE PATCHED --case path_lookup.",
        ),
        (("a", "b"), ("c", "d"), "4 of 9 functions or variables that differ were not looked at: a, b, c and 1 more."),
    ],
)
def test_the_answer_says_what_of_a_change_it_does_not_speak_of(
    unreached: tuple[str, ...], left_out: tuple[str, ...], wanted: str
) -> None:
    result, detail = exact()
    missed = tuple(Unreached(name=one) for one in unreached)
    looked = Looked(functions=90, differ=9, candidates=5, cases=("pipe",), unreached=missed, left_out=left_out)
    notes = replace(result.experiment.annotations, looked=looked)
    asked = replace(result.experiment, cases=(Case(workload="pipe"),), annotations=notes)
    view = build(replace(result, experiment=asked), detail)
    assert view.headline.text.endswith(f". {wanted}") if wanted else "looked at" not in view.headline.text
    assert not wanted or wanted in " ".join(text("mail", view).split())


def test_the_answer_says_what_hardly_ran_and_what_was_not_built() -> None:
    """A loop of 1000 turns on an error path was "about as many instructions in all 4 cases", and no word more."""
    result, detail = exact()
    partly = {"sys_kill": (3, 9), "sys_read": (5, 9)}
    looked = Looked(functions=90, differ=2, candidates=5, cases=("pipe",), partly=partly, off=("NUMA",))
    notes = replace(result.experiment.annotations, looked=looked)
    asked = replace(result.experiment, cases=(Case(workload="pipe"),), annotations=notes)
    told = build(replace(result, experiment=asked), detail).headline.text
    assert told.endswith(
        "Most of what differs in sys_kill did not run. This config does not build what stands under CONFIG_NUMA."
    )


def test_where_nothing_was_booted_a_reply_says_nothing_of_boots() -> None:
    looked = Looked(functions=9, differ=1, candidates=5, unreached=(Unreached(name="foo_probe"),), atlas="2 kernels")
    asked = replace(experiment("6.12", "7.0"), annotations=Annotations(looked=looked), cases=())
    mail = " ".join(text("mail", build(ExperimentResult(experiment=asked, results=()))).split())
    assert "nothing was booted" in mail and "by the atlas of 2 kernels" in mail and "no case here does" in mail
    assert not any(word in mail for word in ("Legend", "Seed 0", "Noise floor", "QEMU", "boots done"))


def test_a_new_leak_is_an_error_of_every_format() -> None:
    found = Beside(what="leaks", experiment="x", cases=2, leaks=("pipe: leaks files on 7.0",))
    notes = Annotations(beside=(found, Beside(what="locks", why="no QEMU")))
    asked = replace(experiment("6.12", "7.0"), annotations=notes)
    view = build(ExperimentResult(experiment=asked, results=()))
    assert standing(view).word == "fail" and "1 new leak" in standing(view).line
    assert "ERROR: leak: pipe: leaks files on 7.0" in str(find("b4").render(view))
    assert "locks: could not be checked: no QEMU" in str(find("b4").render(view))
    assert "NEW LEAK: pipe: leaks files on 7.0; of 2 cases" in " ".join(str(find("mail").render(view)).split())
    rules = [one["check_name"] for one in json.loads(find("codequality").render(view))]
    assert rules == ["kdelta/leak", "kdelta/undecided"]
    assert json.loads(find("json").render(view))["beside"][0]["leaks"] == ["pipe: leaks files on 7.0"]


def test_a_check_that_could_not_be_made_is_not_told_as_nothing_found() -> None:
    """A patched kernel that does not start leaked nothing: "none new; by 2 cases"."""

    def told(*unchecked: str) -> tuple[str, str]:
        notes = Annotations(beside=(Beside(what="leaks", experiment="x", cases=2, unchecked=unchecked),))
        view = build(ExperimentResult(experiment=replace(experiment("6.12", "7.0"), annotations=notes), results=()))
        return looked.above(notes)[0], standing(view).word

    assert told()[0] == "Leaks: none new; by 2 cases (kdelta report x)."
    some = told("pipe")[0]
    assert some == "Leaks: none new; by 2 cases (kdelta report x), of which 1 could not be checked: pipe."
    none, word = told("pipe", "fork")
    assert none == "Leaks: could not be checked: of 2 cases (kdelta report x) none came to its end on all kernels."
    assert word == "warning"


@thorough
@given(pair=inputs())
def test_no_text_makes_a_workflow_command_or_an_error_of_its_own(pair: tuple[ExperimentResult, Detail]) -> None:
    view = build(*pair)
    for line in text("github", view).splitlines():
        assert re.match(r"::(error|warning|notice) title=[^:,]*::", line)
    failed = [one for one in standing(view).findings if one.word == "fail"]
    assert len([line for line in text("b4", view).splitlines() if "ERROR:" in line]) == len(failed)


def b4_check(folder: Path, lines: str) -> str:
    """What ``b4 prep --check`` says of a branch with one commit, where the check prints ``lines``."""
    (folder / "lines").write_text(lines)
    command = folder / "check"
    command.write_text('#!/bin/sh\ncat >/dev/null\nexec cat "$(dirname "$0")/lines"\n')
    command.chmod(0o755)
    tree = folder / "linux"
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org", "EMAIL": "a@example.org"}
    env = os.environ | who | {"HOME": str(folder)}

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=tree, env=env, check=True, capture_output=True, text=True)
        return done.stdout + done.stderr

    tree.mkdir()
    run("git", "init", "-q", "-b", "main")
    for name, value in (
        ("user.name", "a"),
        ("user.email", "a@example.org"),
        ("b4.prep-perpatch-check-cmd", str(command)),
    ):
        run("git", "config", name, value)
    program = str(Path(sys.executable).parent / "b4")
    for content in ("1", "2"):
        (tree / "pipe.c").write_text(content)
        run("git", "add", "pipe.c")
        run("git", "commit", "-q", "-m", f"pipe: {content}")
        if content == "1":
            run(program, "-n", "prep", "-n", "faster", "-f", "main")
    return run(program, "prep", "--check")


@pytest.mark.parametrize(
    ("verdict", "counts"), [("regressed", "Warning: 0, Error: 1"), ("same", "Success: 1, Warning: 0, Error: 0")]
)
def test_b4_itself_reads_the_lines(verdict: str, counts: str, tmp_path: Path) -> None:
    cells = (cell("pipe", verdict=verdict, effect_percent=4.2, baseline_label="6.12", patched_label="7.0"),)
    said = b4_check(tmp_path, text("b4", build(ExperimentResult(experiment=experiment("6.12", "7.0"), results=cells))))
    assert counts in said
    assert ("ERROR: pipe: latency_p50: +4.20 %" in said) == (verdict == "regressed")


def test_names_of_tests_hold_no_release() -> None:
    def names(*releases: str) -> list[str]:
        kernels = tuple(kernel(one, release=f"{one}-amd64") for one in releases)
        cells = tuple(
            cell("pipe", verdict="same", baseline_label=releases[0], patched_label=one) for one in releases[1:]
        )
        asked = replace(experiment(*releases), kernels=kernels)
        view = build(ExperimentResult(experiment=asked, results=cells))
        return [one.name for case in outcomes(view) for one in case.outcomes]

    assert names("6.12.117", "7.0.13") == names("6.12.118", "7.0.14") == ["latency_p50"]
    assert names("6.12.117", "7.0.13", "7.1.2") == ["latency_p50 on 7.0", "latency_p50 on 7.1"]
    assert names("6.12.117", "6.12.118", "6.12.119") == ["latency_p50 on 6.12", "latency_p50 on 6.12#2"]
    assert stable_names(["fix 1.2.3"], [kernel("fix 1.2.3", release="6.12.1")]) == {"fix 1.2.3": "fix 1.2.3"}
