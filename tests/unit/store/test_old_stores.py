# SPDX-License-Identifier: GPL-2.0-or-later
"""A store of an older kdelta opens, and every report of it is what that kdelta printed, to the byte."""

from __future__ import annotations

import difflib
import io
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kdelta.cli.main import run
from kdelta.errors import HostError
from kdelta.experiment import runner
from kdelta.experiment.schedule import blocks
from kdelta.kernel.sources import parse_kernel
from kdelta.model import BootResult, OpenCell, PlannedBoot, Quiet, plans
from kdelta.results import answer
from kdelta.store.store import Store
from unit.store import old_stores

GOLDEN = Path(__file__).parents[2] / "golden" / "stores"


@pytest.fixture(params=old_stores.MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old_store(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The old store, with its user's directory of workloads beside; a result is worked out once for all formats."""
    url = old_stores.unpacked(mode, tmp_path)
    monkeypatch.setenv("KDELTA_STORE", url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").symlink_to(old_stores.OWN_WORKLOADS)
    whole = answer.result

    @lru_cache
    def result(name: str, views: tuple[str, ...]) -> Any:
        return whole(opened, name, views=views)

    monkeypatch.setattr(answer, "result", lambda _store, name, views=(), **_: result(name, tuple(views)))
    with Store(url) as opened:
        yield opened


def printed(store: Store, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    found = {}
    for name, words in old_stores.report_lines(store):
        code = run(words)
        out, err = capsys.readouterr()
        found[name] = f"exit {code}\n{out}{err}"
    return found


def read(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read().decode() for name, file in files.items() if file is not None}


def write(path: Path, texts: dict[str, str]) -> None:
    with tarfile.open(path, "w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in sorted(texts.items()):
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def test_a_store_of_07106fb_is_reported_to_the_byte(
    mode: str, old_store: Store, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    path = GOLDEN / f"{mode}.tar.xz"
    got = printed(old_store, capsys)
    if request.config.option.update_snapshots:
        write(path, got)
    wanted = read(path)
    assert got.keys() == wanted.keys()
    for name, text in got.items():
        lines = difflib.unified_diff(wanted[name].splitlines(), text.splitlines(), "golden", name, lineterm="", n=1)
        assert text == wanted[name], "\n".join(list(lines)[:60])
    assert all(text.startswith("exit 0\n") for text in got.values())


def plan_of(store: Store, name: str) -> plans.Plan:
    return store.experiment(name).plan


def test_a_kind_and_its_bag_of_texts_become_a_plan_and_annotations(tmp_path: Path) -> None:
    with Store(old_stores.unpacked("exact", tmp_path)) as store:
        assert plan_of(store, "gated-1") == plans.Compare(selftests=("pidfd", "clone3"))
        assert plan_of(store, "half-1") == plans.Compare()
        assert plan_of(store, "20261122-043325-49d0") == plans.Trace()
        assert plan_of(store, "20261122-043338-02ff") == plans.Check(recipe="pidfs", reuse=True)
        assert plan_of(store, "20261122-043320-e785") == plans.Run()
        assert plan_of(store, "confirm-1") == plans.Compare(confirms="bisect-1")
        swept, searched, gated = (store.experiment(name) for name in ("gaps-1", "bisect-1", "gated-1"))
        assert store.experiment("half-1").folders == ("own",)
    assert swept.plan == plans.Sweep(reuse=True) and len(swept.annotations.compilers) == len(swept.kernels) == 2
    specs = [
        (gap.place, parse_kernel(gap.spec).config, parse_kernel(gap.spec).target) for gap in swept.annotations.gaps
    ]
    assert specs == [(1, "some.config", "linux"), (2, "", "6.16")]
    assert isinstance(searched.plan, plans.Bisect)
    assert (searched.plan.tree, searched.plan.metric) == ("/home/user/linux", "instructions")
    search = searched.annotations.search
    assert search.confirmation == "confirm-1" and len(search.skipped) == 1 and search.refuted[0].readings == 5
    assert [note.code for note in gated.annotations.notes] == ["selftests"] * 3 + ["machine-code"]
    assert gated.annotations.gate.startswith("failed the gate") and gated.annotations.ktap.keys() == {"plain", "init"}


def test_plans_of_times_are_typed_too(tmp_path: Path) -> None:
    with Store(old_stores.unpacked("timed", tmp_path)) as store:
        first, second = (store.experiment(name) for name in ("20261122-044650-60a5", "20261122-044923-44fb"))
        assert plan_of(store, "20261122-043344-ee89") == plans.Trace(sets=("locks", "sizes"))
        assert plan_of(store, "20261122-045147-25ff") == plans.Leaks()
        assert plan_of(store, "20261122-043809-482d") == plans.Calibrate()
    assert (first.precision_percent, first.annotations.followed_by) == (5.0, second.id)
    assert second.plan == plans.Compare(follows=first.id)


class Machine:
    """Simulated boots; a plan of which they are and in which order is all that counts."""

    def __init__(self) -> None:
        self.made: list[PlannedBoot] = []

    def boot(self, _job: runner.Job, plan: PlannedBoot) -> BootResult:
        self.made.append(plan)
        return BootResult(plan=plan, state="ok")


@pytest.mark.parametrize(("mode", "name", "missing"), [("exact", "half-1", 3), ("timed", "20261122-044923-44fb", 86)])
def test_an_unfinished_experiment_goes_on_with_the_boots_that_are_missing(
    mode: str, name: str, missing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    monkeypatch.setattr(runner, "boot", machine.boot)
    with Store(old_stores.unpacked(mode, tmp_path)) as store:
        experiment = store.experiment(name)
        before = store.done(name)
        still = tuple(OpenCell(0, "default", kernel) for kernel in range(len(experiment.kernels)))
        job = runner.Job(
            experiment=experiment, site=cast(Any, None), work=lambda plan: str(plan), runs=lambda _plan, _raw: (),
            machine={}, undecided=lambda _: still,
        )  # fmt: skip
        runner.execute(job, store, Quiet())
        planned = [plan for block in blocks(experiment) for plan in block]
        assert store.done(name) == {(plan.block, plan.slot) for plan in planned}
        kept = [(boot.block, boot.slot, boot.kernel) for boot in store.boots(name) if (boot.block, boot.slot) in before]
    wanted = [(plan.block, plan.slot, plan.kernel) for plan in planned]
    assert len(machine.made) == missing and set(kept) < set(wanted), "the plan is the one that was begun"
    assert {(p.block, p.slot) for p in machine.made}.isdisjoint(before)


def test_a_file_that_an_older_kdelta_exported_is_taken_in(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'new.sqlite'}") as store, Store(old_stores.unpacked("exact", tmp_path)) as old:
        done = store.import_(old_stores.DATA / "stores" / "gaps-1.kdelta")
        assert (done.id, done.added) == ("gaps-1", 6)
        assert store.experiment("gaps-1") == replace(old.experiment("gaps-1"), imported=True)
        assert old.import_(old_stores.DATA / "stores" / "gaps-1.kdelta").added == 0


def test_a_damaged_document_spoils_no_other(tmp_path: Path) -> None:
    url = old_stores.unpacked("exact", tmp_path)
    with closing(sqlite3.connect(tmp_path / "exact.sqlite")) as database, database:
        database.execute("update experiment set document = ? where id = 'half-1'", [zlib.compress(b'{"extra": 7}')])
    with Store(url) as store:
        assert store.experiment("gated-1").kernels
        with pytest.raises(HostError, match="experiment half-1: damaged in the store"):
            store.experiment("half-1")
