# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: every experiment with every sample, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, delete, insert, select, update

from kdelta import paths
from kdelta.errors import UserError
from kdelta.model import Annotations, BootResult, Experiment, Kernel
from kdelta.store import codec, connect, listing, reads, tables, transfer, writes
from kdelta.store.diary import Diary
from kdelta.store.rows import (
    BootRow,
    ExperimentRow,
    FactRow,
    Floor,
    HistogramRow,
    HistoryRow,
    Look,
    Number,
    ProfileRow,
    SampleRow,
)


class Store(Diary):
    """A context manager over one database; threads may share it.

    ``experiment_id`` is an id, a beginning of one that fits no other, or ``last``. Every method raises UserError where
    it fits no experiment or several, and HostError where the database fails.
    """

    def __init__(self, url: str | None = None) -> None:
        """Open ``url`` (``paths.store_url()`` by default), made or migrated as needed.

        Raises:
            UserError: no URL, another program's file, or a store made by a newer kdelta.
            HostError: the database cannot be opened.
        """
        self._begin(url or paths.store_url())

    def _begin(self, url: str) -> None:
        self._engine = connect.open_engine(url)
        self._writer = self._engine.execution_options(kdelta_writes=True)
        try:
            connect.prepare(self._engine)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    @property
    def address(self) -> str:
        """Of its database, with all that it takes to open it."""
        return self._engine.url.render_as_string(hide_password=False)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with connect.translated(self._engine.url), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction: whole, or not at all."""
        with connect.translated(self._engine.url), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _reading_of(self, experiment_id: str) -> Iterator[tuple[Connection, int]]:
        """The connection, and the number of the experiment, which is named with any damage that is met."""
        with self._reading() as connection:
            found = writes.find(connection, experiment_id)
            with codec.named(found.id):
                yield connection, found.no

    # Experiments

    def create(self, experiment: Experiment) -> None:
        """Store a new experiment.

        Raises:
            UserError: its id is taken or not allowed.
        """
        with self._writing() as connection:
            writes.insert_experiment(connection, experiment)

    def annotate(self, experiment_id: str, change: Callable[[Annotations], Annotations]) -> Experiment:
        """Keep what was found out around an experiment: ``change`` makes new annotations of those that are stored.

        Returns the experiment as it is now. All else stays: only ``add_kernel`` and ``redefine`` change it.
        """
        with self._writing() as connection:
            found = writes.find(connection, experiment_id)
            return writes.grow(connection, found, lambda e: replace(e, annotations=change(e.annotations)))

    def add_kernel(self, experiment_id: str, kernel: Kernel) -> Experiment:
        """Add a kernel to a growing experiment (a bisection), behind those that it has; returns it as it is now."""
        with self._writing() as connection:
            found = writes.find(connection, experiment_id)
            return writes.grow(connection, found, lambda e: replace(e, kernels=(*e.kernels, kernel)))

    def redefine(self, experiment_id: str, change: Callable[[Experiment], Experiment]) -> Experiment:
        """Change what an experiment says of its boots, all of which are to be made anew; returns it as it is now."""
        with self._writing() as connection:
            return writes.grow(connection, writes.find(connection, experiment_id), change)

    def vouch(self, experiment_id: str, change: Callable[[Experiment], Experiment] = lambda e: e) -> Experiment:
        """Take an imported experiment as one's own, as ``change`` makes it; returns it as it is now."""
        with self._writing() as connection:
            found = writes.find(connection, experiment_id)
            return writes.grow(connection, found, lambda e: replace(change(e), imported=False))

    def experiment(self, experiment_id: str) -> Experiment:
        """The experiment as it was created."""
        with self._reading() as connection:
            return writes.read_experiment(connection, writes.find(connection, experiment_id))

    def experiments(
        self, kind: str | None = None, limit: int | None = None, tag: str | None = None
    ) -> list[ExperimentRow]:
        """All experiments, the newest first; only of one ``kind`` or with one ``tag``."""
        with self._reading() as connection:
            return listing.experiments(connection, kind, limit, tag)

    def taken(self, experiment_id: str) -> bool:
        """Whether an experiment of just this id is stored."""
        e = tables.experiment.c
        with self._reading() as connection:
            return connection.execute(select(e.no).where(e.id == experiment_id)).first() is not None

    def id_of(self, experiment_id: str) -> str:
        """The whole id of an experiment; nothing else of it is read."""
        with self._reading() as connection:
            return writes.find(connection, experiment_id).id

    def delete(self, experiment_id: str) -> str:
        """Forget an experiment with all its boots, looks and tags; returns its id."""
        with self._writing() as connection:
            found = writes.find(connection, experiment_id)
            connection.execute(delete(tables.experiment).where(tables.experiment.c.no == found.no))
        return found.id

    def tag(self, experiment_id: str, tag: str, *, remove: bool = False) -> str:
        """Put a tag on an experiment, or take it off; returns the experiment's id.

        Raises:
            UserError: the tag is not one short word, or there is none of that name to take off.
        """
        t = tables.tag
        tag = codec.check_tag(tag)
        with self._writing() as connection:
            found = writes.find(connection, experiment_id)
            here = (t.c.experiment_no == found.no) & (t.c.name == tag)
            present = connection.execute(select(t.c.name).where(here)).first() is not None
            if remove and not present:
                raise UserError(f"experiment {found.id} has no tag {tag!r}")
            if remove:
                connection.execute(delete(t).where(here))
            elif not present:
                connection.execute(insert(t).values(experiment_no=found.no, name=tag))
        return found.id

    def note(self, experiment_id: str, text: str) -> str:
        """Set an experiment's note ("" removes it); returns the experiment's id.

        Raises:
            UserError: control characters, or over 64 Ki characters.
        """
        e = tables.experiment
        text = codec.check_note(text)
        with self._writing() as connection:
            found = writes.find(connection, experiment_id)
            connection.execute(update(e).where(e.c.no == found.no).values(note=text))
        return found.id

    # Boots

    def save_boot(self, experiment_id: str, boot: BootResult) -> None:
        """Store a finished boot, whole or not at all; it replaces a lost one.

        Raises:
            HostError: its block and slot is stored already, it does not fit the experiment, or the disk is full.
        """
        with self._writing() as connection:
            writes.insert_boot(connection, writes.find(connection, experiment_id), boot)

    def save_together(self, experiment_id: str, boots: Sequence[BootResult]) -> bool:
        """Store boots that are one piece of evidence, all or none.

        False where one of them is stored already: another host was faster, and nothing is changed.

        Raises:
            HostError: they do not fit the experiment, or the disk is full.
        """
        with self._writing() as connection:
            found = writes.find(connection, experiment_id)
            writes.hold(connection, found)
            if writes.kept(connection, found, [(boot.plan.block, boot.plan.slot) for boot in boots]):
                return False
            for boot in boots:
                writes.insert_boot(connection, found, boot)
        return True

    def forget(self, experiment_id: str, places: Collection[tuple[int, int]]) -> None:
        """Remove the boots of these blocks and slots; looks at counts, which they were part of, go with them."""
        with self._writing() as connection:
            writes.forget(connection, writes.find(connection, experiment_id), places)

    def done(self, experiment_id: str) -> set[tuple[int, int]]:
        """(block, slot) of every stored boot, whatever its state."""
        b = tables.boot.c
        with self._reading() as connection:
            no = writes.find(connection, experiment_id).no
            rows = connection.execute(select(b.block, b.slot).where(b.experiment_no == no))
            return {(row.block, row.slot) for row in rows}

    def kept(self, experiment_id: str) -> set[tuple[int, int]]:
        """(block, slot) of every stored boot that is not made again; one that was cut short is."""
        with self._reading() as connection:
            return writes.kept(connection, writes.find(connection, experiment_id))

    def boots(self, experiment_id: str) -> list[BootRow]:
        """All boots in order of block and slot, without console, stream and samples."""
        with self._reading_of(experiment_id) as (connection, no):
            return reads.boot_rows(connection, no)

    def boot(self, experiment_id: str, block: int, slot: int) -> BootResult:
        """One boot as it was saved.

        Raises:
            UserError: it is not stored.
        """
        with self._reading_of(experiment_id) as (connection, no):
            reads.log(connection, no, (block, slot))
            return next(reads.whole_boots(connection, no, (block, slot)))

    def identical(self, identity: str) -> tuple[str, BootResult] | None:
        """The newest exact boot that was measured here with this identity, and its experiment's id; else None.

        One in which a case hung or failed only where there is no other.
        """
        with self._reading() as connection:
            return reads.identical(connection, identity)

    def console(self, experiment_id: str, block: int, slot: int) -> bytes:
        """The console of one boot as the guest wrote it: not text, not trusted.

        Raises:
            UserError: it is not stored.
        """
        with self._reading_of(experiment_id) as (connection, no):
            return reads.console(connection, no, (block, slot))

    def stream(self, experiment_id: str, block: int, slot: int) -> bytes:
        """The record stream of one boot (guest/protocol.py): not trusted; raises as ``console`` does."""
        with self._reading_of(experiment_id) as (connection, no):
            return reads.stream(connection, no, (block, slot))

    # Figures

    def numbers(self, experiment_id: str, case: int | None = None, metric: str | None = None) -> list[Number]:
        """One number per boot, case and metric, in order of block, slot and case; see ``rows.Number``."""
        with self._reading_of(experiment_id) as (connection, no):
            return reads.numbers(connection, no, case, metric)

    def samples(self, experiment_id: str, case: int, metric: str) -> list[SampleRow]:
        """All samples of one case and metric, a row per boot, warm-up included and marked."""
        with self._reading_of(experiment_id) as (connection, no):
            return reads.samples(connection, no, case, metric)

    def histograms(self, experiment_id: str, case: int) -> list[HistogramRow]:
        """HdrHistogram V2 payloads of one case by name, a row per boot that has any."""
        with self._reading_of(experiment_id) as (connection, no):
            return reads.histograms(connection, no, case)

    def profiles(self, experiment_id: str, case: int) -> list[ProfileRow]:
        """Exact counts by function of one case, a row per boot that has them."""
        with self._reading_of(experiment_id) as (connection, no):
            return reads.profiles(connection, no, case).get(case, [])

    def all_profiles(self, experiment_id: str, *, costs_alone: bool = False) -> dict[int, list[ProfileRow]]:
        """``profiles`` of every case, in one pass over the boots: asked case by case, each would be one.

        ``costs_alone``: without the lines that functions touched, waits and stacks.
        """
        with self._reading_of(experiment_id) as (connection, no):
            return reads.profiles(connection, no, None, costs_alone=costs_alone)

    def keep_stacks(self, experiment_id: str, place: tuple[int, int], case: int, stacks: str) -> None:
        """Add the call stacks of one run (``Profile.stacks``), counted later; ``place``: block and slot of its boot.

        Raises:
            HostError: it has no profile.
        """
        with self._writing() as connection:
            writes.keep_stacks(connection, writes.find(connection, experiment_id), place, case, stacks)

    def facts(self, experiment_id: str, case: int | None = None) -> list[FactRow]:
        """Facts of the runs of one case, or of all, a row per run."""
        with self._reading_of(experiment_id) as (connection, no):
            return reads.facts(connection, no, case)

    def history(self, case_name: str, metric: str | None = None) -> list[HistoryRow]:
        """A case (by its name, or its workload's) over all experiments, oldest first; boots and runs that were ok."""
        with self._reading() as connection:
            return reads.history(connection, case_name, metric)

    def case_names(self) -> list[str]:
        """Names of all cases of all experiments, sorted."""
        with self._reading() as connection:
            return sorted(connection.execute(select(tables.case.c.name).distinct()).scalars())

    # Looks and floors

    def save_look(
        self,
        experiment_id: str,
        blocks: int,
        decided: dict[str, str],
        spent_alpha: float,
        payload: dict[str, Any] | None = None,
        *,
        final: bool = False,
    ) -> None:
        """Store a sequential look for good; ``final``: nothing is left to decide, the experiment is complete.

        Raises:
            HostError: a different look is stored after so many blocks.
        """
        look = Look(blocks=blocks, decided=decided, spent_alpha=spent_alpha, payload=payload or {}, final=final)
        with self._writing() as connection:
            writes.insert_look(connection, writes.find(connection, experiment_id), look)

    def looks(self, experiment_id: str) -> list[Look]:
        """All looks, by blocks."""
        with self._reading_of(experiment_id) as (connection, no):
            return reads.looks(connection, no)

    def save_floor(self, floor: Floor) -> None:
        """Store a calibration; older ones of the same host, machine kind and case stay, the newest counts."""
        with self._writing() as connection:
            connection.execute(
                insert(tables.floor).values(
                    scope_key=codec.key_of(floor.host, floor.machine_kind),
                    created_at=codec.column_text(floor.created_at),
                    floor_percent=floor.floor_percent,
                    document=codec.seal(floor),
                )
            )

    def floors(self, host: str, machine_kind: str) -> dict[str, Floor]:
        """Case -> its newest floor on this host and kind of machine."""
        f = tables.floor.c
        query = select(f.document).where(f.scope_key == codec.key_of(host, machine_kind)).order_by(f.created_at, f.no)
        with self._reading() as connection, codec.named_floors():
            found = [codec.unseal(document, Floor) for document in connection.execute(query).scalars()]
        return {floor.case: floor for floor in found}

    # Transfer

    def export(self, experiment_id: str, path: Path) -> str:
        """Write an experiment as one file; returns its id. See ``transfer``.

        Raises:
            UserError: the file exists or cannot be made.
            HostError: it cannot be written whole; nothing is left of it.
        """
        with self._reading() as connection:
            found = writes.find(connection, experiment_id)
            with codec.named(found.id):
                return transfer.write(connection, found, path)

    def import_(self, path: Path) -> transfer.Imported:
        """Take in an exported file, whole or not at all; boots that are stored already stay as they are.

        Raises:
            UserError: not such a file, damaged, too large, of a newer kdelta, or another experiment with the same id.
        """
        with self._writing() as connection:
            return transfer.read(connection, path)
