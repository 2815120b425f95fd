# SPDX-License-Identifier: GPL-2.0-or-later
"""The store's promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from sqlalchemy import func, select

from kdelta.errors import HostError, UserError
from kdelta.model import Annotations, BootResult, Case, PlannedBoot, Series, plans
from kdelta.store import tables
from kdelta.store.rows import Floor, Look
from kdelta.store.store import Store
from unit.store.store_builders import VECTOR, boot, experiment, kernel, run


def rows_in(store: Store) -> dict[str, int]:
    with store._reading() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in tables.metadata.tables.items()
        }


def test_an_experiment_comes_back_as_it_was_created(store: Store) -> None:
    wanted = experiment(
        plan=plans.Sweep(reuse=True), annotations=Annotations(gate="closed"), looks=(8, 12), host={"cpu": "x"}
    )
    store.create(wanted)
    assert store.experiment("first") == wanted


def test_an_experiment_is_found_by_id_by_beginning_and_as_the_last(store: Store) -> None:
    store.create(experiment("abc1", created_at="2026-05-02"))
    store.create(experiment("abc12", created_at="2026-05-03"))
    store.create(experiment("xyz", created_at="2026-05-01"))
    assert store.experiment("abc1").id == "abc1"  # whole ids win over beginnings
    assert store.experiment("x").id == "xyz"
    assert store.experiment("last").id == "abc12"
    with pytest.raises(UserError, match="is ambiguous: abc1, abc12"):
        store.experiment("abc")


@pytest.mark.parametrize("name", ["nothing", "", "%", "_bc", "a\0", "x" * 10_000, "last"])
def test_a_name_that_fits_no_experiment_is_refused(store: Store, name: str) -> None:
    if name != "last":
        store.create(experiment("abc"))
    with pytest.raises(UserError):
        store.experiment(name)


@pytest.mark.parametrize("name", ["", "last", "../x", "a b", "a\nb", "a\0", "<script>", "x" * 65])
def test_an_id_that_could_not_be_a_file_name_or_argument_is_refused(lite: Store, name: str) -> None:
    with pytest.raises(UserError, match="experiment id"):
        lite.create(experiment(name))


def test_an_id_is_taken_once(store: Store) -> None:
    store.create(experiment())
    with pytest.raises(UserError, match="already in the store"):
        store.create(experiment(seed=5))
    assert store.experiment("first").seed == 0 and store.taken("first") and not store.taken("last")


def test_a_boot_comes_back_whole(store: Store) -> None:
    store.create(experiment())
    saved = boot(
        1,
        1,
        state="panicked",
        why="Kernel panic\0 \x1b[31m",
        runs=(run(0), run(1, state="lost", series=(), profile=None)),
    )
    store.save_boot("first", saved)
    assert store.boot("first", 1, 1) == saved
    assert store.console("first", 1, 1) == saved.console
    with pytest.raises(UserError, match="block 0 slot 1"):
        store.boot("first", 0, 1)


def test_figures_that_are_not_numbers_survive(store: Store) -> None:
    store.create(experiment())
    odd = run(
        0, facts={"ratio": math.inf}, series=(Series(metric="m", unit="", better="lower", values=(math.inf, 1e308)),)
    )
    store.save_boot("first", boot(runs=(odd,)))
    assert store.boot("first", 0, 0).runs == (odd,)
    assert store.numbers("first", case=0)[0].value is None


KILLED = "the machine ended with status -9"
LOST = boot(5, 0, state="lost", why=KILLED, runs=())
ONE_LOST = boot(5, 0, runs=(run(0), run(1, state="lost", why=KILLED, series=(), histograms={}, profile=None)))


@pytest.mark.parametrize("cut_short", [LOST, ONE_LOST], ids=["boot", "case"])
@pytest.mark.parametrize(("mode", "looks_left"), [("exact", [5]), ("timed", [5, 8])])
def test_a_lost_boot_is_replaced_when_it_is_made_again(
    store: Store, mode: str, looks_left: list[int], cut_short: BootResult
) -> None:
    store.create(experiment(mode=mode))
    store.save_boot("first", cut_short)
    store.save_boot("first", boot(5, 1))
    store.save_look("first", 5, {}, 0.01)
    store.save_look("first", 8, {}, 0.02, final=True)
    assert store.done("first") == {(5, 0), (5, 1)} and store.kept("first") == {(5, 1)}
    store.save_boot("first", boot(5, 0))
    assert store.kept("first") == {(5, 0), (5, 1)} and store.boot("first", 5, 0).state == "ok"
    assert [look.blocks for look in store.looks("first")] == looks_left, "counts are looked at anew with all seeds"
    with pytest.raises(HostError, match="stored already"):
        store.save_boot("first", boot(5, 0))


def test_a_place_in_the_schedule_is_saved_once(store: Store) -> None:
    store.create(experiment())
    store.save_boot("first", boot(0, 0))
    before = rows_in(store)
    with pytest.raises(HostError, match="block 0 slot 0 is stored already"):
        store.save_boot("first", boot(0, 0, base=1))
    assert rows_in(store) == before
    assert store.boot("first", 0, 0) == boot(0, 0)


def test_an_interrupted_save_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(experiment())
    before = rows_in(store)

    def interrupted(_data: bytes) -> bytes:
        raise KeyboardInterrupt  # the console is compressed last, after boot and runs were inserted

    monkeypatch.setattr("kdelta.store.writes.zlib.compress", interrupted)
    monkeypatch.setattr("kdelta.store.codec.squeeze", lambda value: b"")
    with pytest.raises(KeyboardInterrupt):
        store.save_boot("first", boot())
    monkeypatch.undo()
    assert rows_in(store) == before
    store.save_boot("first", boot())
    assert store.done("first") == {(0, 0)}


def test_two_threads_save_at_once(store: Store) -> None:
    store.create(experiment(blocks=20))

    def save(slot: int) -> None:
        for block in range(20):
            store.save_boot("first", boot(block, slot))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(save, range(2)))
    assert store.done("first") == {(block, slot) for block in range(20) for slot in range(2)}
    assert all(store.boot("first", b, 1) == boot(b, 1) for b in range(20))


def test_boots_that_belong_together_are_stored_all_or_none(store: Store) -> None:
    store.create(experiment())
    assert store.save_together("first", [boot(0, 0), boot(0, 1)])
    assert not store.save_together("first", [boot(1, 0), boot(0, 1, base=9.0)]), "one of them is stored already"
    assert store.done("first") == {(0, 0), (0, 1)}
    assert store.boot("first", 0, 1) == boot(0, 1)


def test_what_two_writers_add_to_an_experiment_at_once_is_all_kept(store: Store) -> None:
    store.create(experiment())

    def add(label: str) -> None:
        for turn in range(10):
            store.annotate("first", lambda a, k=f"{label}{turn}": msgspec.structs.replace(a, ktap={**a.ktap, k: "ok"}))  # type: ignore[misc]

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(add, "ab"))
    assert len(store.experiment("first").annotations.ktap) == 20


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (boot(kernel_index=2), "kernel 2 of 2"),
        (boot(-1), "not a place in the schedule"),
        (boot(2**40), "not a place in the schedule"),
        (boot(runs=(run(2),)), "a case beyond"),
        (boot(runs=(run(0), run(0))), "two results of one case"),
        (boot(plan=PlannedBoot(block=0, slot=0, kernel=0, cases=(0, 9))), "a case beyond"),
        (
            boot(runs=(run(series=(Series(metric="m", unit="", better="lower", values=(1.0,), warm=(True, False)),)),)),
            "1 values and 2 warm-up marks",
        ),
    ],
)
def test_a_boot_that_does_not_fit_its_experiment_is_refused(lite: Store, bad: object, why: str) -> None:
    lite.create(experiment())
    with pytest.raises(HostError, match=why):
        lite.save_boot("first", bad)  # type: ignore[arg-type]
    assert lite.done("first") == set()


def test_experiments_are_listed_newest_first_with_what_is_done(store: Store) -> None:
    store.create(experiment("old", created_at="2026-01-01", plan=plans.Sweep()))
    store.create(experiment("new", created_at="2026-02-01"))
    for block in range(2):
        for slot in range(2):
            store.save_boot("old", boot(block, slot))
    store.save_boot("new", boot())
    new, old = store.experiments()
    assert (new.id, new.status, new.boots_done, new.boots_planned) == ("new", "partial", 1, 4)
    assert (old.id, old.status, old.kernels) == ("old", "complete", ("6.12", "7.0"))
    assert [row.id for row in store.experiments(kind="sweep")] == ["old"]
    assert [row.id for row in store.experiments(limit=1)] == ["new"]


def test_boots_are_listed_without_their_weight(store: Store) -> None:
    store.create(experiment())
    store.save_boot("first", boot(0, 1))
    store.save_boot("first", boot(0, 0))
    rows = store.boots("first")
    assert [(row.block, row.slot, row.kernel) for row in rows] == [(0, 0, 0), (0, 1, 1)]
    assert rows[0].facts == {"steal_percent": 0.5, "governor": "performance"}
    assert rows[0].first_sample_s == 1.25
    assert not hasattr(rows[0], "console")


def test_there_is_one_number_per_boot_case_and_metric(store: Store) -> None:
    store.create(experiment())
    store.save_boot("first", boot(0, 0))
    store.save_boot("first", boot(0, 1, base=400.0))
    found = [(n.block, n.slot, n.kernel, n.case, n.metric, n.unit, n.value, n.samples) for n in store.numbers("first")]
    assert found == [
        (0, 0, 0, 0, "ns_per_op", "ns", 502.0, 3),
        (0, 0, 0, 1, "ns_per_op", "ns", 1002.0, 3),
        (0, 1, 1, 0, "ns_per_op", "ns", 402.0, 3),
        (0, 1, 1, 1, "ns_per_op", "ns", 802.0, 3),
    ]
    assert len(store.numbers("first", case=1)) == 2
    assert store.numbers("first", metric="nothing") == []


def test_an_exact_experiment_stores_modes(store: Store) -> None:
    store.create(experiment(mode="exact"))
    series = Series(metric="instructions", unit="instructions", better="lower", values=(100.0, 100.0, 900.0, 901.0))
    store.save_boot("first", boot(runs=(run(0, series=(series,)),)))
    assert store.numbers("first", 0, "instructions")[0].value == 100.0


def test_no_planned_cell_is_silently_missing(store: Store) -> None:
    store.create(experiment())
    store.save_boot("first", boot(0, 0, state="hung", why="silent for 60 s", runs=(run(0),)))
    store.save_boot("first", boot(0, 1, runs=(run(0, state="unsupported", why="no syscall", series=()),)))
    store.save_boot("first", boot(1, 0, plan=PlannedBoot(block=1, slot=0, kernel=0, cases=(0,)), runs=(run(0),)))
    found = [(n.block, n.slot, n.case, n.boot_state, n.state, n.why, n.value) for n in store.numbers("first")]
    assert found == [
        (0, 0, 0, "hung", "ok", "", 502.0),
        (0, 0, 1, "hung", "hung", "silent for 60 s", None),
        (0, 1, 0, "ok", "unsupported", "no syscall", None),
        (0, 1, 1, "ok", "lost", "the guest sent no result for this case", None),
        (1, 0, 0, "ok", "ok", "", 502.0),
    ]


def test_samples_histograms_profiles_and_facts_are_kept_per_run(store: Store) -> None:
    store.create(experiment())
    store.save_boot("first", boot(0, 0))
    store.save_boot("first", boot(0, 1, runs=(run(0, profile=None, histograms={}),)))
    first, second = store.samples("first", 0, "ns_per_op")
    assert (first.values, first.warm) == ((4500.0, 500.0, 502.0, 504.0), (True, False, False, False))
    assert (second.slot, second.kernel) == (1, 1)
    assert [row.histograms for row in store.histograms("first", 0)] == [{"latency": b"\x1c\x84\x93\x03\0"}]
    ((block, slot, index, mitigations, profile),) = store.profiles("first", 0)
    assert (block, slot, index, mitigations, profile.total) == (0, 0, 0, "default", VECTOR)
    assert [(row.slot, row.case, row.facts) for row in store.facts("first")] == [
        (0, 0, {"inodes": 3.0}), (0, 1, {"inodes": 3.0}), (1, 0, {"inodes": 3.0}),
    ]  # fmt: skip


def test_a_look_is_stored_for_good(store: Store) -> None:
    store.create(experiment())
    store.save_look("first", 8, {"0/ns_per_op": "improved"}, 0.0127, {"p": [0.001]})
    store.save_look("first", 8, {"0/ns_per_op": "improved"}, 0.0127, {"p": [0.001]})  # computed again after a kill
    with pytest.raises(HostError, match="cannot change"):
        store.save_look("first", 8, {"0/ns_per_op": "same"}, 0.0127, {"p": [0.001]})
    assert store.looks("first") == [
        Look(blocks=8, decided={"0/ns_per_op": "improved"}, spent_alpha=0.0127, payload={"p": [0.001]})
    ]
    assert store.experiments()[0].status == "partial"
    store.save_look("first", 12, {}, 0.016, final=True)
    assert store.experiments()[0].status == "complete"


def test_the_newest_floor_of_a_case_counts_and_only_on_its_host_and_machine(store: Store) -> None:
    old = Floor(
        host="h", machine_kind="tcg", case="pipe", floor_percent=2.0, created_at="2026-01-01", qemu_version="7.2"
    )
    new = msgspec.structs.replace(old, floor_percent=1.5, created_at="2026-02-01", payload={"sd": 0.4})
    other = msgspec.structs.replace(old, machine_kind="kvm", floor_percent=9.0)
    for floor in (new, old, other):
        store.save_floor(floor)
    assert store.floors("h", "tcg") == {"pipe": new}
    assert store.floors("elsewhere", "tcg") == {}


def test_history_joins_a_case_over_experiments(store: Store) -> None:
    store.create(experiment("b", created_at="2026-02-01"))
    store.create(experiment("a", created_at="2026-01-01"))
    store.save_boot("a", boot(0, 0, base=100.0))
    store.save_boot("a", boot(1, 0, base=300.0))
    store.save_boot("a", boot(1, 1, state="lost"))
    store.save_boot("b", boot(0, 1, base=50.0))
    store.tag("b", "nightly")
    found = [(r.experiment, r.kernel, r.value, r.values, r.tags) for r in store.history("pidfd_open", "ns_per_op")]
    assert found == [("a", "6.12", 202.0, (102.0, 302.0), ()), ("b", "7.0", 52.0, (52.0,), ("nightly",))]
    assert [r.case for r in store.history("pipe")] == ["pipe:writers=2 (memcg)"] * 2  # by workload
    assert len(store.history("pipe:writers=2 (memcg)")) == 2
    assert store.history("nothing") == []
    assert store.case_names() == ["pidfd_open", "pipe:writers=2 (memcg)"]


def test_tags_and_notes_are_put_on_and_taken_off(store: Store) -> None:
    store.create(experiment())
    store.tag("first", "nightly")
    store.tag("fir", "nightly")
    store.tag("last", "lab-3")
    assert store.note("first", "after the\nBIOS update") == "first"
    assert [(r.tags, r.note) for r in store.experiments(tag="nightly")] == [
        (("lab-3", "nightly"), "after the\nBIOS update")
    ]
    store.tag("first", "nightly", remove=True)
    assert store.experiments(tag="nightly") == []
    with pytest.raises(UserError, match="no tag"):
        store.tag("first", "nightly", remove=True)


@pytest.mark.parametrize("text", ["a\0b", "\x1b[31m", "x" * 65_537, "\udcff"])
def test_a_note_that_a_terminal_or_database_would_choke_on_is_refused(store: Store, text: str) -> None:
    store.create(experiment())
    with pytest.raises(UserError, match="the note"):
        store.note("first", text)
    with pytest.raises(UserError, match="tag"):
        store.tag("first", text)


def test_deleting_leaves_nothing_of_an_experiment_and_all_of_the_others(store: Store) -> None:
    store.create(experiment("keep"))
    store.save_boot("keep", boot())
    before = rows_in(store)
    store.create(experiment("drop"))
    store.save_boot("drop", boot())
    store.tag("drop", "t")
    store.save_look("drop", 8, {}, 0.01)
    assert store.delete("dro") == "drop"
    assert rows_in(store) == before
    with pytest.raises(UserError):
        store.done("drop")


HOSTILE = [
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "two\nlines",
    "x" * 10_240,
    "nul\0inside",
    "\u202egnp",
    "'; DROP TABLE boot;--",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_stored_found_and_given_back_as_they_were(store: Store, text: str) -> None:
    wanted = experiment(
        kernels=(kernel(text, spec=text, release=text, cmdline=text),),
        cases=(Case(workload=text, params={text: text}),),
        command=text,
        plan=plans.Compare(follows=text),
        host={text: text},
    )
    store.create(wanted)
    series = Series(metric=text, unit=text, better="lower", values=(1.0,))
    saved = boot(
        why=text, argv=(text,), facts={text: text}, runs=(run(0, why=text, series=(series,), facts={text: 1.0}),)
    )
    store.save_boot("first", saved)
    store.save_floor(Floor(host=text, machine_kind=text, case=text, floor_percent=1.0, created_at=text))
    store.save_look("first", 8, {text: text}, 0.01, {text: text})
    assert store.experiment("last") == wanted
    assert store.boot("last", 0, 0) == saved
    assert store.numbers("last")[0].metric == text
    assert store.history(text, text)[0].value == 1.0
    assert list(store.floors(text, text)) == [text]
    assert store.looks("last")[0].decided == {text: text}
    assert [row.id for row in store.experiments(kind="compare")] == ["first"]


def test_names_that_are_not_utf8_are_refused_in_one_line(store: Store) -> None:
    with pytest.raises(UserError, match="not UTF-8"):
        store.create(experiment(command="kdelta run \udcff"))
    store.create(experiment())
    with pytest.raises(UserError, match="not UTF-8"):
        store.save_boot("first", boot(argv=("\udcff",)))
    assert store.done("first") == set()
