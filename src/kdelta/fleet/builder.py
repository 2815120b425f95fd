# SPDX-License-Identifier: GPL-2.0-or-later
"""A host that builds kernels for the others, one at a time: beside its boots, and alone on the machine meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from kdelta.errors import HostError, KdeltaError, UserError
from kdelta.fleet import outcome
from kdelta.fleet.away import until_back
from kdelta.fleet.blobs import Blobs
from kdelta.fleet.builds import Row
from kdelta.fleet.ledger import Ledger
from kdelta.fleet.needs import Host
from kdelta.fleet.outcome import Outcome
from kdelta.fleet.worker import Worker, in_thread
from kdelta.kernel import carried, products, source, toolchain
from kdelta.kernel.build import fault_of_source
from kdelta.kernel.worktree import Worktree
from kdelta.model import Progress, Quiet
from kdelta.model.pace import Pace
from kdelta.spec.kernels import KernelSpec

_SAY_S = 2.0
_HOSTS_TO_FAIL = 3
Make = Callable[[Row, Progress], Outcome]
Turn = Callable[[], AbstractAsyncContextManager[None]]


class _Said(Quiet):
    """Tells the table what a build is at, now and then."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._last = say, 0.0
        self._pace = Pace(time.monotonic)

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        self._pace.at(done or 0, total or 0)
        if time.monotonic() - self._last >= _SAY_S:
            self._last = time.monotonic()
            with contextlib.suppress(HostError):  # a database that is away ends no build: it is asked again at its end
                self._say(f"{text} ({done} of {total}){self._pace.left()}" if done and total else text)


def make(row: Row, blobs: Blobs, progress: Progress) -> Outcome:
    """Build ``row`` on this machine; what the source does not allow is an Outcome too.

    Raises:
        HostError: this machine could not: its disk, its compiler, its way to the blobs.
    """
    with tempfile.TemporaryDirectory(dir=_scratch(), prefix=".fleet-") as work:
        blobs.get(row.carried, Path(work) / "carried")
        asked = carried.decode((Path(work) / "carried").read_bytes())
        wanted = carried.wanted(asked, toolchain.probe(asked.arch), products.root() / asked.key)
        if not row.key.startswith(wanted.key):
            raise HostError(f"{row.name}: what was sent is another build than was asked for")

        def ready(home: Path) -> None:
            if Worktree(home).base_id == asked.base:
                return  # of the build before
            progress.step(f"fetching the source of {row.name}")
            blobs.get(row.base, Path(work) / "base")
            carried.unpack(asked, Path(work) / "base", home)

        try:
            built, stored = source.build(wanted, asked.name, progress, ready)
        except (UserError, HostError) as error:
            line = fault_of_source(error)
            if not line and not isinstance(error, UserError):
                raise
            return outcome.failed(wanted.key, error, line, blobs)
        kernel = products.kernel(KernelSpec(text=asked.name, kind="src", label="built"), built, stored)
        return outcome.sent(wanted.key, kernel, built, blobs, progress)


def _scratch() -> Path:
    root = products.root()
    root.mkdir(parents=True, exist_ok=True)
    return root


class Builder:
    """Takes builds from the table as long as its worker runs."""

    def __init__(
        self, ledger: Ledger, host: Host, make: Make, note: Callable[[str], None], turn: Turn, poll_s: float = 2.0
    ) -> None:
        self._builds, self._ledger, self._host = ledger.builds, ledger, host
        self._make, self._note, self._turn, self._poll_s = make, note, turn, poll_s
        self._makes = [made for kind, made in host.makes.items() if kind.startswith("build/")]
        self._dice = random.Random()

    async def run(self, worker: Worker) -> None:
        """Build until cancelled; what is in hand then is found by its worker's number, which is gone."""
        if not self._makes:
            await asyncio.Event().wait()
        wait_s = self._poll_s
        while True:
            if worker.number and await until_back(self._waits, self._note):
                async with self._turn():  # times that are measured here come first
                    await self._next(worker.number)
                wait_s = self._poll_s
            else:
                wait_s = min(1.5 * wait_s, 5 * self._poll_s)
            await asyncio.sleep(wait_s * self._dice.uniform(0.5, 1.0))

    async def _waits(self) -> bool:
        return await asyncio.to_thread(self._builds.waits, self._host.name, self._makes)

    async def _next(self, worker: int) -> None:
        """One build, if there still is one."""
        row = await until_back(
            lambda: asyncio.to_thread(self._builds.take, worker, self._host.name, self._makes), self._note
        )
        if row is None:
            return
        self._note(f"{row.name}: is built here")
        try:
            made = await until_back(lambda: in_thread(lambda: self._made(row, worker)), self._note)
        except KdeltaError as error:
            why = str(error)
            await until_back(lambda: asyncio.to_thread(self._failed, row, worker, why), self._note)
            return
        mine = await until_back(
            lambda: asyncio.to_thread(self._builds.finish, row.key, worker, made.encode(), made.why), self._note
        )
        self._note(f"{row.name}: {(made.why or 'built') if mine else 'another host builds it by now; dropped here'}")

    def _made(self, row: Row, worker: int) -> Outcome:
        return self._make(row, _Said(lambda text: self._builds.say(row.key, worker, text)))

    def _failed(self, row: Row, worker: int, why: str) -> None:
        """Let another host try, or end it where none is left."""
        self._note(f"{row.name}: {why}")
        failed_on = self._builds.give_back(row.key, worker, self._host.name)
        able = {seen.host.name for seen in self._ledger.hosts() if row.make in seen.host.makes.values()}
        if len(failed_on) >= _HOSTS_TO_FAIL or not able - set(failed_on):
            self._builds.fail(row.key, f"{why} (tried on {', '.join(failed_on)})")
