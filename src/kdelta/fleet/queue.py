# SPDX-License-Identifier: GPL-2.0-or-later
"""Units in PostgreSQL by procrastinate: put, taken once, finished, and taken back from workers that died.

procrastinate keeps the jobs, the locks and the heartbeats. Its own worker listens on queues that are fixed when it
starts and ends with its database; ours takes from the experiments that its host may measure, and outlives a restart of
the database (``worker.py``). A queue is an experiment; what is finished is deleted, so that fetching stays fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType

import msgspec
import psycopg
from msgspec import Struct
from procrastinate import App, PsycopgConnector, exceptions
from procrastinate.jobs import Job, Status
from sqlalchemy.engine import make_url

from kdelta.errors import HostError
from kdelta.fleet.away import Away
from kdelta.fleet.units import Unit

TASK = "kdelta.unit"
_AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)  # whatever the clock of this host says
# Of procrastinate's queries three: with a thousand hosts a heartbeat should be one. It also says whether somebody has
# to look after the queue (Ledger.tending): else a thousand hosts would ask that by itself.
_BEAT = """
WITH beat AS (UPDATE procrastinate_workers SET last_heartbeat = NOW() WHERE id = %(worker)s RETURNING id)
SELECT EXISTS (SELECT 1 FROM beat) AS alive,
       ARRAY(SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = %(worker)s) AS jobs,
       NOT EXISTS (SELECT 1 FROM fleet_tended
                   WHERE at BETWEEN NOW() - make_interval(secs => %(every_s)s) AND NOW()) AS due
"""
_WAITING = """
SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status = 'todo' AND queue_name = ANY(%(names)s::text[])) AS some
"""
# Written before the database's clock was put back: whoever wrote it would be alive until then.
_PUT_BACK = "UPDATE procrastinate_workers SET last_heartbeat = NOW() WHERE last_heartbeat > NOW()"
_BUSY = """
SELECT count(*) AS busy FROM unnest(%(names)s::text[]) AS name WHERE EXISTS (
    SELECT 1 FROM procrastinate_jobs
    WHERE status IN ('todo', 'doing') AND (queue_name = name OR starts_with(queue_name, name || '@')))
"""


class Unlisted(HostError):
    """The worker is registered no more: others took it for dead."""


class Beat(Struct, frozen=True):
    """What a heartbeat told: the jobs of a worker, None where it is registered no more; whether tending is due."""

    jobs: set[int] | None
    due: bool


class Taken(Struct, frozen=True, kw_only=True):
    """A unit and the job it is."""

    job: int
    unit: Unit
    worker: int | None = None


@contextmanager
def translated() -> Iterator[None]:
    """Raises:
    Away: instead of what the driver raises while the database is down. Unlisted: a worker that is registered no more
    took a unit. HostError: instead of all else.
    """
    try:
        yield
    except (exceptions.ProcrastinateException, psycopg.Error) as error:
        cause = error.__cause__ or error
        said = " ".join(str(cause).split())[:300]
        if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
            raise Away(f"the fleet's database cannot be reached ({said})") from error
        raise (Unlisted if isinstance(cause, psycopg.errors.ForeignKeyViolation) else HostError)(
            f"the fleet's queue: {said}"
        ) from error


def _queue(experiment: str, host: str) -> str:
    """The queue of an experiment's units, or of those that one host has to take; no id has an ``@``."""
    return f"{experiment}@{host}" if host else experiment


