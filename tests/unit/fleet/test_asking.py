# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking the fleet: what was counted otherwise, or cut short, is made again; a bench says where and how."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kdelta.cli import _fleet, main
from kdelta.cli._session import Session
from kdelta.errors import HostError, KdeltaError, UserError
from kdelta.experiment import prepare, runner
from kdelta.experiment.work import CannotPause
from kdelta.fleet import asking, makes, ship, status
from kdelta.fleet.bench import Bench
from kdelta.fleet.blobs import Blobs
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.needs import Host
from kdelta.fleet.queue import Queue
from kdelta.fleet.units import Unit
from kdelta.machine import probe
from kdelta.model import Experiment, MachineOptions, PlannedBoot, Quiet
from kdelta.store.store import Store
from unit.fleet.fleet_builders import ask, asked, boot_of, host

FIRST = PlannedBoot(block=0, slot=0, kernel=0)
SECOND = PlannedBoot(block=0, slot=1, kernel=1)


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine measures as ``one`` does; kernels need not be sent."""
    monkeypatch.setenv("KDELTA_BLOBS", str(tmp_path / "blobs"))
    monkeypatch.setattr(makes, "survey", lambda *_: host("here"))
    monkeypatch.setattr(ship, "send", lambda *_: {"image": "0"})
    monkeypatch.setattr(ship, "here", lambda experiment, *_: experiment)


def test_what_was_counted_otherwise_is_made_again_and_what_was_cut_short(store: Store, ledger: Ledger) -> None:
    store.create(asked(blocks=2))
    store.save_boot("first", boot_of(FIRST, machine={"make": "old"}))
    store.save_boot("first", boot_of(SECOND, machine={"make": "one"}, started_at="lost then", state="lost", runs=()))
    wanted = asking.ask(store, ledger, asked(blocks=2), Quiet())
    assert wanted.make == "one" and store.done("first") == {(0, 1)}
    (found,) = ledger.asked()
    sent = {kernel.image_sha256: {"image": "0"} for kernel in asked().kernels}
    assert found.ask.again == ("lost then",) and found.ask.kernels == sent


def test_a_finished_experiment_keeps_what_it_has(store: Store, ledger: Ledger) -> None:
    store.create(asked(blocks=1))
    for plan in (FIRST, SECOND):
        store.save_boot("first", boot_of(plan, machine={"make": "old"}))
    asking.ask(store, ledger, asked(blocks=1), Quiet())
    assert store.done("first") == {(0, 0), (0, 1)}
    asking.begin(store, ledger, "first")
    assert ledger.asked("first")[0].state == "done"


@pytest.mark.parametrize(("kvm", "machine"), [(True, "on"), (False, "off")])
def test_all_hosts_measure_times_under_kvm_or_none(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kvm: bool, machine: str
) -> None:
    store.create(asked(mode="timed"))
    prepared: list[str] = []

    def prepare_it(experiment: Experiment, *_: object) -> None:
        prepared.append(experiment.machine.kvm)
        raise HostError("seen")

    monkeypatch.setattr(prepare, "prepare", prepare_it)
    wanted = ask("timed")
    wanted = replace(wanted, needs=replace(wanted.needs, kvm=kvm))
    with pytest.raises(HostError, match="seen"):
        Bench(store, Blobs(str(tmp_path)), "h", Quiet()).measure(Unit(experiment="first", plans=(), alone=True), wanted)
    assert prepared == [machine]


def test_kvm_that_ran_no_guest_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "kvm_opens", lambda: True)
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path))
    assert makes.kvm()
    for works in ("no", "yes"):
        (tmp_path / "kvm.json").write_text(f'{{"key": "k", "works": "{works}", "why": ""}}')
        assert makes.kvm() == (works == "yes")


def ready(experiment: Experiment) -> runner.Job:
    nowhere: Any = None
    return runner.Job(
        experiment=experiment, site=nowhere, work=lambda _: "", runs=lambda *_: (), machine={}, undecided=lambda _: (),
    )  # fmt: skip


def test_a_bench_says_where_and_how_and_measures_a_lost_seed_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(asked())
    made: list[Any] = []

    def boot(_job: object, plan: PlannedBoot) -> Any:
        made.append(plan)
        result = boot_of(plan, machine={"accel": "tcg"})
        return replace(result, state="lost", runs=()) if len(made) == 1 else result

    monkeypatch.setattr(runner, "boot", boot)
    monkeypatch.setattr(prepare, "prepare", lambda *_: ready(asked()))
    bench = Bench(store, Blobs(str(tmp_path)), "rack3", Quiet())
    (one,) = bench.measure(Unit(experiment="first", plans=(FIRST,), alone=False), ask())
    assert len(made) == 2 and one.state == "ok"
    assert one.machine == {"accel": "tcg", "host": "rack3", "make": "one"}


def test_a_bench_refuses_a_kernel_that_would_have_all_others_boot_cold(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(asked())

    def boot(*_: object) -> Any:
        raise CannotPause(asked().kernels[0])

    monkeypatch.setattr(runner, "boot", boot)
    monkeypatch.setattr(prepare, "prepare", lambda *_: ready(asked()))
    bench = Bench(store, Blobs(str(tmp_path)), "rack3", Quiet())
    with pytest.raises(UserError, match="leave --fleet out"):
        bench.measure(Unit(experiment="first", plans=(FIRST,), alone=False), ask())


def test_who_waits_is_told_what_changed_alone(store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(asked())
    wanted = asking.ask(store, ledger, asked(), Quiet())
    said: list[tuple[int, str]] = []
    looks = iter(["open", "open", "open", "done"])
    progress = SimpleNamespace(boots=lambda done, _, what: said.append((done, what)), note=lambda _: None)
    (now,) = ledger.asked()
    monkeypatch.setattr(asking, "_look", lambda *_: (replace(now, state=next(looks)), [host()], 0))
    monkeypatch.setattr(asking, "_LOOK_S", 0.0)
    asking.wait(store, ledger, asked(), wanted, progress)
    assert said == [(0, "1 host: h"), (0, "done")], "when it began, and when it ended"


def test_who_does_not_wait_is_told_where_nobody_can_take_it(ledger: Ledger) -> None:
    said: list[str] = []

    class Told(Quiet):
        def note(self, text: str) -> None:
            said.append(text)

    async def enlisted(found: Host) -> None:
        async with Queue(ledger.url) as queue:
            ledger.enlist(await queue.enlist(), found)
            asking.told(ledger, ask().needs, Told())

    asking.told(ledger, ask().needs, Told())
    asyncio.run(enlisted(host("old", makes={"exact/x86_64": "two"})))
    assert [line.partition(":")[0] for line in said] == ["no worker is running", "no worker can take it"]
    asyncio.run(enlisted(host("new")))
    assert len(said) == 2


def test_a_machine_of_a_lab_is_the_one_that_this_host_drives_and_free_after_each_block(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab.toml").write_text('[bench1]\naddress = "192.0.2.7"\nstart = "tftp"\n')
    freed: list[str] = []
    prepared: list[Experiment] = []

    def prepare_it(experiment: Experiment, *_: object) -> Any:
        prepared.append(experiment)
        return SimpleNamespace(site=SimpleNamespace(lab=SimpleNamespace(free=lambda: freed.append("free"))))

    def lost(*_: object) -> None:
        raise HostError("it does not answer")

    monkeypatch.setattr(prepare, "prepare", prepare_it)
    monkeypatch.setattr(runner, "taken_over", lost)
    wanted = replace(ask("timed"), needs=replace(ask("timed").needs, lab="bench1"))
    text = f"{tmp_path / 'lab.toml'}:bench1"
    unit = Unit(experiment="first", plans=(FIRST,), alone=True)
    bench = Bench(store, Blobs(str(tmp_path)), "h", Quiet(), {"bench1": text})
    for name, in_system, why in (("first", False, "it does not answer"), ("second", True, "bench1 starts by tftp")):
        store.create(asked(name, mode="timed", machine=MachineOptions(lab="bench1", in_system=in_system)))
        with pytest.raises(KdeltaError, match=why):
            bench.measure(replace(unit, experiment=name), wanted)
    assert [one.machine.lab for one in prepared] == [text] and freed == ["free"]
    with pytest.raises(KdeltaError, match="it does not answer"):
        bench.measure(unit, wanted)
    assert len(prepared) == 2, "made ready anew: as it was, it might be set aside for good"


def test_a_disk_that_is_full_is_one_line_and_leaves_it_to_others(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(asked())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/cache/fleet-x")

    monkeypatch.setattr(prepare, "prepare", full)
    with pytest.raises(HostError, match=r"^/cache/fleet-x: No space left on device$"):
        Bench(store, Blobs(str(tmp_path)), "h", Quiet()).measure(Unit(experiment="first", plans=(), alone=False), ask())


def test_an_experiment_that_grew_by_a_kernel_is_made_ready_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bisection has one more kernel with each commit; its older ones stay ready."""
    store.create(asked())
    prepared: list[Experiment] = []

    def prepare_it(experiment: Experiment, *_: object) -> runner.Job:
        prepared.append(experiment)
        return ready(experiment)

    monkeypatch.setattr(prepare, "prepare", prepare_it)
    bench = Bench(store, Blobs(str(tmp_path)), "h", Quiet())
    sent: list[dict[str, dict[str, str]]] = [{"one": {}}, {"one": {}}, {"one": {}, "two": {}}]
    for kernels in sent:
        bench.measure(Unit(experiment="first", plans=(), alone=False), ask(kernels=kernels))
    assert len(prepared) == 2


