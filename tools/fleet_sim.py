# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet of simulated hosts on the real queue: what does it cost, and what breaks first?

Everything is the code that runs in a lab (queue, ledger, tending, workers, storing) on a PostgreSQL server of its own,
but boots only sleep. The hosts are tasks of a few processes (--processes) and share their connections, so the
processor time that is shown for them is that of all hosts together. Times are shortened by --scale; what the queue
adds is not, so the efficiency shown is what a fleet has whose boots are so short.

Efficiency is against the same blocks on the same good hosts handed out without any queue (greedy, in order).
What this machine cannot do any more shows as "all hosts" and "database" together near its CPUs: then the simulation is
the limit, and no longer the queue.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import logging
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

import psycopg

from kdelta.errors import HostError
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.needs import Host, Needs
from kdelta.fleet.queue import Queue
from kdelta.fleet.tend import planner
from kdelta.fleet.units import Ask, Unit
from kdelta.fleet.worker import Pace, Worker
from kdelta.model import BootResult, Case, Experiment, Kernel, RunResult, Series, plans
from kdelta.store.store import Store
from postgres import Postgres, postgres_binaries

BOOT_S = (10.0, 120.0)
_AT_ONCE = 12  # of a process's calls of the store and the ledger; a worker of its own has a few
_CONNECTIONS = 16  # of a process to the queue; store and ledger have 15 each
_MOST_AT_ONCE = 250  # hosts of one process
BAD = 0.02  # of the hosts: half of them fail, half fall silent, in their first block
MAKES = {"timed/x86_64": "simulated"}


@dataclass(frozen=True)
class Load:
    """What is simulated."""

    hosts: int
    experiments: int
    blocks: int  # of each
    scale: float
    seed: int
    processes: int  # that play the hosts

    @property
    def bad(self) -> dict[int, str]:
        """How which hosts are bad."""
        chosen = random.Random(self.seed).sample(range(self.hosts), round(BAD * self.hosts))
        return {index: ("fails", "silent")[at % 2] for at, index in enumerate(chosen)}

    @property
    def good(self) -> int:
        return self.hosts - len(self.bad)


@dataclass(frozen=True)
class Signals:
    """What the processes that play hosts share with the one that asks."""

    up: Synchronized[int]  # hosts that have signed on
    measured: Synchronized[int]  # blocks
    over: Event


@dataclass
class Cost:
    """What the database and the hosts did, from when these are up and somebody asks until the last answer."""

    server: Postgres
    players: Sequence[int] = field(default_factory=tuple)  # processes that play hosts
    elapsed_s: float = 0.0
    transactions: int = 0
    database_s: float = 0.0
    process_s: float = 0.0
    measured: int = 0

    def begin(self, url: str) -> None:
        self._add(url, -1)

    def end(self, url: str) -> None:
        self._add(url, 1)

    def _add(self, url: str, sign: int) -> None:
        self.transactions += sign * transactions(url)
        self.database_s += sign * database_s(self.server)
        self.process_s += sign * sum(map(processor_s, self.players))
        self.elapsed_s += sign * time.monotonic()


def experiment(name: str, blocks: int) -> Experiment:
    kernels = tuple(Kernel(label=k, spec=k, release=k, image_path="/i", image_sha256=k) for k in "ab")
    return Experiment(
        id=name, mode="timed", plan=plans.Compare(), kernels=kernels, blocks=blocks,
        cases=(Case(workload="getppid"),), created_at="2026-11-22T00:00:00+00:00",
    )  # fmt: skip


def durations(load: Load, name: str, block: int) -> tuple[float, float]:
    """How long the two boots of a block sleep, in s, scaled."""
    dice = random.Random(f"{load.seed}/{name}/{block}")
    return dice.uniform(*BOOT_S) * load.scale, dice.uniform(*BOOT_S) * load.scale


def ideal_s(load: Load, good: int) -> float:
    """The time of ``good`` hosts that are handed the blocks in order without a queue."""
    free = [0.0] * good
    for name in names(load):
        for block in range(load.blocks):
            heapq.heapreplace(free, free[0] + sum(durations(load, name, block)))
    return max(free)


def names(load: Load) -> list[str]:
    return [f"sim{index}" for index in range(load.experiments)]


class Mute(Worker):
    """One that ends without a word, as a host does that loses its power."""

    async def _leave(self) -> None:
        return


