# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers that are bad, silent, of another version or another's namesake: nothing is lost, and nothing ends by them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from kdelta.errors import HostError, UserError
from kdelta.experiment import schedule
from kdelta.fleet import asking, status
from kdelta.fleet import tend as tending
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.queue import Queue, Taken
from kdelta.fleet.units import Unit
from kdelta.fleet.worker import Worker
from kdelta.store.store import Store
from unit.fleet.fleet_builders import ALL, QUICK, Hosts, ask, asked, host, state


def test_a_worker_that_was_taken_for_dead_drops_what_it_measured(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """It was only silent: what it has in hand is another's by now."""
    store.create(asked(blocks=1))
    ledger.open("first", ask())
    hosts.pace = replace(QUICK, dead_after_s=5.0)

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            silent: Worker

            async def unplugged(unit: Unit) -> None:
                await queue.leave(silent.number)  # as the others do with one that is silent
                await hosts.until(lambda: (unit.plans[0].block, unit.plans[0].slot) in store.done("first"))

            silent = hosts.worker(queue, host("silent"), unplugged)
            first = asyncio.create_task(silent.run())
            await hosts.until(lambda: bool(hosts.measured))
            await hosts.run(hosts.worker(queue, host("b")), until=lambda: state(ledger) == "done")
            await hosts.until(lambda: any("dropped here" in note for note in hosts.notes))
            silent.stop()
            await first

    for _ in range(2):
        ledger.failed("first", "0.0", "", "died of it or with it")
    asyncio.run(run())
    assert {row.machine["host"] for row in store.boots("first")} == {"b"}
    failed_on = ledger.failed("first", "0.0", "h", "x")
    assert failed_on is not None and failed_on.deaths == 2, "two others' alone: it lives"


def test_a_worker_that_is_registered_no_more_signs_on_again_when_it_takes(
    hosts: Hosts, store: Store, ledger: Ledger
) -> None:
    store.create(asked(blocks=1))
    ledger.open("first", ask())
    hosts.pace = replace(QUICK, beat_s=60.0)

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            worker = hosts.worker(queue, host("a"))
            running = asyncio.create_task(worker.run())
            await hosts.until(lambda: worker.number > 0)
            await queue.leave(worker.number)
            await asyncio.sleep(0)
            await hosts.until(lambda: state(ledger) == "done")
            worker.stop()
            await running

    asyncio.run(run())
    assert store.done("first") == {(0, 0), (0, 1)}


def test_units_that_end_while_a_worker_signs_on_again_do_not_end_it(
    hosts: Hosts, store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after SIGSTOP and SIGCONT: its heartbeat and its slots find out at once that it was taken for dead."""
    store.create(asked(blocks=1))

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            worker = hosts.worker(queue, host("a", slots=2))
            units = [Unit(experiment="first", plans=(plan,), alone=False) for plan in schedule.block(asked(), 0)]
            worker.hands = {slot: Taken(job=slot, unit=unit) for slot, unit in enumerate(units)}
            monkeypatch.setattr(ledger, "survived", lambda *_: worker.hands.pop(1, None))
            await asyncio.gather(worker._sign_on_again(), worker._sign_on_again())
            assert [seen.worker for seen in ledger.hosts()] == [worker.number]

    asyncio.run(run())
    assert hosts.notes == ["this worker was taken for dead; it signs on again"]


def test_who_was_silent_himself_does_not_tell_who_is_dead(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    store.create(asked(blocks=1))
    ledger.open("first", ask())

    async def run() -> tuple[int, int]:
        async with Queue(hosts.url) as queue:
            await asking._once(store, ledger, "first")
            numbers = [await queue.enlist() for _ in range(2)]
            for number in numbers:
                ledger.enlist(number, host(f"h{number}"))
            await queue.take(["first"], "gone", numbers[0])
            with ledger._using() as connection:
                connection.execute(text("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'"))
            tend = (queue, ledger, hosts.plan, 0.1)
            await asyncio.sleep(0.2)  # the database has to be up for so long
            await tending.tend(*tend, worker=numbers[1])
            before = (await queue.counts("first"))["doing"]
            await queue.beat(numbers[1])
            await tending.tend(*(*tend[:3], 30.0), worker=numbers[1]) if ledger.up_s() > 30 else await tending.tend(
                *tend
            )
            return before, (await queue.counts("first"))["doing"]

    assert asyncio.run(run()) == (1, 0)


def test_a_unit_whose_answer_was_lost_is_not_lost(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """The database gave it to the worker and died before it could say so."""
    store.create(asked(blocks=1))
    ledger.open("first", ask())

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            await asking._once(store, ledger, "first")
            worker = hosts.worker(queue, host("a", slots=0))
            running = asyncio.create_task(worker.run())
            await hosts.until(lambda: worker.number > 0)
            assert await queue.take(["first"], "a", worker.number) is not None
            await hosts.run(hosts.worker(queue, host("b")), until=lambda: state(ledger) == "done")
            worker.stop()
            await running

    asyncio.run(run())
    assert any("never arrived here" in note for note in hosts.notes)
    assert store.done("first") == {(0, 0), (0, 1)}


def test_a_machine_of_a_lab_is_had_for_a_block_and_by_nobody_else(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """Two workers drive it, one does not; who cannot acquire it now takes nothing for it."""
    store.create(asked(mode="timed", blocks=4))
    wanted = ask("timed")
    ledger.open("first", replace(wanted, needs=replace(wanted.needs, lab="bench1")))
    has: list[str] = []
    at_once: list[int] = []

    def places(name: str) -> tuple[Any, Any]:
        def acquire(_lab: str) -> str:
            if has:
                return f"{has[0]} has it"
            has.append(name)
            return ""

        def release(_lab: str) -> None:
            has.remove(name)

        return acquire, release

    def measure(_unit: Unit) -> None:
        at_once.append(len(has))

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            mine = {"makes": {"lab/x86_64": "one"}, "slots": 2}
            ledger.enlist(await queue.enlist(), host("x", machines={"bench2": {}}))
            assert status._host(ledger.hosts()[0], ()).machines == ("bench2",)
            drivers = [hosts.worker(queue, host(n, machines={"bench1": {}}, **mine), measure) for n in "ab"]
            for worker in drivers:
                worker.places = places(worker.host.name)
            await hosts.run(*drivers, hosts.worker(queue, host("c", **mine)), until=lambda: state(ledger) == "done")

    asyncio.run(run())
    assert at_once == [1] * 4 and has == [] and "c" not in {name for name, _ in hosts.measured}


def test_a_machine_that_somebody_has_is_told_once(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """It is asked for every few seconds, perhaps for days."""
    store.create(asked(mode="timed", blocks=1))
    wanted = ask("timed")
    ledger.open("first", replace(wanted, needs=replace(wanted.needs, lab="bench1")))
    whys = iter(["eve has it"] * 3 + ["mallory has it"] * 3)

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            worker = hosts.worker(queue, host("a", machines={"bench1": {}}, makes={"lab/x86_64": "one"}))
            worker.places = (lambda _lab: next(whys, ""), lambda _lab: None)
            await hosts.run(worker, until=lambda: state(ledger) == "done")

    asyncio.run(run())
    told = [note for note in hosts.notes if "cannot be had" in note]
    assert told == [f"machine bench1 cannot be had now: {who} has it" for who in ("eve", "mallory")]


def test_kvm_that_does_not_work_is_told_once_it_was_tried(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """Else each later experiment would be asked for under KVM again."""
    store.create(asked(mode="timed"))
    wanted = ask("timed")
    ledger.open("first", replace(wanted, needs=replace(wanted.needs, kvm=True)))

    async def run() -> None:
        async with Queue(hosts.url) as queue:

            async def tried(_unit: Unit) -> None:
                await worker.describe(replace(worker.host, kvm=False))
                assert [seen.host.kvm for seen in ledger.hosts()] == [False]
                raise HostError("it cannot run a stock guest here")

            worker = hosts.worker(queue, host("a", kvm=True), tried)
            await hosts.run(worker, until=lambda: state(ledger) == "failed")

    asyncio.run(run())
    assert "it cannot run a stock guest here" in ledger.asked("first")[0].why


def test_what_is_stored_has_not_failed_whoever_finished_it(
    hosts: Hosts, store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken for dead between looking and finishing: another one may have finished it, and the job is gone."""
    store.create(asked())
    ledger.open("first", ask())

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            finish = queue.finish

            async def twice(taken: Any) -> None:
                await finish(taken)
                await finish(taken)

            monkeypatch.setattr(queue, "finish", twice)
            await hosts.run(hosts.worker(queue, host("a")), until=lambda: state(ledger) != "open")

    asyncio.run(run())
    assert state(ledger) == "done" and store.done("first") == ALL and ledger.failures() == []
    assert sum("was finished already" in note for note in hosts.notes) == len(ALL)


def test_bad_hosts_that_meet_at_one_unit_do_not_end_an_experiment(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """They fail at once and are free again while good ones measure: so a simulated fleet of 1000 lost blocks."""
    store.create(asked())
    ledger.open("first", ask())

    def broken(_unit: Unit) -> None:
        raise HostError("the disk is full")

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            for number in range(40):
                ledger.enlist(await queue.enlist(), host(f"at work {number}"))
            for number in range(4):
                bad = hosts.worker(queue, host(f"bad{number}"), broken)
                await hosts.run(bad, until=lambda number=number: len(ledger.failures()) > number)  # type: ignore[misc]
            await hosts.run(hosts.worker(queue, host("good")), until=lambda: state(ledger) != "open")

    asyncio.run(run())
    assert {failure.unit for failure in ledger.failures()} == {"0.0"}
    assert state(ledger) == "done" and store.done("first") == ALL


def test_another_version_plans_nothing_and_ends_nothing(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """It may not be able to read the plan, and it would take looks otherwise."""
    store.create(asked(blocks=1))
    ledger.open("first", ask())
    hosts.pace = replace(QUICK, tend_s=0.02)

    def unknown(_name: str, _ask: Any) -> Any:
        hosts.notes.append("planned")
        raise HostError("a plan that this kdelta does not know")

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            mine, hosts.plan = hosts.plan, unknown
            old = hosts.worker(queue, host("old", makes={"exact/x86_64": "two"}))
            hosts.plan = mine
            running = asyncio.create_task(old.run())
            for _ in range(3):  # it looks after the queue all the same
                await old._tend()
            await hosts.run(hosts.worker(queue, host("new")), until=lambda: state(ledger) != "open")
            old.stop()
            await running

    asyncio.run(run())
    assert state(ledger) == "done" and store.done("first") == {(0, 0), (0, 1)} and "planned" not in hosts.notes


def test_a_worker_that_may_take_nothing_says_once_what_it_lacks(hosts: Hosts, store: Store, ledger: Ledger) -> None:
    """And again when that changes; of what it takes it says nothing."""
    names = ("first", "second", "third")
    for name in names:
        store.create(asked(name, blocks=1))
        ledger.open(name, ask())
    wanted = ask()
    ledger.open("second", replace(wanted, needs=replace(wanted.needs, memory_mib=8192)))
    ledger.open("third", replace(wanted, needs=replace(wanted.needs, kvm=True)))

    def said() -> list[str]:
        return [note for note in hosts.notes if "not for this host" in note]

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            worker = hosts.worker(queue, host("a", slots=2))
            running = asyncio.create_task(worker.run())
            await hosts.until(lambda: state(ledger) == "done" and len(said()) == 2)
            for _ in range(3):
                assert await worker._take(0) is None
            assert len(said()) == 2
            await worker.describe(replace(worker.host, memory_mib=2048))
            await hosts.until(lambda: len(said()) == 3)
            worker.stop()
            await running

    asyncio.run(run())
    assert said() == [
        "second: not for this host: 4096 MiB of memory, of 8192",
        "third: not for this host: no KVM",
        "second: not for this host: 2048 MiB of memory, of 8192",
    ]


def test_what_a_newer_kdelta_asked_is_for_others(store: Store, ledger: Ledger) -> None:
    store.create(asked())
    ledger.open("first", ask())
    with ledger._using() as connection:
        connection.execute(text("UPDATE fleet_ask SET document = decode('81a56e65656473a36e6577', 'hex')"))
    assert ledger.asked() == []
    with pytest.raises(HostError, match="asked of the fleet by a newer kdelta"):
        ledger.asked("first")


def test_two_machines_with_one_name_are_not_taken_for_one(hosts: Hosts, ledger: Ledger) -> None:
    """Two workers of one machine may have it; what is silent for too long is gone."""

    async def run() -> None:
        async with Queue(hosts.url) as queue:
            ledger.enlist(await queue.enlist(), host("rack3", machine="here"))
            await hosts.run(
                second := hosts.worker(queue, host("rack3", machine="here")), until=lambda: second.number > 0
            )
            other = hosts.worker(queue, host("rack4", machine="here", turns="another user's"))
            told: list[str] = []
            other.note = told.append
            await hosts.run(other, until=lambda: other.number > 0)
            assert any("on this machine rack3 is at work with another user" in line for line in told), told
            third = hosts.worker(queue, host("rack3", machine="there"))
            with pytest.raises(UserError, match="another machine is called rack3 and is at work"):
                await third.run()
            with ledger._using() as connection:
                connection.execute(text("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'"))
            await hosts.run(third, until=lambda: third.number > 0)

    asyncio.run(run())
