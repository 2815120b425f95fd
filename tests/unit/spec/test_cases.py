# SPDX-License-Identifier: GPL-2.0-or-later
"""The grammar of cases on the command line: names, knobs, patterns, C files, suites."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.spec.cases import chosen, on_every_cpu, own_sources, parse_case
from kdelta.spec.suites import suites
from kdelta.spec.workloads import Workload, catalogue

WIS = Path(__file__).parents[2] / "data" / "wis"
TWO = '#include "case.h"\nCASE(one, "one")\n{\n}\nCASE_N(two, "N of two", 3, 4)\n{\n}\n'


@pytest.fixture(scope="module")
def shipped() -> dict[str, Workload]:
    return catalogue()


@pytest.mark.parametrize("typed", ["{}:one", "{}/one"])
def test_one_case_of_a_file_is_named_otherwise(tmp_path: Path, typed: str) -> None:
    """``./two.c:one`` was no knob=value, and ``./two.c/one`` was to end in .c; neither said what to write."""
    (tmp_path / "two.c").write_text(TWO)
    with pytest.raises(UserError, match=f"one case of a file: --workloads {tmp_path} --case one$"):
        parse_case(typed.format(tmp_path / "two.c"), catalogue([tmp_path / "two.c"]))


def test_a_grid_is_the_product_of_its_values_in_the_order_written(shipped: dict[str, Workload]) -> None:
    cases = parse_case("pipe:writers=1|2|5,readers=5|10,message=128K", shipped)
    assert [(c.params["writers"], c.params["readers"]) for c in cases] == [
        ("1", "5"),
        ("1", "10"),
        ("2", "5"),
        ("2", "10"),
        ("5", "5"),
        ("5", "10"),
    ]
    assert all(c.params["message"] == "131072" for c in cases)


def test_a_label_names_what_differs_from_the_defaults_and_parses_to_the_same_case(
    shipped: dict[str, Workload],
) -> None:
    (case,) = parse_case("pipe:readers=1,message=128k,writers=3", shipped)
    assert case.label == "pipe:writers=3,message=128K"
    assert parse_case(case.label, shipped) == [case]


def test_a_case_that_takes_tasks_has_one_on_each_of_several_cpus_unless_it_says_how_many(
    shipped: dict[str, Workload],
) -> None:
    texts = ("thread_spawn", "path_lookup:tasks=3,mode=threads", "pidfd_open", "pipe", "contention/dup_threads")
    cases = [case for text in texts for case in parse_case(text, shipped)]
    cases[0] = replace(cases[0], cgroup="child")
    found = on_every_cpu(cases, shipped, 8)
    names = ["thread_spawn:tasks=8 (memcg)", "path_lookup:tasks=3,mode=threads", "pidfd_open", "pipe"]
    assert [case.name for case in found] == [*names, "contention/dup_threads"]
    assert found[0].params["tasks"] == "8"


def test_one_task_that_is_asked_for_is_one_on_several_cpus_too(shipped: dict[str, Workload]) -> None:
    """``tasks=1|2|4`` on 4 CPUs was the case of four tasks twice, under one name, and none of one."""
    found = on_every_cpu(parse_case("path_lookup:tasks=1|2|4", shipped), shipped, 4)
    assert [case.params["tasks"] for case in found] == ["1", "2", "4"]
    assert [case.name for case in found] == ["path_lookup", "path_lookup:tasks=2", "path_lookup:tasks=4"]
    both = [case for text in ("path_lookup", "path_lookup:tasks=4") for case in parse_case(text, shipped)]
    assert [case.name for case in on_every_cpu(both, shipped, 4)] == ["path_lookup:tasks=4"]


def test_sizes_and_switches_have_one_canonical_form(shipped: dict[str, Workload]) -> None:
    assert parse_case("pipe:message=64K", shipped) == parse_case("pipe:message=65536", shipped)
    assert parse_case("pidfd_open:held=yes", shipped) == parse_case("pidfd_open:held=1", shipped)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pip", "did you mean pipe?"),
        ("pidf", "did you mean pidfd_open, "),
        ("syscalls/dup_clos", "did you mean syscalls/dup_close or "),
        ("nosuite/pipe", "did you mean pipe, stress-ng/pipe or unixbench/pipe?"),
        ("nothing", "kdelta cases list"),
        ("./mine", "ends in .c, as in --case ./mine.c"),
        ("pipe:writer=2", "did you mean writers"),
        ("pipe:writers=0", "between 1 and 256"),
        ("pipe:writers=two", "a whole number"),
        ("pipe:message=2M", "between 1 and 1M"),
        ("pipe:message=64Q", "a size such as"),
        ("pipe:pattern=hurd", "did you mean herd?"),
        ("pidfd_open:held=maybe", "0 or 1"),
        ("pipe:", "nothing after the colon"),
        ("syscalls/getpid:target=own", "syscalls/getpid has no knobs"),
        ("contention/open_one:tasks=2", "has no knobs: it has a task on each CPU, so --smp says how many"),
        ("pipe:writers", "not knob=value"),
        ("pipe:writers=1,writers=2", "writers=a|b"),
        ("pipe:writers=1|1", "given twice"),
        ("path_lookup:depth=3", "add paths=depth"),
        ("pidfd_open:targets=8", "add target=child"),
    ],
)
def test_a_case_that_cannot_be_is_refused_with_the_remedy(
    shipped: dict[str, Workload], text: str, message: str
) -> None:
    with pytest.raises(UserError, match=r"^case ") as error:
        parse_case(text, shipped)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pattern_is_every_workload_that_matches_in_the_order_of_the_sources(shipped: dict[str, Workload]) -> None:
    assert [c.name for c in parse_case("syscalls/poll-*", shipped)] == [f"syscalls/poll-{n}" for n in (10, 100, 1000)]
    assert [c.params["tasks"] for c in parse_case("wis/*:tasks=2", catalogue([WIS]))] == ["2"] * 3
    with pytest.raises(UserError, match="unknown workload 'syscalls/pol-"):
        parse_case("syscalls/pol-*", shipped)
    with pytest.raises(UserError, match="name the directory of the will-it-scale testcases with --workloads"):
        parse_case("wis/*", shipped)


def test_testcases_have_the_floor_of_the_same_system_calls_as_cases() -> None:
    known = catalogue([WIS])
    floors = {one.floor_percent for name, one in known.items() if name.startswith("wis/")}
    assert floors == {known["syscalls/poll-100"].floor_percent} and min(floors) > 0


def test_programs_have_the_floor_of_system_calls_of_which_they_are_made() -> None:
    known = catalogue()
    counted = {one.floor_percent for one in known.values() if one.counted is not None}
    assert {known["program"].floor_percent} == counted == {known["syscalls/poll-100"].floor_percent}
    assert min(counted) > 0


def test_a_c_file_is_every_case_in_it(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(TWO)
    text = str(tmp_path / "mine.c")
    known = catalogue(own_sources([], [text, "pipe"]))
    assert [c.name for c in parse_case(text, known)] == ["one", "two-3", "two-4"]
    assert known["two-3"].title == "3 of two"


def test_nobody_names_a_case_the_default_suite_runs_or_all_of_the_folder(
    shipped: dict[str, Workload], tmp_path: Path
) -> None:
    assert [c.name for c in chosen((), (), (), shipped)] == list(suites()["patches"].cases)
    (tmp_path / "mine.c").write_text(TWO)
    known = catalogue([tmp_path])
    assert [c.name for c in chosen((), (), (tmp_path,), known)] == ["one", "two-3", "two-4"]
    assert [c.name for c in chosen(("two-*",), (), (tmp_path,), known)] == ["two-3", "two-4"]


def test_suites_and_cases_add_up_each_case_once(shipped: dict[str, Workload]) -> None:
    got = [c.name for c in chosen(("pipe", "syscalls/getpid"), ("patches",), (), shipped)]
    assert got == [*suites()["patches"].cases, "syscalls/getpid"]
    with pytest.raises(UserError, match="pipe is given twice"):
        chosen(("pipe", "pipe"), (), (), shipped)


def test_a_suite_that_is_not_there_or_lacks_its_folder_says_so(shipped: dict[str, Workload]) -> None:
    with pytest.raises(UserError, match=r"--suite syscall: there is no such suite; one of patches, .*syscalls"):
        chosen((), ("syscall",), (), shipped)
    with pytest.raises(UserError, match=r"--suite wis: needs a directory of testcases: --workloads"):
        chosen((), ("wis",), (), shipped)


def test_a_suite_for_a_case_and_a_case_for_a_suite_name_the_other_option(shipped: dict[str, Workload]) -> None:
    for word in ("syscalls", "patches", "stress-ng/"):
        with pytest.raises(UserError, match=f"that is a suite; for all of its cases: --suite {word.rstrip('/')}$"):
            parse_case(word, shipped)
    with pytest.raises(UserError, match=r"these are suites; for all of their cases: --suite perf --suite fio$"):
        parse_case("perf, fio", shipped)
    with pytest.raises(UserError, match=r"suites are given one by one: --suite perf --suite fio$"):
        chosen((), ("perf,fio",), (), shipped)
    with pytest.raises(UserError, match=r"unknown workload 'switch'; did you mean stress-ng/switch[? ]"):
        parse_case("switch", shipped)
    with pytest.raises(UserError, match=r"--suite path_lookup: that is one case: --case path_lookup$"):
        chosen((), ("path_lookup",), (), shipped)


def test_a_pattern_without_end_and_a_grid_of_millions_are_refused_at_once(shipped: dict[str, Workload]) -> None:
    with pytest.raises(UserError, match="unknown workload"):
        parse_case("[" * 300_000, shipped)
    values = "|".join(map(str, range(1, 65)))
    with pytest.raises(UserError, match=f"a grid of {64**3} cases; at most 10000 are named at once"):
        parse_case(f"pipe:writers={values},readers={values},message={values}", shipped)
