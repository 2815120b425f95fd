# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows that are read for reports: figures, samples, histograms, profiles, history."""

from __future__ import annotations

import hashlib
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Select, and_, exists, or_, select

from kdelta.errors import UserError
from kdelta.model import BootResult, CallCount, MovedLine, Profile, RunResult, Series
from kdelta.store import codec, tables
from kdelta.store.codec import Figure
from kdelta.store.rows import BootRow, FactRow, HistogramRow, HistoryRow, Look, Number, ProfileRow, SampleRow

T = TypeVar("T")

_figures = msgspec.msgpack.Decoder(tuple[Figure, ...])
_RUN_ORDER = (tables.boot.c.block, tables.boot.c.slot)
_DOUBTFUL = ("hung", "failed")  # it may have been the host


def numbers(connection: Connection, no: int, case: int | None, metric: str | None) -> list[Number]:
    """See ``Store.numbers``. One decode per run: 10,000 boots of five cases are 50,000 rows, not half a million."""
    b, r = tables.boot.c, tables.run.c
    query = (
        select(b.block, b.slot, b.kernel, b.mitigations, b.state, r.case_idx, r.state, r.why, r.figures)
        .join_from(tables.boot, tables.run, r.boot_no == b.no)
        .where(b.experiment_no == no)
        .order_by(*_RUN_ORDER, r.case_idx)
    )
    if case is not None:
        query = query.where(r.case_idx == case)
    found: list[Number] = []
    unsealed = codec.unsealed
    add, decode, known = found.append, _figures.decode, {}.setdefault  # type: ignore[var-annotated]
    for block, slot, kernel, mitigations, boot_state, index, state, why, packed in connection.execute(query):
        if state != "ok":
            add(Number(block, slot, kernel, mitigations, boot_state, index, state, why, "", "", "lower", None, 0, None))
            continue
        try:
            figures = decode(unsealed(packed))
        except (codec.Damaged, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _damaged(error).at(block, slot) from None
        for f in figures:
            if metric is None or f.metric == metric:
                name, unit = known(f.metric, f.metric), known(f.unit, f.unit)  # one object per name, not per row
                add(
                    Number(
                        block, slot, kernel, mitigations, boot_state, index, state, why,
                        name, unit, f.better, f.value, f.samples, f.spread_percent,
                    )
                )  # fmt: skip
    return found


def _damaged(error: Exception) -> codec.Damaged:
    return error if isinstance(error, codec.Damaged) else codec.Damaged(str(error)[:200])


def _opened(block: int, slot: int, read: Callable[[bytes, type[T]], T], data: bytes, kind: type[T]) -> T:
    """One blob of the boot at this place.

    Raises:
        codec.Damaged: with the place.
    """
    try:
        return read(data, kind)
    except codec.Damaged as error:
        raise error.at(block, slot) from None


def _details(no: int, case: int | None, *columns: ColumnElement[Any]) -> Select[Any]:
    """(block, slot, kernel, mitigations, *columns) of every run that left something, in order."""
    b, d = tables.boot.c, tables.run_detail.c
    query = (
        select(b.block, b.slot, b.kernel, b.mitigations, *columns)
        .join_from(tables.boot, tables.run_detail, d.boot_no == b.no)
        .where(b.experiment_no == no)
        .order_by(*_RUN_ORDER, d.seq)
    )
    return query if case is None else query.where(d.case_idx == case)


def samples(connection: Connection, no: int, case: int, metric: str) -> list[SampleRow]:
    """See ``Store.samples``."""
    rows = connection.execute(_details(no, case, tables.run_detail.c.series))
    return [
        SampleRow(block, slot, kernel, mitigations, s.unit, s.better, s.values, s.warm or (False,) * len(s.values))
        for block, slot, kernel, mitigations, packed in rows
        for s in _opened(block, slot, codec.expand, packed, tuple[Series, ...])
        if s.metric == metric
    ]


def histograms(connection: Connection, no: int, case: int) -> list[HistogramRow]:
    """See ``Store.histograms``."""
    rows = connection.execute(_details(no, case, tables.run_detail.c.histograms))
    unpacked = (
        HistogramRow(block, slot, kernel, mitigations, _opened(block, slot, codec.expand, packed, dict[str, bytes]))
        for block, slot, kernel, mitigations, packed in rows
    )
    return [row for row in unpacked if row.histograms]


class _Costs(msgspec.Struct):
    """What of a ``Profile`` says which function costs what, and why: two thirds of the time to read all of it."""

    ops: int
    functions: dict[str, tuple[int, ...]]
    total: tuple[int, ...]
    calls: str = ""
    system_calls: dict[str, CallCount] = {}
    moved: tuple[MovedLine, ...] = ()

    @staticmethod
    def opened(data: bytes, _: object) -> Profile:
        """The profile with these alone."""
        found = codec.expand(data, _Costs)
        return Profile(**{name: getattr(found, name) for name in _Costs.__struct_fields__})


def profiles(
    connection: Connection, no: int, case: int | None, *, costs_alone: bool = False
) -> dict[int, list[ProfileRow]]:
    """See ``Store.profiles`` and ``Store.all_profiles``; by case.

    Runs that did the same have one profile: of repeated counts one in three is unlike, and it is unpacked once.
    """
    d = tables.run_detail.c
    rows = connection.execute(_details(no, case, d.case_idx, d.profile).where(d.profile.is_not(None)))
    known: dict[bytes, Profile] = {}
    found: dict[int, list[ProfileRow]] = {}
    for block, slot, kernel, mitigations, index, packed in rows:
        content = hashlib.blake2b(packed, digest_size=16).digest()
        if content not in known:
            known[content] = _opened(block, slot, _Costs.opened if costs_alone else codec.expand, packed, Profile)
        found.setdefault(index, []).append(ProfileRow(block, slot, kernel, mitigations, known[content]))
    return found


def facts(connection: Connection, no: int, case: int | None) -> list[FactRow]:
    """See ``Store.facts``."""
    d = tables.run_detail.c
    rows = connection.execute(_details(no, case, d.case_idx, d.facts))
    return [
        FactRow(block, slot, kernel, mitigations, index, _opened(block, slot, codec.unseal, packed, dict[str, float]))
        for block, slot, kernel, mitigations, index, packed in rows
    ]


def boot_rows(connection: Connection, no: int) -> list[BootRow]:
    """See ``Store.boots``."""
    b = tables.boot.c
    query = select(b.block, b.slot, b.document).where(b.experiment_no == no).order_by(*_RUN_ORDER)
    rows = connection.execute(query)
    return [_light(_opened(block, slot, codec.unseal, document, BootResult)) for block, slot, document in rows]


def _light(boot: BootResult) -> BootRow:
    plan = boot.plan
    return BootRow(
        block=plan.block,
        slot=plan.slot,
        kernel=plan.kernel,
        mitigations=plan.mitigations,
        cases=plan.cases,
        state=boot.state,
        why=boot.why,
        started_at=boot.started_at,
        elapsed_s=boot.elapsed_s,
        first_sample_s=boot.first_sample_s,
        machine=boot.machine,
        facts=boot.facts,
    )


def identical(connection: Connection, identity: str) -> tuple[str, BootResult] | None:
    """See ``Store.identical``."""
    b, d, e = tables.boot.c, tables.run_detail.c, tables.experiment.c
    doubtful = exists().where(d.boot_no == b.no, d.state.in_(_DOUBTFUL))
    query = select(e.no, e.id, b.block, b.slot).join_from(tables.boot, tables.experiment, b.experiment_no == e.no)
    row = connection.execute(query.where(b.identity == identity).order_by(doubtful, b.no.desc()).limit(1)).first()
    if row is None:
        return None
    with codec.named(row.id):
        return row.id, next(whole_boots(connection, row.no, (row.block, row.slot)))


def whole_boots(connection: Connection, no: int, place: tuple[int, int] | None = None) -> Iterator[BootResult]:
    """Every boot as it was saved, in order, one in memory at a time; ``place``: only this block and slot."""
    b, g = tables.boot.c, tables.boot_log.c
    places = select(b.no).where(b.experiment_no == no).order_by(*_RUN_ORDER)
    if place is not None:
        places = places.where(b.block == place[0], b.slot == place[1])
    for boot_no in connection.execute(places).scalars().all():
        row = connection.execute(
            select(b.block, b.slot, b.document, g.console, g.stream)
            .join_from(tables.boot, tables.boot_log)
            .where(b.no == boot_no)
        ).one()
        try:
            whole = msgspec.structs.replace(
                codec.unseal(row.document, BootResult),
                console=codec.inflate(row.console),
                stream=codec.inflate(row.stream),
                runs=_runs(connection, boot_no),
            )
        except codec.Damaged as error:
            raise error.at(row.block, row.slot) from None
        yield whole


def _runs(connection: Connection, boot_no: int) -> tuple[RunResult, ...]:
    d = tables.run_detail
    rows = connection.execute(select(d).where(d.c.boot_no == boot_no).order_by(d.c.seq))
    return tuple(
        RunResult(
            case=row.case_idx,
            state=row.state,
            why=codec.unseal(row.why, str),
            series=codec.expand(row.series, tuple[Series, ...]),
            histograms=codec.expand(row.histograms, dict[str, bytes]),
            facts=codec.unseal(row.facts, dict[str, float]),
            profile=None if row.profile is None else codec.expand(row.profile, Profile),
        )
        for row in rows
    )


def history(connection: Connection, name: str, metric: str | None) -> list[HistoryRow]:
    """See ``Store.history``."""
    e, k, c, b, r = (t.c for t in (tables.experiment, tables.kernel, tables.case, tables.boot, tables.run))
    key = codec.key_of(name)
    query = (
        select(
            e.no, e.id, e.created_at, e.mode, k.label, k.release, k.image_sha256, b.mitigations, c.name, b.kernel,
            c.idx, r.figures,
        )
        .join_from(tables.case, tables.experiment, e.no == c.experiment_no)
        .join(tables.boot, b.experiment_no == e.no)
        .join(tables.kernel, and_(k.experiment_no == e.no, k.idx == b.kernel))
        .join(tables.run, and_(r.boot_no == b.no, r.case_idx == c.idx))
        .where(or_(c.name_key == key, c.workload_key == key), b.state == "ok", r.state == "ok")
        .order_by(e.created_at, e.no, c.idx, b.mitigations, b.kernel, *_RUN_ORDER)
    )  # fmt: skip
    tags = _tags(connection)
    rows = connection.execute(query).all()
    documents = select(e.no, e.document).where(e.no.in_({row.no for row in rows}))
    booted = {no: codec.booted(document) for no, document in connection.execute(documents)}
    cells = groupby(rows, key=lambda row: (row.no, row.idx, row.mitigations, row.kernel))
    return [
        _as_booted(line, booted.get(found[0].no, codec.Booted()), found[0].kernel)
        for _, of_cell in cells
        if (found := list(of_cell))
        for line in _history_cell(found, metric, tags)
    ]


def _as_booted(line: HistoryRow, made: codec.Booted, kernel: int) -> HistoryRow:
    started = made.kernels[kernel] if kernel < len(made.kernels) else codec.Started()
    guests = made.machine
    return replace(line, cpus=guests.smp, cold=guests.cold, arch=started.arch, cmdline=started.cmdline)


def _tags(connection: Connection) -> dict[int, tuple[str, ...]]:
    t = tables.tag.c
    found: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for no, name in connection.execute(select(t.experiment_no, t.name).order_by(t.name)):
        found[no] += (name,)
    return found


def _history_cell(rows: list[Any], metric: str | None, tags: dict[int, tuple[str, ...]]) -> Iterator[HistoryRow]:
    """One line per metric of the boots of one kernel in one experiment."""
    values: dict[str, list[float]] = defaultdict(list)
    units: dict[str, Figure] = {}
    for row in rows:
        with codec.named(row.id):
            figures = codec.unseal(row.figures, tuple[Figure, ...])
        for figure in figures:
            if figure.value is not None and metric in (None, figure.metric):
                values[figure.metric].append(figure.value)
                units.setdefault(figure.metric, figure)
    first = rows[0]
    for name, figure in units.items():
        yield HistoryRow(
            experiment=first.id,
            created_at=first.created_at,
            mode=first.mode,
            tags=tags.get(first.no, ()),
            kernel=first.label,
            release=first.release,
            image_sha256=first.image_sha256,
            mitigations=first.mitigations,
            case=first.name,
            metric=name,
            unit=figure.unit,
            better=figure.better,
            value=statistics.median(values[name]),
            values=tuple(values[name]),
        )


def log(connection: Connection, no: int, place: tuple[int, int]) -> Any:
    """The compressed (console, stream) of one boot.

    Raises:
        UserError: it is not stored.
    """
    b, g = tables.boot.c, tables.boot_log.c
    row = connection.execute(
        select(g.console, g.stream)
        .join_from(tables.boot, tables.boot_log)
        .where(b.experiment_no == no, b.block == place[0], b.slot == place[1])
    ).first()
    if row is None:
        raise UserError(f"block {place[0]} slot {place[1]} is not stored: no such boot, or it has not run yet")
    return row


def console(connection: Connection, no: int, place: tuple[int, int]) -> bytes:
    """See ``Store.console``."""
    packed = log(connection, no, place).console
    return _opened(*place, lambda data, _: codec.inflate(data), packed, bytes)


def stream(connection: Connection, no: int, place: tuple[int, int]) -> bytes:
    """See ``Store.stream``."""
    packed = log(connection, no, place).stream
    return _opened(*place, lambda data, _: codec.inflate(data), packed, bytes)


def looks(connection: Connection, no: int) -> list[Look]:
    """See ``Store.looks``."""
    k = tables.look.c
    documents = connection.execute(select(k.document).where(k.experiment_no == no).order_by(k.blocks)).scalars()
    return [codec.unseal(document, Look) for document in documents]
