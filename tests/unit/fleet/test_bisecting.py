# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisection whose seeds are counted by several hosts, in a real store and a real git tree; boots are simulated."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.experiment import bisect
from kdelta.experiment.laboratory import Hands, Laboratory
from kdelta.fleet import asking, makes, ship
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.queue import Queue
from kdelta.fleet.tend import planner
from kdelta.fleet.units import Ask, Unit
from kdelta.fleet.worker import Worker
from kdelta.model import BootResult, Experiment, Quiet
from kdelta.store.store import Store
from unit.experiment.test_bisect import CULPRIT, World, tree  # noqa: F401 - the tree is a fixture
from unit.fleet.fleet_builders import QUICK, host


class Fleet:
    """Two hosts that make the boots of a simulated world."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self.world, self.ledger, self.workers = world, ledger, list[Worker]()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.work()))
        self.thread.start()
        assert self.ready.wait(30)

    async def work(self) -> None:
        store = self.world.store
        async with Queue(self.ledger.url) as queue:

            async def save(name: str, boots: Sequence[BootResult]) -> bool:
                return await asyncio.to_thread(store.save_together, name, boots)

            def worker(name: str) -> Worker:
                async def measure(unit: Unit, _ask: Ask) -> Sequence[BootResult]:
                    kernels = store.experiment(unit.experiment).kernels
                    boots = [self.world.boot(plan, kernels[plan.kernel]) for plan in unit.plans]
                    return [replace(boot, machine={"host": name, "make": "one"}) for boot in boots]

                return Worker(
                    queue, self.ledger, host(name), measure, save, planner(store), lambda _: None, QUICK
                )  # fmt: skip

            self.workers = [worker("a"), worker("b")]
            self.loop = asyncio.get_running_loop()
            self.ready.set()
            await asyncio.gather(*(one.run() for one in self.workers))

    def stop(self) -> None:
        for one in self.workers:
            self.loop.call_soon_threadsafe(one.stop)
        self.thread.join()


@pytest.fixture
def world(
    tree: Path, store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path  # noqa: F811
) -> Iterator[World]:  # fmt: skip
    monkeypatch.setenv("KDELTA_BLOBS", str(tmp_path / "blobs"))
    monkeypatch.setattr(makes, "survey", lambda *_: host("here"))
    monkeypatch.setattr(ship, "send", lambda kernel, *_: {"image": kernel.image_sha256})
    monkeypatch.setattr(asking, "_LOOK_S", 0.02)
    made = World(tree, store, monkeypatch)
    made.broken = {8}
    fleet = Fleet(made, ledger)
    yield made
    fleet.stop()


def test_hosts_share_the_seeds_of_each_commit(world: World, ledger: Ledger) -> None:
    def run(experiment: Experiment) -> None:
        wanted = asking.ask(world.store, ledger, experiment, Quiet())
        asking.begin(world.store, ledger, experiment.id)
        asking.wait(world.store, ledger, experiment, wanted, Quiet())

    name = world.start()
    lab = Laboratory(world.store, name, Quiet(), Hands(None, run))
    answer = bisect.bisect(lab, world.clock)
    assert [commit.hash for commit in answer.suspects] == [world.line[CULPRIT]]
    assert world.booted == [], "nothing was booted here"
    assert {row.machine["host"] for row in world.store.boots(name)} == {"a", "b"}
    assert len(world.store.done(name)) == 5 * len(world.store.experiment(name).kernels)
    assert len(world.store.done(answer.confirmation)) == 10
