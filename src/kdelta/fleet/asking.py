# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking the fleet for an experiment, and waiting until it is decided."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sqlalchemy import inspect, select

from kdelta.errors import HostError
from kdelta.fleet import makes, needs, own_sources, ship, tend, units
from kdelta.fleet.away import until_back
from kdelta.fleet.blobs import Blobs
from kdelta.fleet.ledger import Asked, Ledger, Seen
from kdelta.fleet.ledger import ask as asks
from kdelta.fleet.needs import Host, Needs
from kdelta.fleet.queue import Queue
from kdelta.fleet.units import Ask
from kdelta.model import Experiment, Progress
from kdelta.results import definitions
from kdelta.store import connect, tables
from kdelta.store.store import Store
from kdelta.units import counted

_LOOK_S = 1.0
_AWAY_S = 600.0  # for so long the database may be away from somebody who waits


def alive(hosts: Sequence[Seen]) -> list[Host]:
    """The hosts that were heard lately, or could not have been."""
    return [seen.host for seen in hosts if seen.missed_s <= tend.DEAD_AFTER_S]


def is_open(url: str, experiment: str) -> bool:
    """Whether the fleet of the store at ``url`` has ``experiment`` to measure; no store becomes a fleet's by that.

    Raises:
        HostError: the database refuses.
    """
    engine = connect.open_engine(url)
    a, e = asks.c, tables.experiment.c
    query = select(a.state).join(tables.experiment, a.experiment_no == e.no).where(e.id == experiment)
    try:
        with connect.translated(engine.url), engine.connect() as connection:
            return inspect(connection).has_table(asks.name) and connection.execute(query).scalar() == "open"
    finally:
        engine.dispose()


def needs_of(experiment: Experiment, own: Host, hosts: Sequence[Host]) -> Needs:
    """What its boots need. Pure.

    Raises:
        UserError: neither a host nor this machine can make such boots.
    """
    machine, arch = experiment.machine, experiment.kernels[0].arch
    timed = experiment.mode == "timed"
    if machine.lab:
        hosts = [host for host in hosts if machine.lab in host.machines]
        make, _ = needs.chosen_make(needs.kind("lab", arch), own.makes, hosts, False)
        return Needs(arch=arch, mode=experiment.mode, make=make, lab=machine.lab)
    several = not timed and machine.smp > 1
    wants_kvm = timed and machine.kvm != "off"
    wanted = needs.kind("several" if several else experiment.mode, arch)
    make, kvm = needs.chosen_make(wanted, own.makes, hosts, wants_kvm)
    return Needs(
        arch=arch,
        mode=experiment.mode,
        make=make,
        kvm=kvm or (timed and machine.kvm == "on"),
        cpus=machine.smp if timed else 1,
        memory_mib=machine.memory_mib,
        several_cpus=several,
    )


def ask(store: Store, ledger: Ledger, experiment: Experiment, progress: Progress) -> Needs:
    """Send the kernels, and leave the experiment to the fleet.

    Raises:
        UserError: the fleet cannot measure it. HostError: the blobs or the database refuse.
    """
    needs.refuse(experiment)
    progress.step("looking at the fleet")
    wanted = needs_of(experiment, makes.survey("", 0), alive(ledger.hosts()))
    blobs = Blobs()
    parcels = {kernel.image_sha256: ship.send(kernel, blobs, progress) for kernel in experiment.kernels}
    kept, boots = store.kept(experiment.id), store.boots(experiment.id)
    asked = Ask(
        needs=wanted,
        kernels=parcels,
        programs=ship.send_programs(experiment.cases, blobs, progress),
        sources=own_sources.send(experiment.folders, wanted.arch, blobs, progress),
        again=tuple(boot.started_at for boot in boots if (boot.block, boot.slot) not in kept),
    )
    stale = units.stale(experiment, boots, wanted.make)
    if stale and tend.planner(store)(experiment.id, asked)[0]:
        store.forget(experiment.id, stale)
        if len(stale) == len(boots):
            store.redefine(experiment.id, definitions.as_booted_now)
        progress.note(f"{len(stale)} boots were not counted as the fleet counts now: they are made again")
    ledger.open(experiment.id, asked)
    return wanted


async def _once(store: Store, ledger: Ledger, name: str) -> None:
    async with Queue(ledger.url, connections=2) as queue:
        await tend.tend(queue, ledger, tend.planner(store), mine=lambda asked: asked.experiment == name)


def begin(store: Store, ledger: Ledger, name: str) -> None:
    """Queue the first units of an experiment now, without waiting for a worker to do it."""
    asyncio.run(_once(store, ledger, name))


def told(ledger: Ledger, wanted: Needs, progress: Progress) -> None:
    """Say that no host can take it now, where that is so, to somebody who does not wait."""
    hosts = alive(ledger.hosts())
    if all(needs.lacking(wanted, host) for host in hosts):
        progress.note(nobody(wanted, hosts))


def wait(store: Store, ledger: Ledger, experiment: Experiment, wanted: Needs, progress: Progress) -> None:
    """Wait until the fleet has measured ``experiment``.

    Raises:
        HostError: it could not, or the database was away for ten minutes.
    """
    asyncio.run(_waited(store, ledger, experiment, wanted, progress))


async def _waited(store: Store, ledger: Ledger, experiment: Experiment, wanted: Needs, progress: Progress) -> None:
    planned = experiment.blocks * len(experiment.kernels) * len(experiment.mitigations)
    told, shown = "", (-1, "")
    while True:
        asked, hosts, done = await until_back(
            lambda: asyncio.to_thread(_look, store, ledger, experiment.id), progress.note, _AWAY_S
        )
        if asked.state == "failed":
            raise HostError(f"the fleet gave experiment {experiment.id} up: {asked.why}")
        if asked.state == "done":
            if asked.why:
                progress.note(asked.why)
            progress.boots(done, done, "done")
            return
        able = [host.name for host in hosts if not needs.lacking(wanted, host)]
        if not able and told != (why := nobody(wanted, hosts)):
            progress.note(why)
            told = why
        now = (done, _on(able))
        if now != shown:  # where it is no terminal each is a line
            progress.boots(now[0], planned, now[1])
            shown = now
        await asyncio.sleep(_LOOK_S)


def _look(store: Store, ledger: Ledger, name: str) -> tuple[Asked, list[Host], int]:
    return ledger.asked(name)[0], alive(ledger.hosts()), len(store.done(name))


def _on(able: Sequence[str]) -> str:
    """Who measures it, in a few words. Pure."""
    if not able:
        return "waiting for a host"
    return f"{counted(len(able), 'host')}: {', '.join(able[:4])}{', ...' if len(able) > 4 else ''}"


def lanes(ledger: Ledger, wanted: Needs) -> int:
    """How many boots the hosts that may take it make at once.

    Raises:
        HostError: the database cannot be reached.
    """
    able = [host for host in alive(ledger.hosts()) if not needs.lacking(wanted, host)]
    return sum(1 if wanted.mode == "timed" else host.slots for host in able)


def nobody(wanted: Needs, hosts: Sequence[Host]) -> str:
    """Why no host takes the units, in a line. Pure."""
    if not hosts:
        return "no worker is running: start one with: kdelta worker"
    whys = {host.name: needs.lacking(wanted, host) for host in hosts}
    return f"no worker can take it: {'; '.join(f'{name}: {why}' for name, why in sorted(whys.items())[:4])}"