class Machine:
    """One simulated host."""

    def __init__(self, load: Load, index: int, store: Store, signals: Signals) -> None:
        self.load, self.bad, self.store, self.signals = load, load.bad.get(index, ""), store, signals
        self.host = Host(name=f"h{index}", slots=1, version="sim", makes=MAKES)
        self.worker: Worker | None = None
        self.task: asyncio.Task[None] | None = None

    async def measure(self, unit: Unit, _ask: Ask) -> Sequence[BootResult]:
        spans = durations(self.load, unit.experiment, unit.plans[0].block)
        if self.bad == "fails":
            raise HostError("simulated: a bad host")
        if self.bad == "silent" and self.task is not None:
            await asyncio.sleep(spans[0] / 2)
            self.task.cancel()
            await asyncio.Event().wait()  # until then
        await asyncio.sleep(sum(spans))
        with self.signals.measured.get_lock():
            self.signals.measured.value += 1
        series = Series(metric="ns_per_op", unit="ns", better="lower", values=(500.0,) * 176, warm=(False,) * 176)
        runs = (RunResult(case=0, state="ok", series=(series,)),)
        log = b"x" * 20_000  # of a cloud kernel's console
        return [
            BootResult(plan=plan, state="ok", elapsed_s=span, machine={"host": self.host.name}, runs=runs, console=log)
            for plan, span in zip(unit.plans, spans, strict=True)
        ]

    async def save(self, name: str, boots: Sequence[BootResult]) -> bool:
        return await asyncio.to_thread(self.store.save_together, name, boots)


def processor_s(pid: int | str) -> float:
    """Processor time of a process and of those of its children that ended, in s; 0 where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(map(float, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def database_s(server: Postgres) -> float:
    """Processor time of all processes of the server, with those that ended, in s."""
    master = (server.folder / "data" / "postmaster.pid").read_text().split("\n")[0]
    return processor_s(master) + sum(map(processor_s, children(master)))


def children(pid: str) -> list[str]:
    found = []
    for folder in Path(f"/proc/{pid}/task").glob("*/children"):
        found += folder.read_text().split()
    return found


def transactions(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database").fetchone()
    return int(row[0]) if row else 0


async def play(load: Load, part: int, store: Store, ledger: Ledger, signals: Signals) -> None:
    """Every so many hosts, until all is over."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_AT_ONCE))
    pace = Pace()
    async with Queue(ledger.url, connections=_CONNECTIONS) as queue:
        running = []
        for index in range(part, load.hosts, load.processes):
            machine = Machine(load, index, store, signals)
            kind = Mute if machine.bad == "silent" else Worker
            worker = kind(
                queue, ledger, machine.host, machine.measure, machine.save, planner(store), lambda _: None, pace,
                random.Random(f"{load.seed}/{index}"),
            )  # fmt: skip
            machine.worker, machine.task = worker, asyncio.create_task(worker.run())
            running.append(machine)
        while any(machine.worker is None or not machine.worker.number for machine in running):
            await asyncio.sleep(0.2)
        with signals.up.get_lock():
            signals.up.value += len(running)
        while not signals.over.is_set():
            await asyncio.sleep(0.5)
        for machine in running:
            assert machine.worker is not None
            machine.worker.stop()
        await asyncio.gather(*(m.task for m in running if m.task), return_exceptions=True)


def player(load: Load, part: int, url: str, signals: Signals) -> None:
    with Store(url) as store, closing(Ledger(url)) as ledger:
        asyncio.run(play(load, part, store, ledger, signals))


@contextmanager
def players(load: Load, url: str, signals: Signals) -> Iterator[list[int]]:
    """The processes that play the hosts, all of which are up."""
    context = multiprocessing.get_context("spawn")
    parts = [context.Process(target=player, args=(load, part, url, signals)) for part in range(load.processes)]
    for process in parts:
        process.start()
    try:
        while signals.up.value < load.hosts:
            if any(process.exitcode is not None for process in parts):
                raise SystemExit("fleet_sim: a process that plays hosts has ended")
            time.sleep(0.2)
        yield [process.pid or 0 for process in parts]
    finally:
        signals.over.set()
        for process in parts:
            process.join()


