# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels built by another host: the source travels, each is built once, and a failure comes back with its log."""

from __future__ import annotations

import asyncio
import shutil
import tarfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from kdelta.errors import HostError, UserError
from kdelta.fleet import builder, building, makes, status
from kdelta.fleet.away import Away
from kdelta.fleet.blobs import Blobs
from kdelta.fleet.builder import Builder
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.queue import Queue
from kdelta.kernel import carried, debian, products, source, toolchain
from kdelta.kernel.build import fault_of_source
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel, Quiet
from kdelta.store.store import Store
from unit.fleet.fleet_builders import host
from unit.kernel.tiny_tree import PIPE, git, patch, planted

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)
BETTER = PIPE.replace("return 0", "return 5")


class Told(Quiet):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class Lab:
    """A desk and hosts; each has a cache of its own, and the one that is at work is this process's."""

    def __init__(self, folder: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.ledger, self._patch = folder, ledger, monkeypatch
        self.blobs = Blobs(str(folder / "blobs"))
        self.made: list[tuple[str, str]] = []
        self.numbers: dict[str, int] = {}
        self.notes: list[str] = []
        self.at("desk")

    def at(self, name: str) -> None:
        self._patch.setenv("KDELTA_CACHE", str(self.folder / name))

    def join(self, *names: str) -> None:
        """Hosts that build as this machine does."""
        self.make = makes.building(toolchain.probe("x86_64"))

        async def enlist() -> None:
            async with Queue(self.ledger.url, connections=1) as queue:
                for name in names:
                    self.numbers[name] = await queue.enlist()
                    self.ledger.enlist(self.numbers[name], host(name, makes={"build/x86_64": self.make}))

        asyncio.run(enlist())

    def order(self, *texts: str, each: bool = False) -> list[building.Order]:
        """What the desk asks for."""
        todo = building.missing([parse_kernel(text) for text in texts], each, Quiet())
        return building.order(self.ledger, self.blobs, todo, Quiet())

    def work(self, name: str) -> None:
        """Let a host build the next one."""

        def make(row: Any, progress: Any) -> Any:
            self.made.append((name, row.name.rpartition("/")[2]))
            return builder.make(row, self.blobs, progress)

        @asynccontextmanager
        async def turn() -> Any:
            yield

        self.at(name)
        of = host(name, makes={"build/x86_64": self.make})
        asyncio.run(Builder(self.ledger, of, make, self.notes.append, turn)._next(self.numbers[name]))
        self.at("desk")

    def wait(self, orders: list[building.Order], first: bool = True) -> Any:
        return building.wait(self.ledger, self.blobs, orders, Quiet(), first=first)


@pytest.fixture
def lab(tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    return Lab(tmp_path, ledger, monkeypatch)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return planted(tmp_path / "linux")


def unbuilt(*_: object) -> Any:
    raise AssertionError("it was built on the desk")


def resolved(monkeypatch: pytest.MonkeyPatch, text: str) -> Kernel:
    """The kernel as the desk has it, which builds nothing."""
    monkeypatch.setattr(source, "build_in", unbuilt)
    return source.resolve_source(parse_kernel(text))


@pytest.mark.parametrize("form", ["folder", "git", "commit"])
def test_a_host_that_has_no_tree_builds_what_the_desk_would_have(
    lab: Lab, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    (tree / "fs" / "latin1.txt").write_bytes(b"M\xfcller\n")
    if form != "folder":
        git(tree, "init", "-q", "-b", "main")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", "first")
        git(tree, "tag", "v1")
        (tree / "fs/other.c").write_bytes(b"/* M\xfcller */\nint other(int a)\n{\n\treturn a * 4;\n}\n")
    name = f"src:{tree}{'@v1' if form == 'commit' else ''}+{patch(tmp_path, 'p.patch', BETTER)}"
    lab.at("alone")
    expected = source.resolve_source(parse_kernel(name))
    lab.at("desk")
    lab.join("a")
    orders = lab.order(name)
    tree.rename(tmp_path / "elsewhere")
    lab.work("a")
    (tmp_path / "elsewhere").rename(tree)
    assert lab.wait(orders) == {} and len(lab.made) == 1
    kernel = resolved(monkeypatch, name)
    assert (kernel.image_sha256, kernel.release, kernel.config) == (
        expected.image_sha256, expected.release, expected.config,
    )  # fmt: skip
    facts = source.built_facts(parse_kernel(name))
    assert "return 5" in Path(facts.diff).read_text() and Path(facts.log).read_text() and facts.locations
    assert str(tmp_path / "desk") in facts.diff


def test_a_source_package_travels_as_it_is(
    lab: Lab, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "linux-source-6.12.tar.xz"
    with tarfile.open(packed, "w:xz") as file:
        file.add(tree, "linux-source-6.12")
    monkeypatch.setattr(debian, "fetch_source", lambda *_: packed)
    lab.join("a")
    orders = lab.order("src:debian:6.12")
    monkeypatch.setattr(debian, "fetch_source", unbuilt)
    lab.work("a")
    assert lab.wait(orders) == {} and len(lab.made) == 1
    assert not (tmp_path / "desk" / "build" / "debian-6.12").exists()
    assert (tmp_path / "a" / "build" / "debian-6.12" / "src" / "Makefile").exists()
    monkeypatch.setattr(debian, "fetch_source", lambda *_: packed)
    assert resolved(monkeypatch, "src:debian:6.12").release == "6.12.1"


def test_two_that_ask_for_one_kernel_have_it_built_once(lab: Lab, tree: Path) -> None:
    lab.join("a", "b")
    first, second = lab.order(f"src:{tree}"), lab.order(f"other=src:{tree}")
    for name in "abab":
        lab.work(name)
    assert lab.made == [("a", "linux")]
    assert lab.wait(first) == lab.wait(second) == {}
    assert lab.order(f"src:{tree}") == [], "it is here"


def test_baseline_and_patched_are_built_on_one_host(
    lab: Lab, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one at a time, and the second where the source and the objects of the first are."""
    unpacked: list[object] = []
    unpack = carried.unpack

    def counted(*words: Any) -> None:
        unpacked.append(words)
        unpack(*words)

    monkeypatch.setattr(carried, "unpack", counted)
    lab.join("a", "b")
    orders = lab.order(f"src:{tree}", f"src:{tree}+{patch(tmp_path, 'p.patch', BETTER)}")
    lab.work("b")
    for name in "aab":
        lab.work(name)
    assert [name for name, _ in lab.made] == ["b", "b"] and lab.wait(orders) == {}
    assert len(unpacked) == 1


def test_a_database_that_is_away_meanwhile_ends_no_build(lab: Lab, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        told.append("asked")
        raise Away("the database is away")

    told: list[str] = []
    lab.join("a")
    orders = lab.order(f"src:{tree}")
    monkeypatch.setattr(lab.ledger.builds, "say", away)
    lab.work("a")
    assert told and lab.wait(orders) == {} and len(lab.made) == 1


def test_a_series_is_built_patch_by_patch(lab: Lab, tree: Path, tmp_path: Path) -> None:
    lab.join("a")
    name = f"src:{tree}+{patch(tmp_path, 'p.patch', BETTER)}"
    orders = lab.order(name, each=True)
    for _ in range(2):
        lab.work("a")
    assert len(orders) == len(lab.made) == 2 and lab.wait(orders) == {}


def test_a_build_that_fails_comes_back_with_its_log(lab: Lab, tree: Path, tmp_path: Path) -> None:
    lab.join("a")
    broken = f"src:{tree}+{patch(tmp_path, 'bad.patch', PIPE.replace('count + LIMIT', 'count + NOSUCH'))}"
    orders = lab.order(broken)
    lab.work("a")
    with pytest.raises(HostError, match=r"the patch does not compile: .*NOSUCH.*log: .*desk.*\(on a\)") as raised:
        lab.wait(orders)
    log = products.folder(orders[0].wanted.key) / "build.log"
    assert "NOSUCH" in log.read_text() and str(log) in str(raised.value)
    assert "NOSUCH" in fault_of_source(raised.value), "a gap of a sweep that is no fault of a host"
    assert len(lab.order(broken)) == 1
    lab.work("a")
    assert len(lab.made) == 2, "asked again, it is tried again"


def test_a_patch_that_does_not_fit_is_refused_as_it_is_here(lab: Lab, tree: Path, tmp_path: Path) -> None:
    lab.join("a")
    orders = lab.order(f"src:{tree}+{patch(tmp_path, 'no.patch', 'x = 2;', old='x = 1;')}")
    lab.work("a")
    with pytest.raises(UserError, match=r"no\.patch"):
        lab.wait(orders)


def test_what_a_dead_worker_built_is_built_by_another_and_given_up_after_three(lab: Lab, tree: Path) -> None:
    lab.join("a", "b")
    orders = lab.order(f"src:{tree}")
    for _ in range(3):
        assert lab.ledger.builds.take(lab.numbers["a"], "a", [lab.make]) is not None
        assert lab.ledger.builds.reclaim() == [], "its worker lives"
        with lab.ledger._using() as connection:
            connection.execute(text("UPDATE fleet_build SET worker = 0"))
        lab.ledger.builds.reclaim()
    with pytest.raises(HostError, match="3 workers died of it"):
        lab.wait(orders)
    orders = lab.order(f"src:{tree}")
    assert lab.ledger.builds.take(lab.numbers["a"], "a", [lab.make]) is not None
    with lab.ledger._using() as connection:
        connection.execute(text("UPDATE fleet_build SET worker = 0"))
    assert "its worker died" in lab.ledger.builds.reclaim()[0]
    lab.work("b")
    assert lab.wait(orders) == {} and lab.made == [("b", "linux")]


def test_a_host_that_cannot_leaves_it_to_others_and_none_is_said(
    lab: Lab, store: Store, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Any:
        raise HostError("the disk is full")

    lab.join("a", "b")
    orders = lab.order(f"src:{tree}")
    (shown,) = status.look(store, lab.ledger).builds
    assert (shown.kernel, shown.host) == (str(tree), "")
    monkeypatch.setattr(source, "build_in", full)
    for name in "aab":
        lab.work(name)
    assert [name for name, _ in lab.made] == ["a", "b"]
    with pytest.raises(HostError, match=r"could not build it \(on b\): the disk is full \(tried on a, b\)"):
        lab.wait(orders)


def test_without_a_host_that_builds_alike_it_is_built_here(lab: Lab, tree: Path) -> None:
    told = Told()
    todo = building.missing([parse_kernel(f"src:{tree}")], False, Quiet())
    assert building.order(lab.ledger, lab.blobs, todo, told) == []
    assert "built here, no host of the fleet has this kdelta and compiler" in told.notes[0]
