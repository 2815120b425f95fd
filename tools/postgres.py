# SPDX-License-Identifier: GPL-2.0-or-later
"""A PostgreSQL server of one's own, for tests and for the simulation of a fleet."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text


def postgres_binaries() -> Path | None:
    """The directory of Debian's PostgreSQL server, or None."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((f for f in reversed(folders) if (f / "initdb").exists() and (f / "postgres").exists()), None)


class Postgres:
    """A server on a socket in a directory of its own, without network, that can be killed and started again.

    PostgreSQL refuses to run as root: then it runs as ``nobody``. ``url`` is of its first database.
    """

    def __init__(self, binaries: Path) -> None:
        user = "nobody" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="kdelta-pg-", dir="/tmp"))  # short: a socket's path has 107 bytes
        if user:
            os.chown(self.folder, pwd.getpwnam(user).pw_uid, -1)
        self._as_user: dict[str, Any] = {"user": user, "cwd": self.folder, "stdin": subprocess.DEVNULL}
        self._binaries, self.url = binaries, f"postgresql://kdelta@/postgres?host={self.folder}"
        initdb: list[str | Path] = [
            binaries / "initdb",
            "-D",
            self.folder / "data",
            "-U",
            "kdelta",
            "--auth=trust",
            "--encoding=UTF8",
        ]
        initdb += ["--no-sync", "--locale=C"]
        made = subprocess.run(initdb, capture_output=True, text=True, timeout=120, **self._as_user)
        assert made.returncode == 0, made.stderr

    def start(self, *settings: str) -> None:
        """Run the server until ``stop``."""
        options = [f"unix_socket_directories={self.folder}", "listen_addresses=", "unix_socket_permissions=0700"]
        options += ["fsync=off", *settings]
        words = [part for option in options for part in ("-c", option)]
        server: list[str | Path] = [self._binaries / "postgres", "-D", self.folder / "data", *words]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(server, stdout=log, stderr=log, **self._as_user)
        _wait_ready(self._process, self.folder)

    def require_passwords(self) -> None:
        """From now on the running server asks each who connects for a password; nobody has one."""
        (self.folder / "data/pg_hba.conf").write_text("local all all scram-sha-256\n")
        self._process.send_signal(signal.SIGHUP)
        _wait_closed(self.folder)

    def stop(self) -> None:
        """At once, as in a crash: what was not committed is lost, and the next start recovers."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(timeout=30)

    def remove(self) -> None:
        """Delete all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def postgres_server(binaries: Path) -> Iterator[str]:
    """A server that runs meanwhile; yields the URL of its first database."""
    server = Postgres(binaries)
    try:
        server.start()
        try:
            yield server.url
        finally:
            server.stop()
    finally:
        server.remove()


def database(server: str, name: str, options: str = "") -> str:
    """The URL of a new, empty database of the server at ``server``; ``options`` as in CREATE DATABASE."""
    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} {options}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


def _wait_ready(process: subprocess.Popen[bytes], folder: Path) -> None:
    import psycopg

    for _ in range(300):
        assert process.poll() is None, (folder / "log").read_text()
        try:
            psycopg.connect(host=str(folder), user="kdelta", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise AssertionError(f"PostgreSQL did not come up: {(folder / 'log').read_text()}")


def _wait_closed(folder: Path) -> None:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(host=str(folder), user="kdelta", dbname="postgres").close()
        except psycopg.OperationalError:
            return
        time.sleep(0.1)
    raise AssertionError("PostgreSQL still lets in who has no password")