def test_seeds_share_guests_from_unit_to_unit_and_times_have_none_beside_them(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on one machine (experiment/forks.py); a boot that is the only one of its kernel has none to share with."""
    wanted = {"first": asked(), "alone": asked("alone", blocks=1), "times": asked("times", mode="timed")}
    had: list[Any] = []

    def boot(job: runner.Job, plan: PlannedBoot) -> Any:
        had.append(job.forks)
        return boot_of(plan)

    monkeypatch.setattr(runner, "boot", boot)
    monkeypatch.setattr(prepare, "prepare", lambda experiment, *_: ready(experiment))
    for experiment in wanted.values():
        store.create(experiment)
    bench = Bench(store, Blobs(str(tmp_path)), "h", Quiet())
    for name in ("first", "first", "alone", "first", "times"):
        bench.measure(Unit(experiment=name, plans=(FIRST,), alone=False), ask(wanted[name].mode))
    one, same, none, other, no = had
    assert one is same and one.is_closed and other is not one and other.is_closed, "nobody else waits beside times"
    assert none is None and no is None
    bench.measure(Unit(experiment="first", plans=(FIRST,), alone=False), ask())
    bench.close()
    assert had[-1].is_closed


def test_what_the_fleet_measures_is_neither_measured_here_too_nor_deleted(
    store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both made the same boots, and this machine ended with "block 1 slot 0 is stored already"."""
    session, here = Session(store, True), _fleet.FleetArgs(fleet=False, detach=False)
    ran: list[str] = []
    monkeypatch.setenv("KDELTA_STORE", ledger.url)
    monkeypatch.setattr(Session, "run", lambda _, one, *more: ran.append(one.id))
    experiment = asked()
    store.create(experiment)
    _fleet.run(session, experiment, here, Quiet())
    ledger.open(experiment.id, ask())
    with pytest.raises(UserError, match=f"the fleet measures experiment .*kdelta fleet --cancel {experiment.id}"):
        _fleet.run(session, experiment, here, Quiet())
    assert main.run(["history", "delete", experiment.id, "--yes"]) == 1
    assert "take it back before you delete it: kdelta fleet --cancel first" in capsys.readouterr().err
    assert main.run(["report", experiment.id]) == 0
    assert f"kdelta resume {experiment.id} --fleet waits" in capsys.readouterr().err, "it ended with what is refused"
    status.cancel(store, ledger, experiment.id)
    assert main.run(["report", experiment.id]) == 0
    assert "--fleet" not in capsys.readouterr().err
    _fleet.run(session, experiment, here, Quiet())
    assert ran == [experiment.id] * 2
    assert main.run(["history", "delete", experiment.id, "--yes"]) == 0


def test_a_store_that_was_never_a_fleets_is_asked_nothing(url: str, tmp_path: Path) -> None:
    with Store(url):
        assert not asking.is_open(url, "first")
    with Store(f"sqlite:///{tmp_path / 's.sqlite'}") as alone:
        _fleet.refuse_asked(alone, "first", "")
