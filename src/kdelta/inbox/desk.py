# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a watched source is to be done next, and how much of a day's budget is left. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kdelta.inbox.series import Item
from kdelta.model.diary import Watched

MOST_TRIES = 3  # of a review that this host could not make
_SETTLED = ("done", "failed")


def known(rows: Iterable[Watched]) -> dict[str, Watched]:
    """The rows of a source by their item."""
    return {row.item: row for row in rows}


def due(items: Iterable[Item], rows: Mapping[str, Watched]) -> tuple[Item, ...]:
    """The items to review, oldest first: whole ones that are not settled. One that was interrupted goes first."""
    waiting = [one for one in items if one.state == "ready" and not _settled(rows.get(one.key))]
    return tuple(sorted(waiting, key=lambda one: one.key not in rows or rows[one.key].state != "running"))


def _settled(row: Watched | None) -> bool:
    return row is not None and row.state in _SETTLED


def told(items: Iterable[Item], source: str, rows: Mapping[str, Watched]) -> tuple[Watched, ...]:
    """Rows to keep for items that are not reviewed, where they say anything new: waiting, or superseded."""
    found = []
    for item in items:
        row = rows.get(item.key)
        if item.state == "ready" or _settled(row):
            continue
        now = Watched(source=source, item=item.key, title=item.title, state=item.state, why=item.why)
        if row is None or (row.state, row.why) != (now.state, now.why):
            found.append(now)
    return tuple(found)


def spent_s(rows: Iterable[Watched], day: str) -> float:
    """What reviews that began on ``day`` (YYYY-MM-DD) took, in seconds, whatever source they are of."""
    return sum(row.elapsed_s for row in rows if row.began_at.startswith(day))