def simulate(load: Load, store: Store, ledger: Ledger, cost: Cost) -> None:
    context = multiprocessing.get_context("spawn")
    signals = Signals(context.Value("l", 0), context.Value("l", 0), context.Event())
    for name in names(load):
        store.create(experiment(name, load.blocks))
    with players(load, ledger.url, signals) as cost.players:
        sys.stderr.write(f"{load.hosts} hosts are up, the blocks take {ideal_s(load, load.good):.0f} s\n")
        cost.begin(ledger.url)
        start = shown = time.monotonic()
        for name in names(load):
            ledger.open(name, Ask(needs=Needs(arch="x86_64", mode="timed", make="simulated")))
        while ledger.asked():
            time.sleep(0.5)
            if time.monotonic() - shown >= 10:
                shown = time.monotonic()
                total = load.experiments * load.blocks
                sys.stderr.write(f"{shown - start:.0f} s: {signals.measured.value} of {total} blocks measured\n")
        cost.end(ledger.url)
        cost.measured = signals.measured.value


def run(load: Load, table: Path | None = None) -> int:
    binaries = postgres_binaries()
    if binaries is None:
        sys.stderr.write("fleet_sim: the PostgreSQL server is not installed: apt-get install postgresql\n")
        return 2
    server = Postgres(binaries)
    try:
        server.start(f"max_connections={50 * load.processes + 50}")
        with Store(server.url) as store, closing(Ledger(server.url)) as ledger:
            cost = Cost(server)
            simulate(load, store, ledger, cost)
            ended = [ledger.asked(name)[0] for name in names(load)]
            sys.stdout.writelines(f"{one.experiment}: {one.state}: {one.why}\n" for one in ended if one.why)
            tell(load, cost, [len(store.done(name)) for name in names(load)])
            if table is not None:
                table.write_text(with_row(table.read_text(encoding="utf-8"), row(load, cost)), encoding="utf-8")
        server.stop()
    finally:
        server.remove()
    return 0


def tell(load: Load, cost: Cost, stored: Sequence[int]) -> None:
    total = load.experiments * load.blocks
    ideal = ideal_s(load, load.good)
    lines = {
        "hosts (bad)": f"{load.hosts} ({len(load.bad)})",
        "blocks": f"{total}, {sum(stored) // 2} stored, {cost.measured} measured",
        "boots": f"{BOOT_S[0] * load.scale:g} to {BOOT_S[1] * load.scale:g} s",
        "elapsed": f"{cost.elapsed_s:.1f} s, ideal {ideal:.1f} s",
        "efficiency": f"{ideal / cost.elapsed_s:.3f}",
        "blocks per second": f"{total / cost.elapsed_s:.2f}",
        "transactions": f"{cost.transactions / cost.elapsed_s:.0f}/s, {cost.transactions / total:.0f} per block",
        "database": f"{cost.database_s / cost.elapsed_s:.2f} CPUs",
        "all hosts": f"{cost.process_s / cost.elapsed_s:.2f} CPUs",
    }
    sys.stdout.writelines(f"{name:18} {value}\n" for name, value in lines.items())
    if sum(stored) != 2 * total:
        raise SystemExit("blocks are missing")


def row(load: Load, cost: Cost) -> str:
    """The table's line of docs/how-to/fleet.md."""
    total = load.experiments * load.blocks
    efficiency = ideal_s(load, load.good) / cost.elapsed_s
    cells = [
        str(load.hosts), str(total), f"{BOOT_S[0] * load.scale:g} to {BOOT_S[1] * load.scale:g} s", f"{efficiency:.3f}",
        f"{cost.transactions / total:.0f} a block, {cost.transactions / cost.elapsed_s:.0f}/s",
        f"{cost.database_s / cost.elapsed_s:.2f} CPUs", f"{cost.process_s / cost.elapsed_s:.2f} CPUs",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def with_row(page: str, new: str) -> str:
    """``page`` with the line of as many hosts replaced, or added below the table."""
    lines = page.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| hosts |"))
    last = next(number for number in range(first, len(lines)) if not lines[number].startswith("|"))
    hosts = new.split("|")[1]
    same = [number for number in range(first, last) if lines[number].split("|")[1] == hosts]
    if same:
        lines[same[0]] = new
    else:
        lines.insert(last, new)
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--experiments", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=20, help="of each experiment")
    parser.add_argument("--scale", type=float, default=0.05, help="boots take 10 to 120 s times this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=0, help="that play the hosts; by default one for 250")
    parser.add_argument("--table", type=Path, help="a page whose table gets the figures, as docs/how-to/fleet.md")
    asked = parser.parse_args()
    processes = asked.processes or -(-asked.hosts // _MOST_AT_ONCE)
    try:
        return run(Load(asked.hosts, asked.experiments, asked.blocks, asked.scale, asked.seed, processes), asked.table)
    except KeyboardInterrupt:
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # what its thousand tasks ended with
        sys.stderr.write("interrupted: nothing is told, as nothing was whole\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
