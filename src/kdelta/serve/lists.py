# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists cut into pages, and experiments filtered by what a reader typed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from kdelta.store.rows import ExperimentRow

T = TypeVar("T")


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """One page of a list; ``first`` counts from 1 and is 0 in an empty list."""

    rows: tuple[T, ...]
    number: int
    pages: int
    total: int
    first: int


def page(rows: Sequence[T], number: int, size: int) -> Page[T]:
    """Page ``number`` of ``rows``, the nearest one where there is no such page."""
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, number), pages)
    start = (number - 1) * size
    return Page(
        rows=tuple(rows[start : start + size]),
        number=number,
        pages=pages,
        total=len(rows),
        first=start + 1 if rows else 0,
    )


def matching(
    rows: Sequence[ExperimentRow], kind: str, tag: str, text: str, kernel: str | None = ""
) -> list[ExperimentRow]:
    """Experiments of this kind, with this tag and kernel, that mention every word of ``text``; "" asks for nothing."""
    words = text.casefold().split()
    return [
        row
        for row in rows
        if (not kind or row.kind == kind)
        and (not tag or tag in row.tags)
        and (not kernel or kernel in row.kernels)
        and all(w in _words(row) for w in words)
    ]


def _words(row: ExperimentRow) -> str:
    return "\n".join((row.id, row.kind, row.mode, row.command, row.note, *row.tags, *row.kernels)).casefold()


def picked(options: Sequence[str], given: str) -> str | None:
    """The option that a form sent: browsers turn a line break in a value into two characters."""
    if given in options:
        return given
    return next((option for option in options if option.replace("\r\n", "\n") == given.replace("\r\n", "\n")), None)
