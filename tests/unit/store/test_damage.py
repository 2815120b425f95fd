# SPDX-License-Identifier: GPL-2.0-or-later
"""A flipped bit in any blob of the store is one line that names experiment, boot and remedy; the others still work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import LargeBinary, Table, select, update

from kdelta.cli.main import run
from kdelta.errors import HostError, UnreadableError
from kdelta.experiment import recalled
from kdelta.store import codec, tables
from kdelta.store.rows import Floor, Look
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment
from unit.store.test_diary import item, step

FLOOR = Floor(host="h", machine_kind="k", case="pipe", floor_percent=3.0, created_at="2026-01-01")
ALONE = (tables.floor, tables.watched, tables.step)  # they belong to no experiment
BLOBS = [(t, c.name) for t in tables.metadata.tables.values() for c in t.columns if isinstance(c.type, LargeBinary)]


def _everything(store: Store, name: str) -> list[Any]:
    """All that the store answers about an experiment, and its floors."""
    read: list[Callable[[], Any]] = [
        lambda: store.experiment(name),
        lambda: store.numbers(name),
        lambda: store.boots(name),
        lambda: store.samples(name, 0, "ns_per_op"),
        lambda: store.histograms(name, 0),
        lambda: store.profiles(name, 0),
        lambda: store.facts(name),
        lambda: [store.boot(name, *place) for place in sorted(store.done(name))],
        lambda: store.console(name, 0, 1),
        lambda: store.looks(name),
        lambda: store.floors("h", "k"),
        store.watched,
        store.steps,
    ]
    return [one() for one in read]


@pytest.fixture
def filled(lite: Store) -> Store:
    for name in ("first", "second"):
        lite.create(experiment(name))
        for slot in range(2):
            lite.save_boot(name, boot(0, slot, console=b"booted\n" * 20))
        lite.save_look(name, 1, {"a": "same"}, 0.01)
    lite.save_floor(FLOOR)
    lite.watch(item("a"))
    lite.announce(step("6.13"))
    return lite


def _flip(store: Store, table: Table, column: str, at: int, bit: int) -> None:
    """One bit of the last blob of the first experiment (or of what belongs to none)."""
    with store._writing() as connection:
        keys = list(table.primary_key.columns)
        rows = connection.execute(select(*keys, table.c[column]).order_by(*keys)).all()
        owner = "boot_no" if "boot_no" in table.c else "no" if table is tables.boot else ""
        row = [one for one in rows if not owner or getattr(one, owner) <= 2][-1 if owner else 0]
        blob = bytearray(row[-1])
        blob[at % len(blob)] ^= 1 << bit
        here = [key == value for key, value in zip(keys, row, strict=False)]
        connection.execute(update(table).where(*here).values({column: bytes(blob)}))


def test_every_blob_is_looked_at() -> None:
    assert {f"{table.name}.{column}" for table, column in BLOBS} == {
        "experiment.document", "boot.document", "boot_log.console", "boot_log.stream", "run.figures", "run_detail.why",
        "run_detail.series", "run_detail.histograms", "run_detail.facts", "run_detail.profile", "look.document",
        "floor.document", "watched.document", "step.document",
    }  # fmt: skip


@pytest.mark.parametrize(("table", "column"), BLOBS, ids=[f"{t.name}.{c}" for t, c in BLOBS])
def test_no_flipped_bit_is_taken_for_another_value(filled: Store, table: Table, column: str) -> None:
    whole, other = _everything(filled, "first"), _everything(filled, "second")
    for at in (0, 1, 4, 5, 6, 9, 15, 22, 31, -3, -2, -1):
        for bit in (0, 3, 7):
            _flip(filled, table, column, at, bit)
            try:
                seen = _everything(filled, "first")
            except HostError as error:
                said = str(error)
                assert "damaged in the store" in said and "restore" in said and "\n" not in said
                if table not in ALONE:
                    assert said.startswith("experiment first") and "kdelta history delete first" in said
                    assert ("block 0 slot 1" in said) == (table not in (tables.experiment, tables.look))
            else:
                # A bit may say nothing, as the padding behind zlib's last block.
                assert seen == whole, f"bit {bit} of byte {at} went unnoticed"
            if table not in ALONE:
                assert _everything(filled, "second") == other
            _flip(filled, table, column, at, bit)
    assert _everything(filled, "first") == whole


def test_the_damaged_experiment_can_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STORE", f"sqlite:///{tmp_path / 'store.sqlite'}")
    with Store() as store:
        store.create(experiment("first"))
        store.save_boot("first", boot(0, 1))
        _flip(store, tables.run, "figures", 20, 2)
    assert run(["report", "first"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("kdelta: experiment first, block 0 slot 1: damaged in the store (its checksum is wrong)")
    with Store() as store:
        _flip(store, tables.experiment, "document", 20, 2)
    assert run(["history", "delete", "first", "--yes"]) == 0
    with Store() as store:
        assert store.experiments() == []


def test_boots_of_a_damaged_experiment_stand_for_none(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """They ended each comparison that one of them might have stood in."""
    one = boot(0, 0)
    monkeypatch.setattr(filled, "identical", lambda _: ("first", one))
    second = filled.experiment("second")
    assert recalled.recalling(filled, second)("identity") == ("first", one)
    _flip(filled, tables.experiment, "document", 20, 2)
    with pytest.raises(UnreadableError):
        filled.experiment("first")
    assert recalled.recalling(filled, second)("identity") is None


def test_what_was_stored_without_a_checksum_is_read(filled: Store) -> None:
    whole = _everything(filled, "first")
    sealed = {"document": (tables.boot, tables.look, tables.floor), "figures": (tables.run,)}
    details = dict.fromkeys(("why", "facts"), (tables.run_detail,))
    with filled._writing() as connection:
        for column, of in (sealed | details).items():
            for table in of:
                keys = list(table.primary_key.columns)
                for row in connection.execute(select(*keys, table.c[column])).all():
                    assert row[-1][:1] == b"\xc1"
                    here = [key == value for key, value in zip(keys, row, strict=False)]
                    connection.execute(update(table).where(*here).values({column: codec.unsealed(row[-1])}))
    assert _everything(filled, "first") == whole


def test_the_same_look_again_is_still_the_same(filled: Store) -> None:
    filled.save_look("first", 1, {"a": "same"}, 0.01)
    assert filled.looks("first") == [Look(blocks=1, decided={"a": "same"}, spent_alpha=0.01)]
