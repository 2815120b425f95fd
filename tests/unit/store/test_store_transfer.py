# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment as one file: whole, checked, and harmless whoever made it."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
import zstandard

from kdelta.errors import HostError, UserError
from kdelta.store import transfer
from kdelta.store.rows import Look
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment


@pytest.fixture
def sent(lite: Store, tmp_path: Path) -> Path:
    """Three boots of four, a look, a tag and a note, exported."""
    lite.create(experiment())
    for place in ((0, 0), (0, 1), (1, 0)):
        lite.save_boot("first", boot(*place))
    lite.save_look("first", 1, {"a": "same"}, 0.01)
    lite.tag("first", "nightly")
    lite.note("first", "a note")
    path = tmp_path / "sent.kdelta"
    assert lite.export("last", path) == "first"
    return path


def test_two_that_import_the_same_at_once_have_it_once(store: Store, sent: Path) -> None:
    """On PostgreSQL the second was refused: "it contradicts what is stored"."""
    with ThreadPoolExecutor(1) as beside:
        with store._writing() as connection:
            assert transfer.read(connection, sent).added == 3
            second = beside.submit(store.import_, sent)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.5)
        assert (second.result(timeout=60).created, second.result().added) == (False, 0)


def craft(path: Path, *frames: bytes, line: dict[str, object] | None = None) -> Path:
    """A file with a good checksum around whatever ``frames`` hold."""
    first = {"format": "kdelta-experiment", "schema": 2, "id": "first", "boots": 1, **(line or {})}
    packed = zstandard.ZstdCompressor().compress(b"".join(struct.pack("<I", len(f)) + f for f in frames))
    body = msgspec.json.encode(first) + b"\n" + packed
    path.write_bytes(body + hashlib.sha256(body).digest())
    return path


pack = msgspec.msgpack.encode
HEAD = pack(transfer.Header(experiment=experiment()))


def test_an_import_gives_the_same_experiment_on_either_database(store: Store, sent: Path) -> None:
    assert store.import_(sent) == transfer.Imported("first", True, 3, 0)
    assert store.experiment("first") == experiment(imported=True)
    assert [store.boot("first", *place) for place in sorted(store.done("first"))] == [
        boot(0, 0),
        boot(0, 1),
        boot(1, 0),
    ]
    assert len(store.numbers("first")) == 6
    assert store.looks("first")[0].decided == {"a": "same"}
    row = store.experiments()[0]
    assert (row.tags, row.note, row.status) == (("nightly",), "a note", "partial")


def test_importing_again_changes_nothing_and_says_so(store: Store, sent: Path) -> None:
    store.import_(sent)
    store.note("first", "my own note")
    assert store.import_(sent) == transfer.Imported("first", False, 0, 3)
    assert store.experiments()[0].note == "my own note"


def test_a_later_export_adds_only_the_boots_that_are_missing(
    lite: Store, store: Store, sent: Path, tmp_path: Path
) -> None:
    store.import_(sent)
    lite.save_boot("first", boot(1, 1))
    lite.export("first", tmp_path / "later.kdelta")
    assert store.import_(tmp_path / "later.kdelta") == transfer.Imported("first", False, 1, 3)
    assert store.experiments()[0].status == "complete"


def test_another_experiment_of_the_same_id_is_refused(store: Store, sent: Path) -> None:
    store.create(experiment(seed=99))
    with pytest.raises(UserError, match="another experiment first is in the store"):
        store.import_(sent)
    assert store.done("first") == set()


