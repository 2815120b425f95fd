# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers on a real PostgreSQL with simulated boots: nothing lost, nothing twice, nothing on the wrong host."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace
from sqlalchemy import text

from kdelta.errors import HostError, UserError
from kdelta.fleet import asking, status
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.queue import Queue
from kdelta.fleet.turnstile import turn
from kdelta.fleet.units import Unit
from kdelta.model import OpenCell, plans
from kdelta.store.store import Store
from unit.fleet.fleet_builders import ALL, QUICK, Hosts, ask, asked, boot_of, host, state


def test_three_hosts_share_an_experiment_and_each_boot_is_made_once(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked())
    ledger.open("first", ask())

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            workers = [hosts.worker(queue, host(name)) for name in "abc"]
            await hosts.run(*workers, until=lambda: state(ledger) == "done")

    asyncio.run(run())
    assert store.done("first") == ALL
    assert Counter(unit for _, unit in hosts.measured) == Counter({f"{b}.{s}": 1 for b, s in ALL})
    assert {row.machine["host"] for row in store.boots("first")} == {name for name, _ in hosts.measured}
    assert ledger.hosts() == [], "all signed off"


def test_the_boots_of_a_timed_block_are_of_one_host(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked(mode="timed", blocks=6))
    ledger.open("first", ask("timed"))

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            workers = [hosts.worker(queue, host(name, slots=3)) for name in "ab"]
            await hosts.run(*workers, until=lambda: state(ledger) == "done")

    asyncio.run(run())
    by_block: dict[int, set[str]] = {}
    for row in store.boots("first"):
        by_block.setdefault(row.block, set()).add(row.machine["host"])
    assert len(by_block) == 6 and all(len(names) == 1 for names in by_block.values())


def test_what_a_dead_worker_had_is_measured_again_once(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked(blocks=1))
    ledger.open("first", ask())
    hosts.pace = replace(QUICK, dead_after_s=5.0)  # the database, too, has to be up for so long

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            await asking._once(store, ledger, "first")
            gone = await queue.enlist()
            ledger.enlist(gone, host("gone"))
            taken = await queue.take(["first"], "gone", gone)  # and no word any more
            assert taken is not None and taken.unit.name == "0.0"
            with ledger._using() as connection:
                connection.execute(text("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'"))
            worker = hosts.worker(queue, host("b"))
            await hosts.run(worker, until=lambda: state(ledger) == "done")

    asyncio.run(run())
    assert sorted(unit for _, unit in hosts.measured) == ["0.0", "0.1"]
    assert any("its worker died" in note for note in hosts.notes)
    (told,) = ledger.failures()
    assert (told.unit, told.host) == ("0.0", "") and told.why.startswith("the worker on gone died")
    failed_on = ledger.failed("first", "0.0", "b", "x")
    assert failed_on is not None and failed_on.experiment == {"b"}, "it is no failure of that host's"
    assert store.done("first") == {(0, 0), (0, 1)}
    assert told in status.look(store, ledger).failures
    with ledger._using() as connection:
        connection.execute(text("UPDATE fleet_failure SET at = now() - interval '2 days'"))
    assert status.look(store, ledger).failures == (), "the experiment has ended, and nobody asks any more"
    ledger.open("first", ask())
    assert len(status.look(store, ledger).failures) == 2


def test_a_stopped_worker_gives_back_what_it_has_in_hand(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked(blocks=1))
    ledger.open("first", ask())

    async def run() -> dict[str, int]:
        async with Queue(hosts.url) as queue:
            worker = hosts.worker(queue, host("a"), lambda _unit: asyncio.sleep(60))
            await hosts.run(worker, until=lambda: bool(hosts.measured))
            return await queue.counts("first")

    assert asyncio.run(run()) == {"todo": 2, "doing": 0}
    assert store.done("first") == set()


def _waiting(ledger: Ledger) -> int:
    """Units that wait, or are being measured, of any experiment."""
    jobs = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    with ledger._using() as connection:
        return int(connection.execute(text(jobs)).scalar_one())


