# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments for a fleet, and hosts whose boots are simulated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from kdelta.fleet.ledger import Ledger
from kdelta.fleet.needs import Host, Needs
from kdelta.fleet.queue import Queue
from kdelta.fleet.tend import Planner, planner
from kdelta.fleet.units import Ask, Unit
from kdelta.fleet.worker import Pace, Worker
from kdelta.model import BootResult, Case, Experiment, PlannedBoot, plans
from kdelta.store.store import Store
from unit.store.store_builders import boot, kernel, run

MAKES = {"exact/x86_64": "one", "timed/x86_64": "one"}
# A worker is dead after the usual time: on a busy machine a live one may be silent for a second.
QUICK = Pace(poll_s=0.02, beat_s=0.2, tend_s=0.2)
ALL = {(block, slot) for block in range(3) for slot in range(2)}  # the boots of ``asked``


def asked(name: str = "first", **more: Any) -> Experiment:
    """Two kernels, one case, three seeds without a look: six boots."""
    fields: dict[str, Any] = {
        "id": name, "mode": "exact", "plan": plans.Compare(), "kernels": (kernel("a"), kernel("b")), "blocks": 3,
        "cases": (Case(workload="getppid"),), "created_at": "2026-05-01T10:00:00+00:00",
    }  # fmt: skip
    return Experiment(**{**fields, **more})


def ask(mode: str = "exact", **more: Any) -> Ask:
    return Ask(needs=Needs(arch="x86_64", mode=mode, make="one"), **more)  # type: ignore[arg-type]


def state(ledger: Ledger, name: str = "first") -> str:
    return ledger.asked(name)[0].state


def host(name: str = "h", **more: Any) -> Host:
    return Host(**{"name": name, "slots": 1, "version": "1", "makes": MAKES, "cpus": 2, "memory_mib": 4096, **more})


def boot_of(plan: PlannedBoot, on: str = "h", **more: Any) -> BootResult:
    """What a host would have measured."""
    fields = {"kernel_index": plan.kernel, "machine": {"accel": "tcg", "host": on}, "runs": (run(0),), **more}
    return boot(plan.block, plan.slot, **fields)


class Hosts:
    """Workers in this process; ``measured`` has (host, unit) in the order in which they were begun."""

    def __init__(self, url: str, store: Store, ledger: Ledger) -> None:
        self.url, self.store, self.ledger = url, store, ledger
        self.measured: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.plan: Planner = planner(store)
        self.pace = QUICK
        self.workers: list[Worker] = []
        self.state: dict[int, str] = {}  # of the boots of a kernel, where they are not ok

    def worker(self, queue: Queue, of: Host, measure: Callable[[Unit], Any] | None = None) -> Worker:
        async def default(unit: Unit, _ask: Ask) -> Sequence[BootResult]:
            self.measured.append((of.name, unit.name))
            if measure is not None:
                result = measure(unit)
                if asyncio.iscoroutine(result):
                    await result
            await asyncio.sleep(0.01)
            return [boot_of(plan, of.name, **self._state(plan)) for plan in unit.plans]

        async def save(experiment: str, boots: Sequence[BootResult]) -> bool:
            return await asyncio.to_thread(self.store.save_together, experiment, boots)

        made = Worker(queue, self.ledger, of, default, save, self.plan, self.notes.append, self.pace)
        self.workers.append(made)
        return made

    def _state(self, plan: PlannedBoot) -> dict[str, Any]:
        state = self.state.get(plan.kernel)
        return {} if state is None else {"state": state, "why": "it crashed", "runs": ()}

    async def until(self, true: Callable[[], bool], limit_s: float = 120.0) -> None:
        """Wait for something that the store or the ledger shows."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if await asyncio.to_thread(true):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"not within {limit_s} s; notes: {self.notes}")

    async def run(self, *tasks: Any, until: Callable[[], bool]) -> None:
        """Let workers work until something is so, then stop them."""
        running = [asyncio.create_task(task.run()) for task in tasks]
        try:
            await self.until(until)
        finally:
            for worker in tasks:
                worker.stop()
            await asyncio.gather(*running, return_exceptions=True)
