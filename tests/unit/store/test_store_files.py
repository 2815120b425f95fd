# SPDX-License-Identifier: GPL-2.0-or-later
"""What can be wrong with a database before and while it is used."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import event

from kdelta.errors import DiskFull, HostError, KdeltaError, UserError
from kdelta.store.store import Store
from postgres import Postgres, database, postgres_binaries
from unit.store.store_builders import boot, experiment

HERE = Path(__file__).parent


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def child(code: str, *args: str) -> subprocess.Popen[str]:
    """A Python process that sees kdelta and the builders."""
    search = os.pathsep.join([*sys.path, str(HERE)])
    return subprocess.Popen(
        [sys.executable, "-c", code, *args], env={**os.environ, "PYTHONPATH": search}, stdout=subprocess.PIPE, text=True
    )


def test_a_store_is_made_with_its_folder_and_a_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "store.sqlite"
    with Store(sqlite_url(path)) as store:
        store.create(experiment())
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


def test_the_store_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_STORE", sqlite_url(tmp_path / "env.sqlite"))
    with Store() as store:
        store.create(experiment())
    assert (tmp_path / "env.sqlite").exists()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("nonsense", "not a URL"),
        ("", "not a URL"),
        ("postgresql://lab:secret@host:543x/name", r"'postgresql://lab:\*\*\*@host:543x/name': not a URL"),
        ("mysql://host/x", "sqlite or postgresql"),
        ("postgresql+nodriver://host/x", "unknown driver"),
    ],
)
def test_a_url_that_names_no_store_is_refused(url: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.paths.store_url", lambda: url)
    with pytest.raises(UserError, match=why):
        Store(url)


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="reachable") as caught:
        Store(f"postgresql://me:geheim@/x?host={tmp_path}")
    assert "geheim" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"store postgresql://me:***@/x?host={tmp_path}: ")
    with pytest.raises(HostError) as caught:
        Store(f"postgresql://me@/x?host={tmp_path}&password=geheim")
    assert "geheim" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"dear diary, " * 1000)
    with pytest.raises(UserError, match="not a kdelta store"):
        Store(sqlite_url(path))
    assert path.read_bytes() == b"dear diary, " * 1000


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE moz_places (id INTEGER)")
    raw.commit()
    raw.close()
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"another program.*moz_places"):
        Store(sqlite_url(path))
    assert path.read_bytes() == before


def test_a_damaged_store_is_an_error_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(sqlite_url(path)) as store:
        store.create(experiment())
        for slot in range(2):
            store.save_boot("first", boot(0, slot, console=os.urandom(100_000)))
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)  # the schema is whole, every table is not
    path.write_bytes(data)
    with pytest.raises(HostError, match="damaged") as caught, Store(sqlite_url(path)) as store:
        store.numbers("first")
    assert "\n" not in str(caught.value)


def test_a_store_of_a_newer_kdelta_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    Store(sqlite_url(path)).close()
    raw = sqlite3.connect(path)
    raw.execute("UPDATE kdelta_revision SET version_num = '0999'")
    raw.commit()
    raw.close()
    with pytest.raises(UserError, match=r"newer kdelta .revision 0999.*upgrade kdelta"):
        Store(sqlite_url(path))


def test_a_database_of_another_encoding_is_refused_with_the_remedy(postgres: str) -> None:
    for encoding in ("SQL_ASCII", "LATIN1"):
        options = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        with pytest.raises(UserError, match=f"its encoding is {encoding}, and kdelta needs UTF8: createdb -E UTF8"):
            Store(database(postgres, f"in_{encoding.lower()}", options))


def test_a_folder_that_cannot_be_made_is_a_host_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HostError, match="cannot make the store's directory"):
        Store(sqlite_url(tmp_path / "file" / "store.sqlite"))
    (tmp_path / "dir.sqlite").mkdir()
    with pytest.raises(HostError, match="unable to open"):
        Store(sqlite_url(tmp_path / "dir.sqlite"))


def test_a_full_disk_loses_no_boot_that_was_saved(tmp_path: Path) -> None:
    """SQLite's own page limit stands for the disk's end: the same SQLITE_FULL from the same write."""
    with Store(sqlite_url(tmp_path / "store.sqlite")) as store:
        store.create(experiment(blocks=50))

        @event.listens_for(store._engine, "checkout")
        def _limit(connection: sqlite3.Connection, *_rest: object) -> None:
            connection.execute("PRAGMA max_page_count = 100")

        saved = 0
        with pytest.raises(HostError, match=r"the disk is full: free some space"):
            for block in range(50):
                store.save_boot("first", boot(block, 0, console=os.urandom(40_000)))
                saved += 1
    assert saved > 0
    with Store(sqlite_url(tmp_path / "store.sqlite")) as store:
        assert store.done("first") == {(block, 0) for block in range(saved)}
        assert len(store.boot("first", saved - 1, 0).console) == 40_000
        store.save_boot("first", boot(saved, 0))  # there is space again


def test_a_full_disk_is_told_where_a_store_is_only_read(tmp_path: Path) -> None:
    """SQLite wants a file beside the store to read it: where that finds no room, it speaks of a disk I/O error."""
    url = sqlite_url(tmp_path / "store.sqlite")
    Store(url).close()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(DiskFull, match=r"store\.sqlite: the disk is full: free some space"):
            Store(url)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_store_that_is_moved_or_replaced_meanwhile_is_told(tmp_path: Path) -> None:
    """Boots went into a file without a name, and kdelta serve showed what had been replaced."""
    path, aside = tmp_path / "store.sqlite", tmp_path / "aside.sqlite"
    with Store(sqlite_url(path)) as store:
        store.create(experiment(blocks=2))
        store.save_boot("first", boot(0, 0))
        path.rename(aside)
        gone = r"store\.sqlite: it was moved or deleted since it was opened: put it back"
        with pytest.raises(HostError, match=gone):
            store.save_boot("first", boot(1, 0))
        with pytest.raises(HostError, match=gone):
            store.experiments()
        assert not path.exists(), "an empty one would hide that"
        shutil.copy(aside, path)
        with pytest.raises(HostError, match="another file lies there since it was opened"):
            store.experiments()
        path.unlink()
        aside.rename(path)
        store.save_boot("first", boot(1, 0))
    with Store(sqlite_url(path)) as store:
        assert store.done("first") == {(0, 0), (1, 0)}


def test_a_killed_process_leaves_whole_boots_only(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "store.sqlite")
    with Store(url) as store:
        store.create(experiment(blocks=100_000))
    code = """
