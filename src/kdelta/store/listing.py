# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of experiments: what each is, how far it came, and its tags."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, exists, func, select

from kdelta.errors import HostError
from kdelta.store import codec, planned, reads, tables, writes
from kdelta.store.rows import ExperimentRow, Status


def experiments(connection: Connection, kind: str | None, limit: int | None, tag: str | None) -> list[ExperimentRow]:
    """See ``Store.experiments``."""
    e, b, k, t = (table.c for table in (tables.experiment, tables.boot, tables.look, tables.tag))
    done = select(func.count()).where(b.experiment_no == e.no).scalar_subquery()
    final = exists().where(k.experiment_no == e.no, k.final)
    query = select(
        e.no, e.id, e.created_at, e.kind, e.mode, e.command, e.note, e.boots_planned,
        done.label("done"), final.label("final"),
    ).order_by(e.created_at.desc(), e.no.desc()).limit(limit)  # fmt: skip
    if kind is not None:
        query = query.where(e.kind == codec.column_text(kind))
    if tag is not None:
        query = query.where(exists().where(t.experiment_no == e.no, t.name == codec.column_text(tag)))
    if not (rows := connection.execute(query).all()):
        return []
    labels = _grouped(connection, tables.kernel.c.experiment_no, tables.kernel.c.label, tables.kernel.c.idx)
    tags = _grouped(connection, t.experiment_no, t.name, t.name)
    return [
        ExperimentRow(
            id=row.id,
            created_at=row.created_at,
            kind=row.kind,
            mode=row.mode,
            kernels=labels.get(row.no, ()),
            boots_done=row.done,
            boots_planned=row.boots_planned,
            status=_status(connection, row),
            command=row.command,
            tags=tags.get(row.no, ()),
            note=row.note,
        )
        for row in rows
    ]


def _status(connection: Connection, row: Any) -> Status:
    """Whether boots that the plan and its looks ask for are missing; an unreadable experiment is damaged.

    A bisection plans one commit at a time: it says itself whether it came to its end.
    """
    if row.kind == "bisect":
        return _of_bisection(connection, row)
    if row.final or row.done >= row.boots_planned:
        return "complete"
    try:
        with codec.named(row.id):
            looks = reads.looks(connection, row.no)
        if not looks:
            return "partial"
        experiment = writes.read_experiment(connection, writes.find(connection, row.id))
    except HostError:  # told with its remedy where it is opened
        return "damaged"
    return "complete" if row.done + planned.boots_spared(experiment, looks) >= row.boots_planned else "partial"


def _of_bisection(connection: Connection, row: Any) -> Status:
    try:
        experiment = writes.read_experiment(connection, writes.find(connection, row.id))
    except HostError:
        return "damaged"
    return "partial" if experiment.annotations.search.done is False else "complete"


def _grouped(connection: Connection, key: Any, value: Any, order: Any) -> dict[int, tuple[str, ...]]:
    """{key: values in order} of one small table."""
    found: dict[int, tuple[str, ...]] = {}
    for no, text in connection.execute(select(key, value).order_by(key, order)):
        found[no] = (*found.get(no, ()), text)
    return found
