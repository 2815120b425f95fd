# SPDX-License-Identifier: GPL-2.0-or-later
"""A map goes over to the next patch's base, but for the cases that execute what differs, and for every doubt."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution import images
from kdelta.attribution.changes import Change, Changes
from kdelta.attribution.disassembly import Image
from kdelta.errors import UserError
from kdelta.experiment import differing, reach_carried, reach_rows
from kdelta.experiment.reach_rows import Counted
from kdelta.experiment.work import Site, Work
from kdelta.guest.jobs import JobList
from kdelta.kernel import cache, naming
from kdelta.kernel.cache import Entry
from kdelta.kernel.symbols import NoSymbols
from kdelta.machine.probe import Qemu
from kdelta.model import Case, Kernel, Quiet, RunResult
from unit.attribution.test_changes import SOURCE
from unit.attribution.test_code import Maker
from unit.attribution.test_reach import row, table

NAMES = table("host")
ROWS = (row("a", host=(1, 5), rest=(1, 5)), row("b", call=(1, 5)), replace(row("c"), state="failed", why="no disk"))


def changed(**more: object) -> Changes:
    one = Change(name="helper", kind="new", hosts=("host",))
    return replace(Changes(changes=(one,), functions=9), **more)


def test_rows_hold_beyond_a_change_that_they_do_not_execute() -> None:
    assert [one.case for one in reach_carried.untouched(changed(), ROWS[:2], frozenset())] == ["b"]
    assert len(reach_carried.untouched(changed(changes=()), ROWS[:2], frozenset())) == 2
    assert [one.case for one in reach_carried.untouched(changed(changes=()), ROWS[:2], frozenset({"call"}))] == ["a"]
    assert not reach_carried.untouched(changed(changes=()), ROWS[:2], None)  # what is patched at boot: nobody knows


@pytest.mark.parametrize(
    "more",
    [
        {"whole": True}, {"sizes_only": True},
        {"changes": (Change(name="starts", kind="code", hosts=("starts",), boot_only=True),)},
        {"changes": (Change(name="table", kind="data", hosts=()),)},
        {"changes": (Change(name="ops", kind="data", hosts=("opens",), handed_on=True),)},
    ],
)  # fmt: skip
def test_no_row_holds_where_nobody_can_follow_what_a_change_does(more: dict[str, object]) -> None:
    assert not reach_carried.untouched(changed(**more), ROWS[:2], frozenset())


class Bench:
    """Tiny images in a cache of kernels, one of them with a map."""

    def __init__(self, folder: Path) -> None:
        self.make = Maker(folder, "x86_64")
        for name in ("init", "qemu", "plugin"):
            (folder / name).write_bytes(name.encode())
        qemu = Qemu(path=folder / "qemu", version=(7, 2), text="7.2.22")
        self.site = Site(
            programs={"x86_64": folder / "init"}, scratch=folder, snapshots=folder, qemus={"x86_64": qemu}
        )  # fmt: skip
        self.plugin = folder / "plugin"

    def kernel(self, source: str, config: str = "CONFIG_A=y\n", spec: str = "src:x") -> Kernel:
        data = self.make(source)
        digest = hashlib.sha256(data).hexdigest()
        stored = cache.put(Entry(sha256=digest, release="6.12.117", arch="x86_64", form="vmlinux"), data, None, config)
        path = str(stored.image)
        return Kernel(
            label=digest[:4], spec=spec, release="6.12.117", image_path=path, image_sha256=digest, vmlinux_path=path,
            vmlinux_sha256=digest,
        )  # fmt: skip

    def rows(self, kernel: Kernel, seed: int = 1) -> list[Counted]:
        found = []
        for case in "abc":
            jobs = JobList(mode="exact", seed=seed, lines=(f"job 0 {case} reps=1",))
            work = Work(kernel=kernel, jobs=jobs, limit_s=1.0, plugin=self.plugin)
            path = reach_rows.path_of(kernel, reach_rows.base_of(self.site, work), work, 1, NAMES)
            found.append(
                Counted(
                    case=Case(workload=case),
                    work=work,
                    read=lambda _: RunResult(case=0, state="ok"),
                    parts=1,
                    path=path,
                )
            )
        return found

    def mapped(self, kernel: Kernel, seed: int = 1) -> None:
        for one, counted in zip(self.rows(kernel, seed), ROWS, strict=True):
            reach_rows.keep(one.path, counted, NAMES)

    def taken(self, kernel: Kernel) -> list[str]:
        rows = self.rows(kernel)
        before = [reach_rows.recall(one.path, NAMES) is not None for one in rows]
        count = reach_carried.take_over(kernel, rows, self.site, NAMES, Quiet())
        known = [row.case for one in rows if (row := reach_rows.recall(one.path, NAMES)) is not None]
        assert count == len(known) - sum(before)
        return known


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(naming, "load", lambda _: NAMES)  # too small to prove names by their calls
    return Bench(tmp_path)


def test_rows_of_operations_divided_otherwise_are_no_rows_of_a_case(bench: Bench) -> None:
    (plain, *_), kernel = bench.rows(bench.kernel(SOURCE)), bench.kernel(SOURCE)
    base = reach_rows.base_of(bench.site, replace(plain.work, kernel=kernel))
    places = [reach_rows.path_of(kernel, base, plain.work, parts, NAMES) for parts in (1, 1, 4)]
    assert places[0] == places[1] != places[2]  # calls per operation are of so many parts


def test_a_program_among_the_cases_leaves_the_rows_of_all_others_where_they_are(bench: Bench, tmp_path: Path) -> None:
    (plain, *_), kernel = bench.rows(bench.kernel(SOURCE)), bench.kernel(SOURCE)
    files = {name: tmp_path / name.replace("/", "-") for name in ("program/0a1b", "names.txt")}
    for name, path in files.items():
        path.write_text(name)
    pack = {"program/0a1b": files["program/0a1b"]}
    program = replace(plain.work, own=pack, trees=(files["program/0a1b"],))
    shared = replace(plain.work, data={"names.txt": files["names.txt"]})
    bases = [reach_rows.base_of(bench.site, replace(work, kernel=kernel)) for work in (plain.work, program, shared)]
    assert bases[0] == bases[1] != bases[2]  # what all workloads share is in every guest


OTHER = SOURCE.replace("a + 7", "a * 9 + 1")


def test_the_next_base_takes_over_what_does_not_execute_the_difference(bench: Bench) -> None:
    bench.mapped(bench.kernel(SOURCE))
    after = bench.kernel(OTHER)
    assert bench.taken(after) == ["b"]  # a executes it, and of c nothing is known
    assert bench.taken(after) == ["b"]
    (row,) = [row for one in bench.rows(after) if (row := reach_rows.recall(one.path, NAMES)) is not None]
    assert row.beyond == ("host",) and row.functions == ROWS[1].functions
    third = bench.kernel(OTHER.replace("table.run(a)", "table.run(a) + 4"))
    assert bench.taken(third) == []  # b executes what differs from the second one, a what differs from the first


def test_what_the_newest_map_lacks_is_taken_over_from_an_older_one(bench: Bench) -> None:
    bench.mapped(bench.kernel(SOURCE))
    (one, *_) = bench.rows(bench.kernel(SOURCE.replace("a + 7", "a + 8")))
    reach_rows.keep(one.path, ROWS[0], NAMES)
    os.utime(one.path.parent, (9e9, 9e9))
    assert bench.taken(bench.kernel(OTHER)) == ["b"]


def test_what_differs_is_told_with_whose_execution_stands_for_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = bench.kernel(SOURCE), bench.kernel(OTHER)
    monkeypatch.setattr(naming, "load", lambda _: NoSymbols("too small"))
    assert differing.between(before, after).changes == (Change(name="host", kind="code", hosts=("host",)),)
    assert not differing.between(before, before).changes
    assert differing.graph_of(before) is None


def test_what_was_compared_is_known_again_for_the_same_code_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = bench.kernel(SOURCE), bench.kernel(OTHER)
    found, code = differing.between(before, after), differing.code_between(before, after)
    assert found.changes and [one.name for one in code.functions] == ["host"]

    def refuse(_: Kernel) -> Image:
        raise UserError("read again")

    monkeypatch.setattr(images, "image_of", refuse)
    assert differing.between(before, after) == found and differing.code_between(before, after) == code
    for other in (replace(before, spec="debian:6.12"), replace(before, vmlinux_sha256="")):
        with pytest.raises(UserError, match="read again"):  # its names are not its linker's, or it is not known
            differing.between(other, after)
    with pytest.raises(UserError, match="read again"):
        differing.between(after, before)
    monkeypatch.setattr(differing, "_own_code", lambda: "of another kdelta")
    with pytest.raises(UserError, match="read again"):
        differing.between(before, after)


def test_a_new_function_whose_callers_nobody_knew_is_looked_at_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = f"{SOURCE}int more(int a) {{ return a * 11; }}\n"
    before, after = bench.kernel(SOURCE), bench.kernel(new)
    monkeypatch.setattr(differing, "graph_of", lambda _: None)
    assert differing.between(before, after).changes
    monkeypatch.setattr(images, "image_of", lambda _: pytest.fail("read again"))
    with pytest.raises(pytest.fail.Exception, match="read again"):
        differing.between(before, after)


@pytest.mark.parametrize("doubt", ["config", "guest", "shipped"])
def test_nothing_is_taken_over_from_another_kind_of_kernel_or_guest(bench: Bench, doubt: str) -> None:
    seed, spec = (2 if doubt == "guest" else 1), ("debian:6.12" if doubt == "shipped" else "src:x")
    bench.mapped(bench.kernel(SOURCE, config="CONFIG_A=n\n" if doubt == "config" else "CONFIG_A=y\n"), seed)
    assert bench.taken(bench.kernel(OTHER, spec=spec)) == []