def test_an_export_replaces_no_file_and_leaves_none_when_it_fails(
    lite: Store, sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="exists already"):
        lite.export("first", sent)
    with pytest.raises(UserError, match="cannot write"):
        lite.export("first", tmp_path / "no" / "folder.kdelta")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kdelta.store.transfer.os.fsync", full)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(HostError, match="No space left on device; the partial file was removed"):
        lite.export("first", tmp_path / "full.kdelta")
    assert sorted(os.listdir(tmp_path)) == before


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a flipped bit": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "cut short": lambda data: data[:-50],
    "cut to the first line": lambda data: data[: data.index(b"\n") + 1],
    "something after the end": lambda data: data + b"x",
    "a changed first line": lambda data: data.replace(b'"boots":3', b'"boots":2', 1),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_refused_by_its_checksum(store: Store, sent: Path, name: str) -> None:
    sent.write_bytes(DAMAGE[name](sent.read_bytes()))
    with pytest.raises(UserError, match="checksum is wrong"):
        store.import_(sent)
    assert store.experiments() == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"PK\x03\x04 a zip", b"{}\n", b'{"format":"other","schema":1}\n', os.urandom(9999), b"[" * 5000],
)
def test_a_foreign_file_is_refused(lite: Store, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not written by kdelta export"):
        lite.import_(path)


def test_a_file_that_cannot_be_read_is_named(lite: Store, tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UserError, match="cannot read"):
            lite.import_(path)


def test_a_file_of_a_newer_schema_asks_for_an_upgrade(lite: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"of schema 3.*upgrade"):
        lite.import_(craft(tmp_path / "f", line={"schema": 3}))


EVIL_LOOK = Look(blocks=8, decided={}, spent_alpha=0.0, payload={"cells": [{"case": "x"}]})


def test_what_is_well_packed_but_no_experiment_is_refused_whole(lite: Store, tmp_path: Path) -> None:
    ghost = pack(boot(kernel_index=7))
    bad: dict[str, tuple[bytes, ...]] = {
        "its contents are invalid": (pack({"experiment": 5}),),
        "ends too early": (HEAD,),
        "more than its first line says": (HEAD, pack(boot()), pack("more")),
        "kernel 7 of 2": (HEAD, ghost, pack("end")),
        "names another experiment": (pack(transfer.Header(experiment=experiment("other"))),),
        "experiment id": (pack(transfer.Header(experiment=experiment("../../x"))),),
        "tag": (pack(transfer.Header(experiment=experiment(), tags=("\x1b[31m",))),),
        "the note": (pack(transfer.Header(experiment=experiment(), note="\0")),),
        "it plans": (pack(transfer.Header(experiment=experiment(blocks=2**62))),),
        "a look is invalid": (pack(transfer.Header(experiment=experiment(blocks=9, looks=(8,)), looks=(EVIL_LOOK,))),),
    }
    for why, frames in bad.items():
        with pytest.raises(UserError, match=why):
            lite.import_(craft(tmp_path / "f", *frames))
    with pytest.raises(UserError, match="claims"):
        lite.import_(craft(tmp_path / "f", HEAD, line={"boots": 10**12}))
    assert lite.experiments() == []


def test_a_deeply_nested_frame_is_refused(lite: Store, tmp_path: Path) -> None:
    nest = b"\x81\xa7payload" * 100_000 + b"\xc0"
    with pytest.raises(UserError, match="its contents are invalid"):
        lite.import_(craft(tmp_path / "f", b"\x81\xa5looks\x91\x81\xa7payload" + nest))


def test_a_bomb_is_stopped_at_its_limit(lite: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "FRAME_LIMIT", 100_000)
    monkeypatch.setattr(transfer, "TOTAL_LIMIT", 150_000)
    with pytest.raises(UserError, match="unpacks to more"):
        lite.import_(craft(tmp_path / "f", b"\0" * 100_001))
    many = [pack(boot(block, 0, console=b"x" * 60_000)) for block in range(4)]
    with pytest.raises(UserError, match="unpacks to more"):
        lite.import_(craft(tmp_path / "f", HEAD, *many, pack("end"), line={"boots": 4}))
    monkeypatch.setattr(transfer, "FILE_LIMIT", 100)
    with pytest.raises(UserError, match="bytes; the limit is 100"):
        lite.import_(tmp_path / "f")
    assert lite.experiments() == []
