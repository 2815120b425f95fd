# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers as users start them, real guests, a real PostgreSQL: the same bytes as on one machine, whoever is killed."""

from __future__ import annotations

import contextlib
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
from unit.kernel.tiny_tree import PIPE, git, patch, planted

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

    def worker(self, name: str, **more: str) -> None:
        """Start a worker, again if it died; ``more`` is of its environment."""
        words = [*PROGRAM, "worker", "--host", name, "--slots", "1", "--dead-after", "3s"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(words, env={**self.environment, **more}, stdout=log, stderr=log)

    def logs(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def each_log(self, names: str) -> list[str]:
        return [(self.folder / f"{name}.log").read_text(errors="replace") for name in names]

    def own_cache(self, name: str) -> Path:
        """A cache for one worker; what is only compiled is shared."""
        folder = self.folder / f"cache-{name}"
        if not folder.exists():
            folder.mkdir()
            for part in ("guest", "plugin"):
                (folder / part).symlink_to(Path(self.environment["KDELTA_CACHE"]) / part)
        return folder

    def until_hosts(self, count: int) -> None:
        """Wait until so many workers have signed on."""
        deadline = time.monotonic() + 120
        with closing(Ledger(self.server.url)) as ledger:
            while len(ledger.hosts()) < count:
                assert time.monotonic() < deadline, self.logs()
                time.sleep(0.2)

    def run(self, *words: str, limit_s: float = 900, code: int = 0) -> str:
        """What it printed; of one that fails, on both streams."""
        done = subprocess.run(
            [*PROGRAM, *words], env=self.environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr + self.logs()
        return done.stdout if code == 0 else done.stdout + done.stderr


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


def test_kernels_are_built_by_workers_that_have_no_tree(lab: Lab, tmp_path: Path) -> None:
    """Each has a cache of its own; what fails comes back with its log, and in a sweep it is a gap."""
    tree = planted(tmp_path / "linux")
    git(tree, "init", "-q", "-b", "main")
    for number, other in enumerate(("a * 3", "a * 4", "nosuch", "a * 5"), 1):
        (tree / "fs/other.c").write_text(f"int other(int a)\n{{\n\treturn {other};\n}}\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", other)
        git(tree, "tag", f"v6.{number}")
    for name in "ab":
        lab.worker(name, KDELTA_CACHE=str(lab.own_cache(name)))
    lab.environment["KDELTA_CACHE"] = str(tmp_path / "desk")
    lab.until_hosts(2)
    better = patch(tmp_path, "better.patch", PIPE.replace("return 0", "return 5"))
    asked = ["--case", "getppid", "--fleet", "--detach"]
    lab.run("compare", f"src:{tree}@v6.1", f"src:{tree}@v6.1+{better}", "--seeds", "5", *asked)
    lab.run("fleet", "--cancel", "last")
    assert not (tmp_path / "desk" / "ccache").exists() and not list((tmp_path / "desk").glob("build/git-*"))
    assert sorted(log.count("is built here") for log in lab.each_log("ab")) == [0, 2], "one source, one host"
    failed = lab.run("compare", f"src:{tree}@v6.1", f"src:{tree}@v6.3", *asked, code=2)
    assert "nosuch" in failed and f"log: {tmp_path / 'desk'}" in failed
    lab.run("sweep", "--refs", "v6.1..v6.4", "--tree", str(tree), *asked)
    lab.run("fleet", "--cancel", "last")
    with Store(lab.server.url) as store:
        swept = store.experiment("last")
    assert [kernel.label for kernel in swept.kernels] == ["v6.1", "v6.2", "v6.4"]
    (gap,) = swept.annotations.gaps
    assert gap.label == "v6.3" and "does not build" in gap.why and not gap.by_host
    assert sum(log.count("is built here") for log in lab.each_log("ab")) == 6, "v6.1 once, v6.3 again when asked again"


def found(text: str) -> str:
    """The whole answer to the byte, but its name, its time and the line that was typed."""
    answer: dict[str, Any] = json.loads(text)
    for name in ("id", "created_at", "command"):
        assert answer["experiment"].pop(name)
    return json.dumps(answer)


def test_three_workers_give_the_bytes_of_one_machine(
    lab: Lab, kdelta: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the default cases' kind and a program; the third shares no cache: kernels and the program travel to it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")  # a program is packed with what lies here: nobody edits it meanwhile
    asked = ["compare", *KERNELS, "--case", "getppid", "--case", "pipe", "--seeds", "5", "--json", "-q"]
    program = ["--", "cat", "/etc/passwd"]
    for name in "ab":
        lab.worker(name)
    lab.worker("c", KDELTA_CACHE=str(lab.own_cache("c")))
    lab.until_hosts(3)
    fleet = lab.run(*asked, "--fleet", *program)
    assert found(fleet) == found(kdelta(*asked, *program).stdout)
    with Store(lab.server.url) as store:
        hosts = {row.machine["host"] for row in store.boots("last")}
    assert hosts <= set("abc") and len(hosts) > 1
    assert list((lab.own_cache("c") / "programs").glob("*/spec"))
    shown = json.loads(lab.run("fleet", "--json"))
    assert [host["name"] for host in shown["hosts"]] == ["a", "b", "c"] and shown["experiments"] == []


def processes() -> dict[int, int]:
    """Those that run, with their parents."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text("latin-1").rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(path.parent.name)] = int(parent)
    return found


def guests_of(worker: subprocess.Popen[bytes]) -> set[int]:
    """The processes below a worker: QEMU, and what was forked of it."""
    parents = processes()
    found, below = set[int](), {worker.pid}
    while below := {pid for pid, parent in parents.items() if parent in below}:
        found |= below
    return found


@pytest.mark.parametrize("ends_by", [signal.SIGTERM, signal.SIGKILL])
def test_guests_wait_for_the_next_unit_and_end_with_their_worker(lab: Lab, ends_by: signal.Signals) -> None:
    lab.worker("a")
    lab.until_hosts(1)
    lab.run("run", "--kernel", KERNELS[0], "--exact", "--case", "getppid", "--boots", "5", "--fleet", "-q")
    waiting = guests_of(lab.workers["a"])
    assert len(waiting) == 2, "one that was restored, and of it one that has rehearsed the case"
    lab.workers["a"].send_signal(ends_by)
    lab.workers["a"].wait(60)
    deadline = time.monotonic() + 60
    while waiting & processes().keys():
        assert time.monotonic() < deadline, waiting
        time.sleep(0.2)


OWN = '#include "case.h"\n#include "../call.h"\n\nCASE(mine, "one call of my own")\n{\n\tCALL;\n}\n'


def test_own_cases_several_cpus_and_both_passes_travel(lab: Lab, kdelta: Any, tmp_path: Path) -> None:
    """C files come by content to a host that shares nothing; one host has a QEMU that counts several CPUs."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.c").write_text(OWN)
    (tmp_path / "call.h").write_text("#include <unistd.h>\n#define CALL getppid()\n")
    own = ["--case", str(tmp_path / "mine" / "mine.c"), "--seeds", "5", "--json", "-q"]
    smp = ["run", "--kernel", KERNELS[1], "--exact", "--smp", "2", "--boots", "4", "--case", "getppid", "--json", "-q"]
    kdelta(*smp, timeout=900)  # fetches that QEMU, where there is none
    for name in "ab":
        lab.worker(name)
    lab.worker("c", KDELTA_CACHE=str(lab.own_cache("c")))
    lab.until_hosts(3)
    assert found(lab.run(*smp, "--fleet")) == found(kdelta(*smp, timeout=900).stdout)
    with Store(lab.server.url) as store:
        assert {row.machine["host"] for row in store.boots("last")} <= set("ab"), "c has no such QEMU"
    both = json.loads(lab.run("compare", *KERNELS, *own, "--timed", "--exact", "--blocks", "2", "--fleet"))
    assert {row["state"] for row in both["results"]} == {"ok"}, both["experiment"]["boots_faulty"]
    assert both["counts"], "the pass that explains"
    alone = ["compare", *KERNELS, *own]
    assert found(lab.run(*alone, "--fleet")) == found(kdelta(*alone).stdout)
    assert list((lab.own_cache("c") / "workloads").glob("*/mine/mine.c")), "it took its share"


def test_thirty_kills_of_workers_and_of_the_database_lose_nothing(lab: Lab, kdelta: Any) -> None:
    asked = ["run", "--kernel", KERNELS[0], "--exact", "--case", "getppid", "--case", "pipe", "--boots", "180"]
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
        assert store.done("last") == {(block, 0) for block in range(180)}
        assert {row.state for row in store.boots("last")} == {"ok"}
    assert found(out) == found(kdelta(*asked, "--json", "-q", timeout=1500).stdout)
    assert "stored already" not in lab.logs()
