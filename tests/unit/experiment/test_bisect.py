# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisection in a real store and a real git tree; builds and boots are simulated, and killed where it hurts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kdelta.errors import HostError, UserError
from kdelta.experiment import bisect, commits, prepare, runner, templates
from kdelta.experiment.laboratory import Laboratory
from kdelta.kernel import history
from kdelta.kernel.build import BuildError
from kdelta.kernel.sources import parse_kernel
from kdelta.model import (
    BootResult,
    Case,
    Effort,
    Experiment,
    Kernel,
    PlannedBoot,
    Profile,
    Quiet,
    RunResult,
    Series,
    plans,
)
from kdelta.spec.kernels import KernelSpec
from kdelta.store.store import Store

COMMITS = 17
CULPRIT = 11


class Killed(BaseException):
    """What SIGKILL leaves behind: nothing is cleaned up."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")

    def git(*words: str) -> None:
        who = ("-c", "user.name=A <b>", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for number in range(COMMITS):
        git("commit", "-q", "--allow-empty", "-m", f"change {number}")
        if number in (0, 4, 8):
            git("tag", f"v6.{8 + number // 4}")
    git("tag", "v6.10-rc1")
    git("checkout", "-q", "-b", "side", "main~5")
    git("commit", "-q", "--allow-empty", "-m", "on the side")
    git("checkout", "-q", "main")
    return root


class World:
    """Simulated kernels: ``broken`` do not build, ``dead`` panic; ``kill_at`` counts the events until the kill."""

    def __init__(self, tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree, self.store = tree, store
        self.line = history.line(str(tree), "main~16", "main")
        self.broken: set[int] = set()
        self.dead: set[int] = set()
        self.disk_full = False
        self.kill_at = -1
        self.booted: list[str] = []
        self.now = iter(range(1000))
        monkeypatch.setattr(commits, "resolve", self.resolve)
        monkeypatch.setattr(prepare, "prepare", lambda experiment, *_a, **_k: experiment)
        monkeypatch.setattr(runner, "execute", self.execute)

    def event(self) -> None:
        self.kill_at -= 1
        if self.kill_at == 0:
            raise Killed

    def clock(self) -> datetime:
        return datetime(2026, 11, 21, 12, 0, next(self.now) % 60, tzinfo=UTC)

    def resolve(self, spec: KernelSpec, _voice: Any) -> Kernel:
        self.event()
        number = self.line.index(spec.ref)
        if number in self.broken or self.disk_full:
            line = "pipe.c:1: error: x" if not self.disk_full else "cc1: No space left on device"
            try:
                raise BuildError(line, Path("/log"))
            except BuildError as error:
                raise HostError(f"does not build: {error}") from None
        return Kernel(
            label=spec.label, spec=spec.text, release="6.12", image_path="/i", image_sha256=f"{number:064x}"
        )  # fmt: skip

    def execute(self, experiment: Experiment, store: Store, _voice: Any) -> None:
        done = store.done(experiment.id)
        for block in range(experiment.blocks):
            for slot, kernel in enumerate(experiment.kernels):
                if (block, slot) not in done:
                    self.event()
                    store.save_boot(experiment.id, self.boot(PlannedBoot(block=block, slot=slot, kernel=slot), kernel))
                    self.booted.append(f"{experiment.id} {kernel.label} {block}")

    def boot(self, plan: PlannedBoot, kernel: Kernel) -> BootResult:
        number = int(kernel.image_sha256, 16)
        if number in self.dead:
            return BootResult(plan=plan, state="panicked", why="Kernel panic - not syncing")
        cost = 3400 if number >= CULPRIT else 3000
        series = tuple(
            Series(metric=name, unit="instructions/op", better="lower", values=(float(cost),) * 7)
            for name in ("instructions", "loads")
        )
        vector = (cost, 0, 0, 0, 0, 0, 0)
        profile = Profile(ops=1, functions={"pipe_write": vector}, total=vector)
        return BootResult(plan=plan, state="ok", runs=(RunResult(case=0, state="ok", series=series, profile=profile),))

    def start(self) -> str:
        plan = plans.Bisect(tree=str(self.tree), good=self.line[0], bad=self.line[-1], metric="instructions")
        asked = templates.Asked(cases=(Case(workload="pipe"),), effort=Effort(seeds=5))
        experiment = templates.created(templates.bisect(asked, "exact", plan), None, self.clock)
        self.store.create(experiment)
        return experiment.id

    def go_on(self, name: str) -> bisect.Answer:
        return bisect.bisect(Laboratory(self.store, name, Quiet()), self.clock)


@pytest.fixture
def world(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        yield World(tree, store, monkeypatch)


def test_the_commit_is_named_and_confirmed_against_its_parent(world: World) -> None:
    answer = world.go_on(world.start())
    (commit,) = answer.suspects
    assert (commit.hash, commit.subject, commit.author) == (
        world.line[CULPRIT], f"change {CULPRIT}", "A b <a@example.org>",
    )  # fmt: skip
    assert (answer.good_value, answer.bad_value, answer.parent) == (3000.0, 3400.0, world.line[CULPRIT - 1])
    confirmed = world.store.experiment(answer.confirmation)
    assert confirmed.plan == plans.Compare(confirms=answer.experiment)
    assert [kernel.label for kernel in confirmed.kernels] == [
        name[:12] for name in world.line[CULPRIT - 1 : CULPRIT + 1]
    ]
    assert len(world.store.done(answer.confirmation)) == 10, "measured anew, not taken over"


@pytest.mark.parametrize("kill_at", [1, 2, 3, 5, 9, 14, 20, 25, 28])
def test_a_kill_at_any_instant_costs_at_most_what_was_under_way(world: World, kill_at: int) -> None:
    world.broken, world.dead = {8}, {9}
    name = world.start()
    world.kill_at = kill_at
    with pytest.raises(Killed):
        world.go_on(name)
    world.kill_at = -1
    listed = {row.id: row for row in world.store.experiments()}
    assert listed[name].status == "partial", "killed before its first boot it was complete, having planned none"
    answer = world.go_on(name)
    assert {row.status for row in world.store.experiments()} == {"complete"}
    assert [commit.hash for commit in answer.suspects] == [world.line[CULPRIT]]
    assert len(world.booted) == len(set(world.booted)), "no boot is made twice"
    assert world.go_on(name) == answer, "a finished bisection is only read"


def test_what_does_not_build_or_boot_is_skipped_with_its_reason(world: World) -> None:
    world.broken, world.dead = {8}, {9, 10}
    answer = world.go_on(world.start())
    whys = {world.line.index(name): why for name, why in answer.skipped}
    assert whys[8] == "does not build: pipe.c:1: error: x"
    assert {why for number, why in whys.items() if number in (9, 10)} <= {"panicked: Kernel panic - not syncing"}
    assert answer.suspects[-1].hash == world.line[CULPRIT]


def test_skipped_commits_around_the_culprit_make_the_answer_a_range(world: World) -> None:
    world.broken, world.dead = {CULPRIT}, {CULPRIT - 1}
    answer = world.go_on(world.start())
    assert [commit.hash for commit in answer.suspects] == list(world.line[CULPRIT - 1 : CULPRIT + 2])
    assert answer.parent == world.line[CULPRIT - 2]


def test_a_full_disk_is_no_commit_that_does_not_build(world: World) -> None:
    world.disk_full = True
    with pytest.raises(HostError, match="No space left"):
        world.go_on(world.start())


@pytest.mark.parametrize(("end", "name"), [(0, "GOOD"), (COMMITS - 1, "BAD")])
def test_an_end_that_cannot_be_measured_is_named(world: World, end: int, name: str) -> None:
    world.dead = {end}
    with pytest.raises(UserError, match=rf"{name} .*cannot be measured: panicked"):
        world.go_on(world.start())


def test_a_line_follows_first_parents_from_good_to_bad(tree: Path) -> None:
    line = history.line(str(tree), "main~3", "main")
    assert len(line) == 4 and [history.commit(str(tree), name).subject for name in line] == [
        "change 13", "change 14", "change 15", "change 16",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("good", "bad", "why"),
    [
        ("main", "main~2", "swapped"),
        ("main", "main", "same commit"),
        ("side", "main", "not on the first-parent line"),
        ("nothing", "main", "no commit 'nothing'"),
        ("-x", "main", "is not a valid git ref"),
    ],
)
def test_ends_that_make_no_line_are_refused(tree: Path, good: str, bad: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        history.line(str(tree), good, bad)


@pytest.mark.parametrize(("good", "told"), [("main~1", "1 commit, "), ("main~3", "3 commits, "), ("main~16", "16 c")])
def test_how_much_there_is_to_do_is_told_beforehand(tree: Path, good: str, told: str) -> None:
    ends = [parse_kernel(f"src:{tree}@{ref}") for ref in (good, "main")]
    plan = commits.plan(ends[0], ends[1], "instructions", 200)
    said = commits.beforehand(plan)
    builds = {"main~1": 2, "main~3": 4, "main~16": 6}[good]
    assert said.startswith(told) and f"some {builds} kernels to build" in said


def test_release_tags_between_two_stand_in_order_without_candidates(tree: Path) -> None:
    assert history.tags(str(tree), "v6.8", "v6.10") == ("v6.8", "v6.9", "v6.10")
    assert history.tags(str(tree), "v6.9", "v6.10-rc1") == ("v6.9", "v6.10-rc1")
    with pytest.raises(UserError, match="not a release tag"):
        history.tags(str(tree), "v6.8", "v6.99")
    with pytest.raises(UserError, match="older one first"):
        history.tags(str(tree), "v6.10", "v6.8")
