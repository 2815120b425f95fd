# SPDX-License-Identifier: GPL-2.0-or-later
"""Having kernels built by the fleet: each once, whoever asks, and kept here as if they had been built here."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kdelta.errors import HostError, KdeltaError
from kdelta.fleet import asking, makes, needs, outcome
from kdelta.fleet.away import until_back
from kdelta.fleet.blobs import Blobs
from kdelta.fleet.builds import Row
from kdelta.fleet.ledger import Ledger
from kdelta.kernel import carried, products, source
from kdelta.kernel.one_build import Wanted
from kdelta.model import Progress
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec

_LOOK_S = 1.0
_AWAY_S = 600.0


class Order(Struct, frozen=True):
    """A build that was asked for: of which spec, and its row."""

    spec: KernelSpec
    wanted: Wanted
    row: Row


def missing(specs: Sequence[KernelSpec], each: bool, progress: Progress) -> list[tuple[KernelSpec, Wanted]]:
    """What has to be built for ``specs``; ``each``: also along the series of the last.

    Raises:
        UserError: no such tree, ref or patch.
    """
    found = {}
    for spec in specs:
        if spec.kind not in BUILT_KINDS or spec.is_range:
            continue
        try:
            wants = source.wants(spec, each and spec == specs[-1], progress)
        except HostError:
            continue  # it cannot be fetched: told where it is taken from this machine
        found.update({wanted.key: (spec, wanted) for wanted in wants if products.recall(wanted.key) is None})
    return list(found.values())


def order(ledger: Ledger, blobs: Blobs, todo: Sequence[tuple[KernelSpec, Wanted]], progress: Progress) -> list[Order]:
    """Ask for what hosts can build as this machine would; what none can is left to it, and said.

    Raises:
        HostError: the source cannot be sent.
    """
    able = {made for host in asking.alive(ledger.hosts()) for made in host.makes.values()}
    asked = []
    for spec, wanted in todo:
        make = makes.building(wanted.tools)
        if make not in able:
            kind = needs.kind("build", wanted.tools.arch)
            progress.note(f"{spec.text}: built here, no host of the fleet has this kdelta and compiler ({kind})")
            continue
        asked.append(Order(spec, wanted, _send(ledger, blobs, spec, wanted, make, progress)))
    for one in asked:  # all of them at once: hosts share them
        known = ledger.builds.rows([one.row.key]).get(one.row.key)
        gone = known is not None and known.state == "done" and not outcome.whole(outcome.decode(known.outcome), blobs)
        ledger.builds.ask(one.row, again=gone)
    return asked


def _send(ledger: Ledger, blobs: Blobs, spec: KernelSpec, wanted: Wanted, make: str, progress: Progress) -> Row:
    """The build's source and patches, where all hosts reach them, as a row."""
    title = " ".join([wanted.origin.title, *(step.title for step in wanted.steps)])
    with tempfile.TemporaryDirectory(prefix="kdelta-") as folder:
        document = Path(folder) / "carried"
        document.write_bytes(carried.of(wanted, spec.text).encode())
        base = ledger.builds.sent(wanted.origin.base)
        if not (base and blobs.has(base)):
            progress.step(f"sending the source of {wanted.origin.title} to {blobs.url}")
            base = blobs.put(carried.pack(wanted.origin, Path(folder)))
        return Row(
            key=f"{wanted.key}/{make[:8]}", source=wanted.origin.base, make=make, name=title,
            state="waiting", said="", host="", deaths=0, carried=blobs.put(document), base=base,
        )  # fmt: skip


def wait(
    ledger: Ledger, blobs: Blobs, orders: Sequence[Order], progress: Progress, *, first: bool
) -> dict[KernelSpec, KdeltaError]:
    """Wait until all is built, and keep it here; returns what failed. With ``first`` the first failure is raised.

    Raises:
        HostError, UserError: see above; or the database was away for ten minutes.
    """
    return asyncio.run(_waited(ledger, blobs, orders, progress, first))


async def _waited(
    ledger: Ledger, blobs: Blobs, orders: Sequence[Order], progress: Progress, first: bool
) -> dict[KernelSpec, KdeltaError]:
    left = {one.row.key: one for one in orders}
    failed: dict[KernelSpec, KdeltaError] = {}
    while left:
        rows = await until_back(lambda: asyncio.to_thread(ledger.builds.rows, list(left)), progress.note, _AWAY_S)
        for key, row in rows.items():
            if row.state not in ("done", "failed"):
                continue
            one, made = left.pop(key), outcome.decode(row.outcome)
            if row.state == "done":
                outcome.adopt(one.wanted.key, made, blobs, progress)
            else:
                failed[one.spec] = outcome.error(one.wanted.key, row.name, row.host, made, row.said, blobs)
        if failed and first:
            raise next(iter(failed.values()))
        if left:
            progress.step(_at([rows[key] for key in left if key in rows]), len(orders) - len(left), len(orders))
            await asyncio.sleep(_LOOK_S)
    return failed


def _at(rows: Sequence[Row]) -> str:
    """What is being built where, in a line."""
    doing = [f"{row.host}: {row.said or row.name}" for row in rows if row.state == "doing"]
    return "; ".join(doing[:2]) if doing else "waiting for a host that builds"


def built(
    ledger: Ledger, specs: Sequence[KernelSpec], progress: Progress, *, each: bool = False, first: bool = True
) -> dict[KernelSpec, KdeltaError]:
    """Have all of ``specs`` built that are to be built and are not yet; see ``order`` and ``wait``."""
    todo = missing(specs, each, progress)
    if not todo:
        return {}
    blobs = Blobs()
    return wait(ledger, blobs, order(ledger, blobs, todo, progress), progress, first=first)