def _conninfo(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


class Queue:
    """The queue of one database; an asynchronous context manager. Every method raises as ``translated`` says."""

    def __init__(self, url: str, connections: int = 4) -> None:
        self._app = App(
            connector=PsycopgConnector(
                conninfo=_conninfo(url),
                min_size=1,
                max_size=connections,
                timeout=10.0,
                kwargs={"autocommit": True},  # each order is one statement: BEGIN and COMMIT would be two more
            )
        )

    async def __aenter__(self) -> Queue:
        with translated():
            await self._app.open_async()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with translated():
            await self._app.close_async()

    # Workers

    async def enlist(self) -> int:
        """Register a worker; returns its number."""
        with translated():
            return await self._app.job_manager.register_worker()

    async def beat(self, worker: int, every_s: float = 0.0) -> Beat:
        """Say that ``worker`` is alive; the queue is to be looked after ``every_s``."""
        with translated():
            row = await self._app.connector.execute_query_one_async(_BEAT, worker=worker, every_s=every_s)
        return Beat({int(job) for job in row["jobs"]} if row["alive"] else None, bool(row["due"]))

    async def leave(self, worker: int) -> None:
        """Take ``worker`` off the list."""
        with translated():
            await self._app.job_manager.unregister_worker(worker)

    # Units

    async def put(self, units: Sequence[Unit]) -> None:
        """Queue units in order, all or none."""
        jobs = [
            Job(
                queue=_queue(unit.experiment, unit.host),
                task_name=TASK,
                lock=None,
                queueing_lock=f"{unit.experiment}/{unit.name}",
                task_kwargs=msgspec.to_builtins(unit),
            )
            for unit in units
        ]
        with translated():
            await self._app.job_manager.batch_defer_jobs_async(jobs)

    async def take(self, experiments: Sequence[str], host: str, worker: int) -> Taken | None:
        """The first waiting unit of ``experiments`` that ``host`` may take, now ``worker``'s."""
        queues = [*experiments, *(_queue(name, host) for name in experiments)]
        with translated():
            job = await self._app.job_manager.fetch_job(queues, worker)
        return None if job is None else _taken(job)

    async def holds(self, taken: Taken, worker: int) -> bool:
        """Whether the unit is still ``worker``'s: one that was silent for too long has lost it."""
        with translated():
            jobs = await self._app.job_manager.list_jobs_async(id=taken.job)
        return any(job.status == "doing" and job.worker_id == worker for job in jobs)

    async def finish(self, taken: Taken) -> None:
        """The unit is stored."""
        with translated():
            await self._app.job_manager.finish_job_by_id_async(taken.job, Status.SUCCEEDED, delete_job=True)

    async def give_back(self, taken: Taken) -> None:
        """Another worker may take the unit."""
        with translated():
            await self._app.job_manager.retry_job_by_id_async(job_id=taken.job, retry_at=_AT_ONCE)

    async def drop(self, experiment: str) -> None:
        """Forget all waiting units of ``experiment``."""
        manager = self._app.job_manager
        with translated():
            for name in await self._queues(experiment):
                for job in await manager.list_jobs_async(queue=name, status="todo"):
                    await manager.cancel_job_by_id_async(job.id or 0, delete_job=True)

    async def unfinished(self, experiment: str) -> int:
        """How many units of ``experiment`` wait or are being measured."""
        return sum((await self.counts(experiment)).values())

    async def idle(self, experiments: Sequence[str]) -> bool:
        """Whether one of ``experiments`` has no units at all. One query: hosts ask it whenever they find nothing."""
        with translated():
            row = await self._app.connector.execute_query_one_async(_BUSY, names=list(experiments))
        return int(row["busy"]) < len(experiments)

    async def waiting(self, experiments: Sequence[str], host: str) -> bool:
        """Whether a unit of ``experiments`` waits that ``host`` may take."""
        names = [*experiments, *(_queue(name, host) for name in experiments)]
        with translated():
            row = await self._app.connector.execute_query_one_async(_WAITING, names=names)
        return bool(row["some"])

    async def counts(self, experiment: str) -> dict[str, int]:
        """Units of ``experiment`` that are waiting (``todo``) and being measured (``doing``)."""
        with translated():
            found = (await self._queues(experiment)).values()
        return {state: sum(one[state] for one in found) for state in ("todo", "doing")}

    async def _queues(self, experiment: str) -> dict[str, dict[str, int]]:
        """The queues of ``experiment`` with their counts; single hosts' are looked for where it has no other."""
        manager = self._app.job_manager
        found = list(await manager.list_queues_async(queue=experiment)) or list(await manager.list_queues_async())
        return {one["name"]: one for one in found if one["name"].partition("@")[0] == experiment}

    async def held_by(self, worker: int) -> list[Taken]:
        """The units that are ``worker``'s."""
        with translated():
            found = await self._app.job_manager.list_jobs_async(status="doing", worker_id=worker)
        return [_taken(job) for job in found]

    async def doing(self) -> list[Taken]:
        """The units that are being measured."""
        with translated():
            return [_taken(job) for job in await self._app.job_manager.list_jobs_async(status="doing")]

    async def take_back(self, silent_s: float) -> list[Taken]:
        """Queue again what workers had that have been silent for so long, and forget these workers.

        The caller sees to it that nobody else does so at the same time.
        """
        manager = self._app.job_manager
        with translated():
            await self._app.connector.execute_query_async(_PUT_BACK)
            lost = [_taken(job) for job in await manager.get_stalled_jobs(seconds_since_heartbeat=silent_s)]
            for one in lost:
                await manager.retry_job_by_id_async(job_id=one.job, retry_at=_AT_ONCE)
            await manager.prune_stalled_workers(silent_s)
        return lost


def _taken(job: Job) -> Taken:
    return Taken(
        job=job.id or 0,
        unit=msgspec.convert(job.task_kwargs, Unit),
        worker=job.worker_id,
    )
