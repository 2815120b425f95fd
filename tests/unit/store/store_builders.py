# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments and boots to store, and a PostgreSQL server of the test's own."""

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

from kdelta.model import BootResult, Case, Experiment, Kernel, PlannedBoot, Profile, RunResult, Series, plans

VECTOR = (7, 6, 5, 4, 3, 2, 1)


def kernel(label: str = "6.12", **more: Any) -> Kernel:
    return Kernel(
        **{"label": label, "spec": label, "release": label, "image_path": "/i", "image_sha256": "ab" * 32, **more}
    )


def experiment(name: str = "first", **more: Any) -> Experiment:
    """Two kernels, two cases, two blocks: four boots."""
    return Experiment(
        **{
            "id": name,
            "mode": "timed",
            "plan": plans.Compare(),
            "kernels": (kernel("6.12"), kernel("7.0")),
            "cases": (Case(workload="pidfd_open"), Case(workload="pipe", label="pipe:writers=2", cgroup="child")),
            "blocks": 2,
            "created_at": "2026-05-01T10:00:00+00:00",
            "command": "kdelta compare debian:6.12 debian:7.0",
            "tool_version": "0.1.0",
            **more,
        }
    )


def run(case: int = 0, base: float = 500.0, **more: Any) -> RunResult:
    series = Series(
        metric="ns_per_op", unit="ns", better="lower", values=(base * 9, base, base + 2, base + 4),
        warm=(True, False, False, False),
    )  # fmt: skip
    profile = Profile(ops=16, functions={"pidfd_create": VECTOR}, total=VECTOR)
    fields: dict[str, Any] = {
        "case": case,
        "state": "ok",
        "series": (series,),
        "histograms": {"latency": b"\x1c\x84\x93\x03\0"},
        "facts": {"inodes": 3.0},
        "profile": profile,
    }
    return RunResult(**{**fields, **more})


def boot(
    block: int = 0, slot: int = 0, kernel_index: int | None = None, base: float = 500.0, **more: Any
) -> BootResult:
    plan = PlannedBoot(block=block, slot=slot, kernel=slot if kernel_index is None else kernel_index)
    fields: dict[str, Any] = {
        "plan": plan,
        "state": "ok",
        "started_at": "2026-05-01T10:00:05+00:00",
        "elapsed_s": 3.5,
        "first_sample_s": 1.25,
        "argv": ("qemu-system-x86_64", "-nodefaults"),
        "machine": {"accel": "tcg"},
        "facts": {"steal_percent": 0.5, "governor": "performance"},
        "console": b"Linux version 6.12\r\n\xff\xfe\0",
        "stream": b'kd1 0 00000000 {"t":"hello"}\n',
        "runs": (run(0, base), run(1, base * 2)),
    }
    return BootResult(**{**fields, **more})


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


def database(server: str, name: str) -> str:
    """The URL of a new, empty database of the server at ``server``."""
    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
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
