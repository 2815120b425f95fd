# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers as users start them, real guests, a real PostgreSQL: the same bytes as on one machine, whoever is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kdelta.fleet.ledger import Ledger
from kdelta.store.store import Store
from postgres import Postgres, postgres_binaries

pytestmark = pytest.mark.full
KERNELS = ("debian:6.1/cloud", "debian:6.12/cloud")
PROGRAM = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]


class Lab:
    """A server, and workers on this machine by name."""

    def __init__(self, server: Postgres, folder: Path, cache: Path) -> None:
        self.server, self.folder = server, folder
        self.environment = {
            **os.environ, "KDELTA_STORE": server.url, "KDELTA_STATE": str(folder), "KDELTA_CACHE": str(cache),
        }  # fmt: skip
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def worker(self, name: str) -> None:
        """Start a worker, again if it died."""
        words = [*PROGRAM, "worker", "--host", name, "--slots", "1", "--dead-after", "3s"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(words, env=self.environment, stdout=log, stderr=log)

    def logs(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def run(self, *words: str, limit_s: float = 900) -> str:
        done = subprocess.run(
            [*PROGRAM, *words], env=self.environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()
        return done.stdout


@pytest.fixture
def lab(tmp_path: Path, cache: Path) -> Iterator[Lab]:
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("the PostgreSQL server is not installed: apt-get install postgresql")
    server = Postgres(binaries)
    server.start()
    made = Lab(server, tmp_path, cache)
    try:
        yield made
    finally:
        for worker in made.workers.values():
            worker.kill()
            worker.wait()
        server.stop()
        server.remove()


def found(text: str) -> str:
    """The whole answer to the byte, but its name, its time and the line that was typed."""
    answer: dict[str, Any] = json.loads(text)
    for name in ("id", "created_at", "command"):
        assert answer["experiment"].pop(name)
    return json.dumps(answer)


def test_three_workers_give_the_bytes_of_one_machine(lab: Lab, kdelta: Any) -> None:
    asked = ["compare", *KERNELS, "--case", "getppid", "--case", "pipe", "--seeds", "5", "--json", "-q"]
    for name in "abc":
        lab.worker(name)
    fleet = lab.run(*asked, "--fleet")
    assert found(fleet) == found(kdelta(*asked).stdout)
    with Store(lab.server.url) as store:
        hosts = {row.machine["host"] for row in store.boots("last")}
    assert hosts <= set("abc") and len(hosts) > 1
    shown = json.loads(lab.run("fleet", "--json"))
    assert [host["name"] for host in shown["hosts"]] == ["a", "b", "c"] and shown["experiments"] == []


def test_thirty_kills_of_workers_and_of_the_database_lose_nothing(lab: Lab, kdelta: Any) -> None:
    asked = ["run", "--kernel", KERNELS[0], "--exact", "--case", "getppid", "--case", "pipe", "--boots", "40"]
    dice = random.Random(20261122)
    for name in "abc":
        lab.worker(name)
    waiting = subprocess.Popen(
        [*PROGRAM, *asked, "--fleet", "--json", "-q"], env=lab.environment, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 1500
    with closing(Ledger(lab.server.url)) as ledger:
        while waiting.poll() is None and not ledger.asked():
            time.sleep(0.2)
    kills = {"worker": 0, "database": 0}
    while waiting.poll() is None and time.monotonic() < deadline:
        time.sleep(dice.uniform(0.5, 3.0))
        if sum(kills.values()) >= 30:
            continue
        if dice.random() < 0.2:
            lab.server.stop()
            time.sleep(dice.uniform(0.0, 2.0))
            lab.server.start()
            kills["database"] += 1
        else:
            name = dice.choice("abc")
            lab.workers[name].send_signal(signal.SIGKILL)
            lab.workers[name].wait()
            lab.worker(name)
            kills["worker"] += 1
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err + lab.logs()
    assert sum(kills.values()) == 30, f"it ended after {kills}"
    with Store(lab.server.url) as store:
        assert store.done("last") == {(block, 0) for block in range(40)}
        assert {row.state for row in store.boots("last")} == {"ok"}
    assert found(out) == found(kdelta(*asked, "--json", "-q", timeout=1500).stdout)
    assert "stored already" not in lab.logs()
