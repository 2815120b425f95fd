# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload catalogue and the grammar of cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.model import Effort
from kdelta.spec.workloads import FIVE, Workload, catalogue, five_cases, load, parse_case

WIS = Path(__file__).parents[2] / "data" / "wis"

GOOD = """
name = "mine"
title = "Mine"
help = "A workload."
[params.count]
type = "int"
min = 1
max = 8
default = 2
help = "how many"
[[metrics]]
name = "time"
unit = "ns"
better = "lower"
source = "window:ns_per_op"
primary = true
"""


@pytest.fixture(scope="module")
def shipped() -> dict[str, Workload]:
    return catalogue()


def write(folder: Path, text: str, name: str = "mine") -> Path:
    (folder / f"{name}.c").write_text("/* C */\n")
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def test_the_shipped_catalogue_holds_the_five_cases_and_each_has_one_primary_metric(
    shipped: dict[str, Workload],
) -> None:
    assert set(FIVE) <= set(shipped)
    for workload in shipped.values():
        assert [m.primary for m in workload.metrics].count(True) == 1
        assert workload.source_path.is_file()
        assert all((workload.source_path.parents[1] / "data" / name).is_file() for name in workload.data)


def test_the_five_cases_are_the_defaults_with_every_parameter_given(shipped: dict[str, Workload]) -> None:
    cases = five_cases(shipped)
    assert [c.name for c in cases] == list(FIVE)
    assert cases[2].params == {
        "writers": "1",
        "readers": "1",
        "message": "65536",
        "pipe_bytes": "1048576",
        "mode": "threads",
        "pattern": "stream",
    }


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


def test_sizes_and_switches_have_one_canonical_form(shipped: dict[str, Workload]) -> None:
    assert parse_case("pipe:message=64K", shipped) == parse_case("pipe:message=65536", shipped)
    assert parse_case("pidfd_open:held=yes", shipped) == parse_case("pidfd_open:held=1", shipped)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pip", "did you mean pipe?"),
        ("nothing", "one of fork_vmas, "),
        ("pipe:writer=2", "did you mean writers"),
        ("pipe:writers=0", "between 1 and 256"),
        ("pipe:writers=two", "a whole number"),
        ("pipe:message=2M", "between 1 and 1M"),
        ("pipe:message=64Q", "a size such as"),
        ("pipe:pattern=hurd", "did you mean herd?"),
        ("pidfd_open:held=maybe", "0 or 1"),
        ("pipe:", "nothing after the colon"),
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("primary = true", "", "exactly one must have primary"),
        ("primary = true", "primary = true\ncolour = 1", "colour"),
        ('better = "lower"', 'better = "faster"', "$.metrics[0].better"),
        ("window:ns_per_op", "window:ns", "$.metrics[0].source"),
        ("default = 2", "default = 9", "between 1 and 8"),
        ("max = 8", "", "needs min and max"),
        ("[params.count]", "[params.windows]", "belongs to the harness"),
        ('type = "int"', 'type = "choice"', "choices are needed"),
        ('help = "how many"', 'help = "x"\nonly_with = { shape = ["round"] }', "only_with names shape"),
        ('name = "mine"', 'name = "other"', "it must be the file's"),
        ('title = "Mine"', "", "title"),
        ('title = "Mine"', "title = ", "mine.toml"),
    ],
)
def test_a_damaged_entry_is_refused_naming_the_file_and_the_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(UserError) as error:
        load(path)
    assert str(path) in str(error.value)
    assert message in str(error.value)


def test_an_own_workload_joins_the_catalogue_but_may_not_take_a_name(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert "mine" in catalogue([tmp_path])
    write(tmp_path, GOOD.replace('name = "mine"', 'name = "pipe"'), "pipe")
    with pytest.raises(UserError, match="pipe is already in"):
        catalogue([tmp_path])


def test_an_entry_without_its_c_file_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    (tmp_path / "mine.c").unlink()
    with pytest.raises(UserError, match=r"mine\.c is missing"):
        catalogue([tmp_path])
    with pytest.raises(UserError, match="no such folder"):
        catalogue([tmp_path / "nowhere"])


def test_a_testcase_of_will_it_scale_is_a_workload_named_after_its_file() -> None:
    known = catalogue([WIS])
    assert known["wis/ping-pong"].title == "One byte there and back through two pipes"
    (case,) = parse_case("wis/ping-pong:tasks=4,mode=threads", known)
    assert case.params == {"tasks": "4", "mode": "threads"}
    assert known["wis/tick"].exact_ops == 0


def test_a_metric_per_part_divides_by_the_lookups_of_a_sweep(shipped: dict[str, Workload]) -> None:
    sources = {m.name: m.source for m in shipped["path_lookup"].metrics}
    assert sources["ns_per_lookup"] == "window:ns_per_op/205"
    assert sources["sweeps"] == "window:ops_per_s"


def test_needs_depend_on_the_parameters(shipped: dict[str, Workload]) -> None:
    fork = shipped["fork_vmas"]
    plain, named = parse_case("fork_vmas:names=none|same", shipped)
    assert fork.needs_of(plain) == ()
    assert [n.config for n in fork.needs_of(named)] == ["ANON_VMA_NAME"]


def test_a_workload_changes_only_the_effort_that_it_names(shipped: dict[str, Workload]) -> None:
    effort = shipped["fork_vmas"].effort(Effort(repetitions=5))
    assert (effort.window_ms, effort.repetitions) == (30, 5)


def test_the_example_of_the_how_to_is_a_valid_workload(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "add-a-workload.md").read_text()
    (tmp_path / "mine.c").write_text(text.split("```c\n")[1].split("```")[0])
    (tmp_path / "mine.toml").write_text(text.split("```toml\n")[1].split("```")[0])
    (case,) = parse_case("mine:size=64K", catalogue([tmp_path]))
    assert case.params == {"how": "copy", "size": "65536"}


def test_an_entry_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"mine\.toml"):
        load(path)
