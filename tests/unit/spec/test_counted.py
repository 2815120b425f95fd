# SPDX-License-Identifier: GPL-2.0-or-later
"""Suites of programs with a fixed number of operations: what is refused, and what runs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kdelta.errors import UserError
from kdelta.model import Case
from kdelta.spec import counted, suites
from kdelta.spec.program import PACK
from kdelta.spec.workloads import catalogue

PIPE = 'title = "t"\nrun = "stress-ng --pipe 1 --pipe-ops {operations}"\n'


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """All suites, with one of this text."""
    (tmp_path / "suites").mkdir()
    monkeypatch.setattr(suites, "shipped", lambda _name: tmp_path)

    def suite(text: str) -> suites.Suite:
        (tmp_path / "suites" / "mine.toml").write_text(f'title = "mine"\n{text}')
        return suites.suites()["mine"]

    return suite


def test_a_suite_of_programs_has_them_as_cases(read) -> None:  # type: ignore[no-untyped-def]
    suite = read(f'package = "stress-ng"\n[programs.pipe]\n{PIPE}operations = 1000\n')
    assert suite.cases == ("mine/*",)
    assert suite.remedy == "apt-get install stress-ng"
    twice, once = suite.programs["pipe"].programs
    assert twice.argv == ("stress-ng", "--pipe", "1", "--pipe-ops", "2000")
    assert once.argv[-1] == "1000"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"[programs.pipe]\n{PIPE}operations = 0\n", "operations"),
        (f"[programs.pipe]\n{PIPE}", "operations"),
        ('[programs.a]\ntitle = "t"\nrun = "ls"\noperations = 1\n', "programs.a: run: a command with {operations}"),
        (f"[programs.pipe]\n{PIPE}operations = 500\n", "begin with a digit up to 4"),
        ('[programs.a]\ntitle = "t"\nrun = "ls \'{operations}"\noperations = 1\n', "No closing quotation"),
        ("", "cases or programs: it has neither"),
    ],
)
def test_what_would_make_no_operations_is_refused(read, text: str, why: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError) as error:
        read(f'package = "p"\n{text}')
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_programs_need_a_package_or_a_way_to_have_them(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match="package: the Debian package of its programs, or get"):
        read(f"[programs.pipe]\n{PIPE}operations = 1\n")


def test_figures_are_per_part_of_an_operation() -> None:
    known = catalogue()
    messaging = known["perf/sched-messaging"]
    one = messaging.counted
    assert one is not None
    assert (messaging.part, messaging.parts_per_op) == ("message", one.operations * 400)
    assert all(metric.source.endswith(f"/{messaging.parts_per_op}") for metric in messaging.metrics)
    assert str(one.operations) in messaging.help


def test_a_case_is_two_runs_and_other_cases_are_one() -> None:
    plain = Case(workload="pipe", params={"writers": "1"})
    both = counted.packed(Case(workload="stress-ng/pipe"), "twice", "once")
    found = counted.jobs({0: plain, 3: both}, 4)
    assert found == {0: plain, 3: msgspec.structs.replace(both, params={PACK: "twice"}), 7: found[7]}
    assert found[7].params == {PACK: "once"}