def test_an_experiment_that_is_deleted_ends_no_worker(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """One unit of it failed, or its worker died: each host of the fleet ended with "No row was found"."""
    for name in ("first", "second", "third", "fourth"):
        store.create(replace(asked(), id=name))
        ledger.open(name, ask())
    hosts.pace = replace(QUICK, dead_after_s=5.0)
    wanted: list[str] = ["first", "second", "third"]

    def deleted(_unit: Unit) -> None:
        if wanted:
            store.delete(wanted.pop(0))

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            for name in (*wanted, "fourth"):
                await asking._once(store, ledger, name)
            gone = await queue.enlist()
            ledger.enlist(gone, host("gone"))
            taken = await queue.take(["first"], "gone", gone)
            assert taken is not None
            with ledger._using() as connection:
                connection.execute(text("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'"))
            # the unit of the host that is gone is taken back once the database was up for long enough
            await hosts.run(
                hosts.worker(queue, host("b"), deleted),
                until=lambda: state(ledger, "fourth") == "done" and not _waiting(ledger),
            )
            for name in ("first", "second", "third"):
                assert not await queue.unfinished(name), name

    asyncio.run(run())
    assert store.done("fourth") == ALL and not ledger.failures()


def test_a_bad_host_leaves_the_experiment_to_others(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked())
    ledger.open("first", ask())

    def broken(_unit: Unit) -> None:
        raise HostError("the disk is full")

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            bad, good = hosts.worker(queue, host("bad"), broken), hosts.worker(queue, host("good"))
            running = asyncio.create_task(bad.run())
            enlisted = asyncio.create_task(good.run())
            await hosts.until(lambda: state(ledger) == "done")
            bad.stop()
            good.stop()
            await asyncio.gather(running, enlisted)

    asyncio.run(run())
    assert store.done("first") == ALL
    assert sum(name == "bad" for name, _ in hosts.measured) <= 1
    assert all(failure.host == "bad" and failure.why == "the disk is full" for failure in ledger.failures())


def test_what_no_host_can_measure_ends_with_the_reason(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked())
    ledger.open("first", ask())

    def broken(_unit: Unit) -> None:
        raise HostError("no such kernel")

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            workers = [hosts.worker(queue, host(name), broken) for name in "ab"]
            running = [asyncio.create_task(worker.run()) for worker in workers]
            deadline = time.monotonic() + 60
            await hosts.until(lambda: state(ledger) == "failed")
            while await queue.unfinished("first"):
                assert time.monotonic() < deadline, hosts.notes
                await asyncio.sleep(0.05)
            for worker in workers:
                worker.stop()
            await asyncio.gather(*running)

    asyncio.run(run())
    assert "no such kernel" in ledger.asked("first")[0].why
    with pytest.raises(HostError, match=r"gave experiment first up: unit .* no such kernel"):
        asking.wait(store, ledger, asked(), ask().needs, NoProgress())
    ledger.open("first", ask())
    assert state(ledger) == "open", "asked again"


def test_what_is_asked_again_is_taken_at_once_by_the_host_on_which_it_failed(
    hosts: Hosts, store: Store, ledger: Ledger
) -> None:
    """Who resumes has mended something, and would wait for ten minutes."""
    store.create(asked())
    ledger.open("first", ask())
    mended: list[bool] = []

    def broken(_unit: Unit) -> None:
        if not mended:
            raise HostError("the key is wrong")

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            worker = hosts.worker(queue, host("a"), broken)
            running = asyncio.create_task(worker.run())
            await hosts.until(lambda: state(ledger) == "failed")
            mended.append(True)
            ledger.open("first", ask())
            await hosts.until(lambda: state(ledger) == "done")
            worker.stop()
            await running

    asyncio.run(run())
    assert store.done("first") == ALL


class NoProgress:
    def step(self, *_: Any) -> None: ...
    def boots(self, *_: Any) -> None: ...
    def note(self, *_: Any) -> None: ...


def test_a_host_on_which_everything_fails_is_set_aside(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    for name in ("x", "y", "z"):
        store.create(asked(name))
        ledger.open(name, ask())

    def broken(_unit: Unit) -> None:
        raise HostError("bad memory")

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            ledger.enlist(await queue.enlist(), host("idle"))  # another one that could
            await hosts.worker(queue, host("bad"), broken).run()

    with pytest.raises(HostError, match="3 experiments in a row failed here, the last: bad memory; it is set aside"):
        asyncio.run(run())
    assert {state(ledger, name) for name in ("x", "y", "z")} == {"open"}


def test_another_version_takes_nothing_and_the_fleet_says_so(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked(blocks=1))
    ledger.open("first", ask())

    async def run() -> status.Fleet:
        async with Queue(hosts.url) as queue:
            await asking._once(store, ledger, "first")
            worker = hosts.worker(queue, host("new", makes={"exact/x86_64": "two"}))
            running = asyncio.create_task(worker.run())
            await asyncio.sleep(0.3)
            shown = await status._look(store, ledger)
            worker.stop()
            await running
            return shown

    shown = asyncio.run(run())
    assert hosts.measured == []
    (waiting,) = shown.experiments
    assert waiting.waiting == 2 and waiting.hosts == () and "new: it would not measure identically" in waiting.why
    able = replace(ledger.asked("first")[0], ask=ask(kernels={}))
    some = status._why(able, [host("new", makes={"exact/x86_64": "two"}), host("old")], [host("old")])
    assert some.startswith("not on new: it would not measure identically") and "old" not in some
    assert [one.name for one in shown.hosts] == ["new"] and not shown.hosts[0].dead
    status.cancel(store, ledger, "first")
    with pytest.raises(UserError, match="nothing to cancel: first has ended there: cancelled"):
        status.cancel(store, ledger, "first")
    assert asyncio.run(status._look(store, ledger)).experiments == ()


@pytest.mark.parametrize("plan", [plans.Compare(counted="second"), plans.Trace(sets=("locks",), beside="second")])
def test_what_was_asked_for_together_is_cancelled_together(store: Store, ledger: Ledger, plan: plans.Plan) -> None:
    store.create(asked(plan=plan))
    store.create(replace(asked(), id="second"))
    for name in ("first", "second"):
        ledger.open(name, ask())
    status.cancel(store, ledger, "first")
    assert state(ledger) == state(ledger, "second") == "failed" and not ledger.asked()


@pytest.mark.parametrize(("plan", "blocks"), [(plans.Compare(), 2), (plans.Sweep(), 4)])
def test_a_kernel_that_panics_ends_a_comparison_and_is_a_gap_of_a_sweep(
    hosts: Hosts, store: Store, ledger: Ledger, plan: plans.Plan, blocks: int
) -> None:
    store.create(asked(mode="timed", blocks=4, looks=(2, 4), plan=plan))
    ledger.open("first", ask("timed"))
    hosts.state = {1: "panicked"}
    store.save_look("first", 2, {}, 0.01, {"cells": to_builtins([OpenCell(0, "default", k) for k in (0, 1)])})

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            await hosts.run(hosts.worker(queue, host()), until=lambda: state(ledger) == "done")

    asyncio.run(run())
    assert store.done("first") == {(block, slot) for block in range(blocks) for slot in range(2)}
    assert len(hosts.measured) == blocks, "kernel 0 alone in the later blocks of a sweep"
    why = ledger.asked("first")[0].why
    assert (why == "") if blocks == 4 else "b: panicked: " in why


def test_a_boot_is_stored_once_whoever_is_faster(store: Store) -> None:
    store.create(asked(mode="timed"))
    block = [boot_of(plan) for plan in asked_block()]
    assert store.save_together("first", block) and not store.save_together("first", block)


def asked_block() -> Any:
    from kdelta.experiment import schedule

    return schedule.block(asked(mode="timed"), 0)


def test_times_have_the_host_alone(tmp_path: Path) -> None:
    inside: list[str] = []
    seen: list[tuple[str, ...]] = []

    async def one(name: str, alone: bool) -> None:
        async with turn(tmp_path, alone):
            inside.append(name)
            seen.append(tuple(inside))
            await asyncio.sleep(0.05)
            inside.remove(name)

    async def run() -> None:
        await asyncio.gather(*(one(f"{'t' if n == 2 else 'c'}{n}", n == 2) for n in range(6)))

    asyncio.run(run())
    assert ("t2",) in seen and not any(len(who) > 1 and "t2" in who for who in seen)
    assert max(map(len, seen)) > 1, "counts run side by side"