import sys
from unit.store.store_builders import boot
from kdelta.store.store import Store
with Store(sys.argv[1]) as store:
    for block in range(100_000):
        store.save_boot("first", boot(block, 0, console=b"x" * 5000))
        print(block, flush=True)
"""
    process = child(code, url)
    assert process.stdout is not None
    for _ in range(20):
        told = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    rest = [int(line) for line in process.stdout.read().split()]
    process.wait(timeout=30)
    with Store(url) as store:
        done = store.done("first")
        assert {(block, 0) for block in range(max([told, *rest]) + 1)} <= done
        assert all(store.boot("first", *place) == boot(*place, console=b"x" * 5000) for place in done)
        assert len(store.numbers("first")) == 2 * len(done)


def test_processes_that_make_the_same_store_at_once_all_succeed(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "store.sqlite")
    code = """
import sys
from unit.store.store_builders import experiment
from kdelta.store.store import Store
with Store(sys.argv[1]) as store:
    store.create(experiment(sys.argv[2]))
"""
    processes = [child(code, url, f"e{n}") for n in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0] * 4
    with Store(url) as store:
        assert {row.id for row in store.experiments()} == {"e0", "e1", "e2", "e3"}


def test_every_refusal_names_the_store_and_fits_one_line(tmp_path: Path) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(os.urandom(8192))
    with pytest.raises(KdeltaError, match="garbage") as caught:
        Store(sqlite_url(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("password", ["", ":wrong"])
def test_a_server_that_asks_for_a_password_says_where_it_belongs(password: str) -> None:
    """libpq's "fe_sendauth: no password supplied" was all."""
    if (binaries := postgres_binaries()) is None:
        pytest.skip("the PostgreSQL server is not installed: apt-get install postgresql")
    server = Postgres(binaries)
    try:
        server.start()
        server.require_passwords()
        with pytest.raises(HostError, match=r"the password belongs into ~/\.pgpass"):
            Store(server.url.replace("kdelta@", f"kdelta{password}@"))
    finally:
        server.stop()
        server.remove()
