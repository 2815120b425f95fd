# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta worker: measure for the fleet on this host."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from contextlib import closing
from typing import TYPE_CHECKING

import click

from kdelta.cli import common
from kdelta.errors import HostError, UserError
from kdelta.units import counted

if TYPE_CHECKING:
    from kdelta.cli.progress import Reporter
    from kdelta.fleet.ledger import Ledger
    from kdelta.fleet.worker import Worker
    from kdelta.lab.places import Places
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  KDELTA_STORE=postgresql://lab@db/kdelta KDELTA_BLOBS=sftp://lab@db/srv/kdelta kdelta worker
  kdelta worker --host rack3 --slots 8

It takes units of work from the PostgreSQL store: blocks of times, one at a time and alone on the host, and single boots
of counts, as many at once as it has slots. Stopped (Ctrl-C, SIGTERM), it gives back what it has in hand; killed, its
units are queued again when it was silent for --dead-after.
"""
_START_S = 60.0  # for so long the database may be away when a worker starts
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@click.command(epilog=EPILOG)
@click.option("--host", "name", metavar="NAME", default=lambda: os.uname().nodename, help="The name of this host in reports.  [default: its host name]")  # fmt: skip
@click.option("--slots", type=click.IntRange(1, 1024), default=lambda: os.cpu_count() or 1, help="Boots of counts at once.  [default: its CPUs]")  # fmt: skip
@click.option("--dead-after", metavar="TIME", default="30s", show_default=True, help="A worker that is silent for so long has lost its units.")  # fmt: skip
@click.option("--on", "machines", multiple=True, metavar="FILE:NAME", help="Drive this machine of a lab: blocks that are asked for it are taken while it can be had.")  # fmt: skip
@click.option("--several-cpus", is_flag=True, help="Fetch a QEMU that counts guests of several CPUs, where none is here.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="Print errors only.")
def command(name: str, slots: int, dead_after: str, machines: tuple[str, ...], several_cpus: bool, quiet: bool) -> int:
    """Take work from the fleet's queue until stopped."""
    if not _NAME.fullmatch(name):
        raise UserError(f"--host {name[:80]!r}: 1 to 64 letters, digits, dots, dashes or underscores")
    dead_after_s = common.seconds(dead_after, "--dead-after") or 30.0
    from kdelta import paths
    from kdelta.cli.progress import Reporter
    from kdelta.experiment import emulator
    from kdelta.fleet.ledger import require
    from kdelta.lab.places import Places

    require(paths.store_url())
    if several_cpus:
        emulator.for_several_cpus("x86_64", "", Reporter(quiet))
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # what it says is told in our words
    places = Places(machines)
    asyncio.run(_run((name, slots), dead_after_s, places, Reporter(quiet)))
    return 0


async def _run(host: tuple[str, int], dead_after_s: float, places: Places, reporter: Reporter) -> None:
    """Open the store, which may be away just now, and work until stopped."""
    from kdelta import paths
    from kdelta.fleet.away import until_back
    from kdelta.fleet.ledger import Ledger
    from kdelta.store.store import Store

    store = await until_back(lambda: asyncio.to_thread(Store), reporter.note, _START_S)
    with (
        store,
        closing(await until_back(lambda: asyncio.to_thread(Ledger, paths.store_url()), reporter.note)) as ledger,
    ):
        await _work(store, ledger, host, dead_after_s, places, reporter)


async def _work(
    store: Store, ledger: Ledger, host: tuple[str, int], dead_after_s: float, places: Places, reporter: Reporter
) -> None:
    from msgspec.structs import replace

    from kdelta import paths
    from kdelta.fleet import makes
    from kdelta.fleet.bench import Bench
    from kdelta.fleet.blobs import Blobs
    from kdelta.fleet.builder import Builder, make
    from kdelta.fleet.queue import Queue
    from kdelta.fleet.tend import planner
    from kdelta.fleet.turnstile import turn
    from kdelta.fleet.units import Ask, Unit
    from kdelta.fleet.worker import Pace, Worker, in_thread
    from kdelta.model import BootResult

    found = replace(makes.survey(*host, reporter.note), machines=places.survey())
    blobs = Blobs()
    bench = Bench(store, blobs, found.name, reporter, places.texts)
    builder = Builder(
        ledger,
        found,
        lambda row, progress: make(row, blobs, progress),
        reporter.note,
        lambda: turn(paths.cache_dir(), True),
    )

    async def measure(unit: Unit, ask: Ask) -> tuple[BootResult, ...]:
        async with turn(paths.cache_dir(), unit.alone and not ask.needs.lab):
            try:
                return await in_thread(lambda: bench.measure(unit, ask))
            except HostError:
                if worker.host.kvm and not makes.kvm():  # tried for the first time: no guest runs under it
                    await worker.describe(replace(worker.host, kvm=False))
                raise

    async def save(experiment: str, boots: tuple[BootResult, ...]) -> bool:
        return await asyncio.to_thread(store.save_together, experiment, boots)

    with closing(bench):
        async with Queue(ledger.url) as queue:
            pace = Pace(
                beat_s=min(5.0, dead_after_s / 4), tend_s=min(10.0, dead_after_s / 2), dead_after_s=dead_after_s
            )
            parts = (queue, ledger, found, measure, save, planner(store), reporter.note, pace)
            have = (places.acquire, places.release)
            worker = Worker(*parts, beside=builder.run, places=have if places.texts else None)  # type: ignore[arg-type]
            _stop_on_signals(worker, reporter)
            reporter.note(
                f"worker {found.name}: {counted(found.slots, 'slot')}, kdelta {found.version}, {', '.join(sorted(found.makes))}"
            )
            await worker.run()


def _stop_on_signals(worker: Worker, reporter: Reporter) -> None:
    def stop() -> None:
        reporter.note("stopping: what is in hand is given back")
        worker.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
