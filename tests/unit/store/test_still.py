# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that this user can only read: reported from, never changed, and refused before anything is done for it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

import kdelta.store.later  # noqa: F401  # what is loaded late: a user other than root may not read the checkout
from kdelta.cli import _stores
from kdelta.errors import HostError
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where others may look: what pytest makes is its user's alone."""
    made = Path(tempfile.mkdtemp(prefix="kdelta-still-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@contextmanager
def only_reading(folder: Path) -> Iterator[None]:
    """As a user who may read the files of ``folder``, and change nothing there; root, who may, is another meanwhile."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
        folder.chmod(0o755)


def named(path: Path) -> str:
    return f"sqlite:///{path}"


def measured(path: Path) -> None:
    with Store(named(path)) as store:
        store.create(experiment())
        store.save_boot("first", boot(0, 0))
    path.chmod(0o444)


@pytest.mark.parametrize("name", ["store.sqlite", "50 % #1.sqlite"])
def test_a_store_in_a_folder_that_cannot_be_written_is_read(folder: Path, name: str) -> None:
    measured(folder / name)
    with only_reading(folder), Store(named(folder / name)) as store:
        assert [row.id for row in store.experiments()] == ["first"]
        assert len(store.boots("last")) == 1
        with pytest.raises(HostError, match="readonly"):
            store.tag("first", "nightly")
    assert [path.name for path in folder.iterdir()] == [name]


def test_what_a_writer_adds_meanwhile_is_seen(folder: Path) -> None:
    """A connection that was opened as if the file stood still is not used again."""
    measured(folder / "s.sqlite")
    (folder / "s.sqlite").chmod(0o644)
    with only_reading(folder):
        reader = Store(named(folder / "s.sqlite"))
        assert len(reader.boots("first")) == 1
    with Store(named(folder / "s.sqlite")) as writer:
        writer.save_boot("first", boot(0, 1))
        for log in ("s.sqlite-wal", "s.sqlite-shm"):
            (folder / log).chmod(0o644)
        with only_reading(folder):
            assert len(reader.boots("first")) == 2
    with only_reading(folder):
        assert len(reader.boots("first")) == 2
    reader.close()


def test_what_is_in_a_log_that_cannot_be_read_is_not_left_out(folder: Path) -> None:
    """As where a writer was killed, and only these two files were copied."""
    measured(folder / "first.sqlite")
    (folder / "first.sqlite").chmod(0o644)
    with Store(named(folder / "first.sqlite")) as writer:
        writer.save_boot("first", boot(0, 1))
        for end in ("", "-wal"):
            shutil.copy(f"{folder / 'first.sqlite'}{end}", f"{folder / 'copy.sqlite'}{end}")
    with only_reading(folder), pytest.raises(HostError, match=r"copy both files, and set KDELTA_STORE"):
        Store(named(folder / "copy.sqlite"))


def test_an_older_store_that_cannot_be_migrated_is_told_as_such(folder: Path) -> None:
    measured(folder / "s.sqlite")
    (folder / "s.sqlite").chmod(0o644)
    with Store(named(folder / "s.sqlite")) as store, store._writing() as connection:
        connection.execute(text("UPDATE kdelta_revision SET version_num = '0005'"))
    with only_reading(folder), pytest.raises(HostError, match=r"made by an older kdelta .* copy it"):
        Store(named(folder / "s.sqlite"))


def test_who_would_measure_into_it_is_refused_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(folder / "s.sqlite")
    monkeypatch.setenv("KDELTA_STORE", named(folder / "s.sqlite"))
    with only_reading(folder):
        with pytest.raises(HostError, match="can only read it"):
            _stores.writing(lambda _: None)
        with pytest.raises(HostError, match="can only read it"):
            _stores.going_on()
        _stores.reading().close()
    (folder / "s.sqlite").chmod(0o644)
    _stores.writing(lambda _: None).close()
    _stores.going_on().close()
