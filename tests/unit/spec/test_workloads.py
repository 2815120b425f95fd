# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload catalogue and the grammar of cases."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kdelta.errors import UserError
from kdelta.model import Effort
from kdelta.spec.cases import parse_case
from kdelta.spec.suites import DEFAULT, suites
from kdelta.spec.workloads import EffortOverride, Workload, catalogue, load

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


def test_the_shipped_catalogue_holds_the_default_suite_and_each_workload_has_one_primary_metric(
    shipped: dict[str, Workload],
) -> None:
    assert set(suites()[DEFAULT].cases) <= set(shipped)
    for workload in shipped.values():
        assert [m.primary for m in workload.metrics].count(True) == 1
        assert workload.source_path.is_file()
        assert all(path.is_file() for path in workload.data_files.values())


def test_a_case_has_every_parameter_given(shipped: dict[str, Workload]) -> None:
    (case,) = parse_case("pipe", shipped)
    assert case.params == {
        "writers": "1",
        "readers": "1",
        "message": "65536",
        "pipe_bytes": "1048576",
        "mode": "threads",
        "pattern": "stream",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("primary = true", "", "exactly one must have primary"),
        ("primary = true", "primary = true\ncolour = 1", "colour"),
        ('better = "lower"', 'better = "faster"', "$.metrics[0].better"),
        ("window:ns_per_op", "window:ns", "$.metrics[0].source"),
        ("default = 2", "default = 9", "between 1 and 8"),
        ("max = 8", "", "needs min and max"),
        ("[params.count]", "[params.windows]", "reserved for the harness"),
        ('type = "int"', 'type = "choice"', "choices are needed"),
        ('help = "how many"', 'help = "x"\nonly_with = { shape = ["round"] }', "only_with names shape"),
        ('help = "how many"', 'help = "x"\n[[needs]]\nconfig = "X"\nwhen = { count = ["4K"] }', "of a size its bytes"),
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
    with pytest.raises(UserError, match="no such directory or C file"):
        catalogue([tmp_path / "nowhere"])


def test_a_folder_without_a_workload_and_a_file_without_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no C file there has a CASE, a WORKLOAD or a will-it-scale testcase"):
        catalogue([tmp_path])
    (tmp_path / "notes.c").write_text("int unrelated;\n")
    with pytest.raises(UserError, match="no C file there has a CASE"):
        catalogue([tmp_path])
    with pytest.raises(UserError, match=r"notes\.c: neither a CASE nor a WORKLOAD nor a testcase"):
        catalogue([tmp_path / "notes.c"])
    (tmp_path / "a b.c").write_text("static int x;\nint main(int argc, char **argv)\n{\n\treturn x;\n}\n")
    with pytest.raises(UserError, match=r"is a program of its own: cc -O2 .*, then -- './a b' measures it"):
        catalogue([tmp_path / "a b.c"])
    (tmp_path / "lone.c").write_text('#include "workload.h"\nWORKLOAD(lone);\n')
    with pytest.raises(UserError, match=r"lone\.toml is missing next to it"):
        catalogue([tmp_path])


def test_data_of_an_own_workload_lies_beside_it_and_may_not_take_a_name(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace('help = "A workload."', 'help = "A workload."\ndata = ["table.txt"]'))
    with pytest.raises(UserError, match=r"mine\.c: its data .*/table\.txt is not there"):  # was "free space"
        catalogue([tmp_path])
    (tmp_path / "table.txt").write_text("")
    assert catalogue([tmp_path])["mine"].data_files == {"table.txt": tmp_path / "table.txt"}
    write(tmp_path, GOOD.replace('help = "A workload."', 'help = "A workload."\ndata = ["path_lookup/paths.txt"]'))
    with pytest.raises(UserError, match=r"data 'path_lookup/paths.txt' is also"):
        catalogue([tmp_path])


def test_a_workload_without_a_metric_has_those_of_a_case(tmp_path: Path) -> None:
    write(tmp_path, GOOD[: GOOD.index("[[metrics]]")])
    assert [m.name for m in catalogue([tmp_path])["mine"].metrics] == ["ns_per_op", "p50", "p99"]


@pytest.mark.parametrize(("said", "floor"), [("", 0.5), ("floor_percent = 0.0\n", 0.0), ("floor_percent = 2\n", 2.0)])
def test_a_workload_that_says_no_floor_has_that_of_a_case(tmp_path: Path, said: str, floor: float) -> None:
    """One with two sends a socket was "-0.05 %, improved" between 6.12 and 6.12 with a longer command line."""
    write(tmp_path, GOOD.replace("[params", said + "[params"))
    known = catalogue([tmp_path])
    assert (known["mine"].floor_percent, known["getppid"].floor_percent) == (floor, 0.0)


def test_a_testcase_of_will_it_scale_is_a_workload_named_after_its_file() -> None:
    known = catalogue([WIS])
    assert known["wis/ping-pong"].title == "One byte there and back through two pipes"
    (case,) = parse_case("wis/ping-pong:tasks=4,mode=threads", known)
    assert case.params == {"tasks": "4", "mode": "threads"}
    assert known["wis/tick"].endless


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


def test_the_users_limit_is_kept_where_it_is_the_default_too(shipped: dict[str, Workload]) -> None:
    slow = msgspec.structs.replace(shipped["fork_vmas"], overrides=EffortOverride(limit_ms=300_000))
    assert slow.effort(Effort()).limit_ms == 300_000
    assert slow.effort(Effort(limit_given=True)).limit_ms == 60_000


def test_the_example_of_the_how_to_is_a_valid_workload(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "add-a-workload.md").read_text()
    (tmp_path / "mine.c").write_text(text.split("```c\n")[2].split("```")[0])
    (tmp_path / "mine.toml").write_text(text.split("```toml\n")[1].split("```")[0])
    (case,) = parse_case("mine:size=64K", catalogue([tmp_path]))
    assert case.params == {"how": "copy", "size": "65536"}


def test_an_entry_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"mine\.toml"):
        load(path)
