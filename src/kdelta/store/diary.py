# SPDX-License-Identifier: GPL-2.0-or-later
"""What the store keeps beside experiments: items of watched sources, and announced steps with their triage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from msgspec import Struct, structs
from sqlalchemy import Connection, Table, insert, select, update

from kdelta.errors import HostError, UserError
from kdelta.model.diary import Step, Watched
from kdelta.store import codec, tables

S = TypeVar("S", bound=Struct)


def _fitting(value: S) -> S:
    """``value`` with texts that any database takes."""
    texts = {name: getattr(value, name) for name in value.__struct_fields__}
    return structs.replace(value, **{n: codec.column_text(t) for n, t in texts.items() if isinstance(t, str)})


def _read(document: bytes, kind: type[S]) -> S:
    try:
        return codec.unseal(document, kind)
    except codec.Damaged as error:
        what = "a watched item" if kind is Watched else "an announced step"
        raise HostError(
            f"{what} is damaged in the store ({error.why}): restore it from a backup, or use another (KDELTA_STORE)"
        ) from None


class Diary(ABC):
    """A part of ``Store``: its methods raise as all of its do."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Connection]: ...

    def watch(self, item: Watched) -> None:
        """Keep an item of a watched source; one of the same source and key is replaced."""
        item = _fitting(item)
        self._put(tables.watched, codec.seal(item), **_watched_key(item.source, item.item))

    def watched(self, source: str | None = None) -> list[Watched]:
        """All items in the order in which they came; only those of one source."""
        t = tables.watched
        query = select(t.c.document).order_by(t.c.no)
        if source is not None:
            query = query.where(t.c.source_key == codec.key_of(codec.column_text(source)))
        with self._reading() as connection:
            return [_read(document, Watched) for document in connection.execute(query).scalars()]

    def announce(self, found: Step) -> bool:
        """Keep a step that was found; False where it is known already, and stays as it is."""
        found = _fitting(found)
        key = {"step_key": found.key}
        with self._writing() as connection:
            known = connection.execute(select(tables.step.c.no).where(tables.step.c.step_key == found.key)).first()
            if known is None:
                connection.execute(insert(tables.step).values(**key, document=codec.seal(found)))
        return known is None

    def narrow(self, key: str, found: Step) -> None:
        """Make the known step ``key`` the step ``found``, which a version between its two has shown it to be.

        What was said of it stays.
        """
        found = _fitting(found)
        t = tables.step
        with self._writing() as connection:
            document = connection.execute(select(t.c.document).where(t.c.step_key == key)).scalar_one()
            known = _read(document, Step)
            said = {name: getattr(known, name) for name in ("state", "note", "judged_at", "announced_at")}
            made = codec.seal(structs.replace(found, **said))
            connection.execute(update(t).where(t.c.step_key == key).values(step_key=found.key, document=made))

    def explain(self, found: Step) -> bool:
        """Keep how a known step is explained; False where that is known already, or there is nothing to say."""
        found = _fitting(found)
        t = tables.step
        with self._writing() as connection:
            document = connection.execute(select(t.c.document).where(t.c.step_key == found.key)).scalar_one_or_none()
            known = None if document is None else _read(document, Step)
            if known is None or not found.explained or known.explained == found.explained:
                return False
            made = structs.replace(known, explained=found.explained)
            connection.execute(update(t).where(t.c.step_key == found.key).values(document=codec.seal(made)))
        return True

    def steps(self) -> list[Step]:
        """All steps in the order in which they were announced."""
        with self._reading() as connection:
            query = select(tables.step.c.document).order_by(tables.step.c.no)
            return [_read(document, Step) for document in connection.execute(query).scalars()]

    def judge(self, name: str, change: Callable[[Step], Step]) -> Step:
        """Change a step; ``name`` is the beginning of its key. Returns it as it is now.

        Raises:
            UserError: no step, or several, begin so.
        """
        t = tables.step
        with self._writing() as connection:
            rows = connection.execute(select(t.c.step_key, t.c.document)).all()
            found = [row for row in rows if name and row.step_key.startswith(name)]
            if len(found) != 1:
                raise UserError(f"step {name!r}: {len(found)} steps begin so; kdelta triage lists them")
            made = _fitting(change(_read(found[0].document, Step)))
            connection.execute(update(t).where(t.c.step_key == found[0].step_key).values(document=codec.seal(made)))
        return made

    def _put(self, table: Table, document: bytes, **key: Any) -> None:
        here = [table.c[name] == value for name, value in key.items()]
        with self._writing() as connection:
            if connection.execute(update(table).where(*here).values(document=document)).rowcount == 0:
                connection.execute(insert(table).values(**key, document=document))


def _watched_key(source: str, item: str) -> dict[str, str]:
    return {"source_key": codec.key_of(source), "item_key": codec.key_of(item)}


def step_key(*names: str) -> str:
    """What tells one step from all others, 32 hex digits: its case, metric and versions."""
    return codec.key_of(*map(codec.column_text, names))
