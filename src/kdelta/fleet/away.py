# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors that mean the database is away for now, told apart from those that will stay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from kdelta.errors import HostError

T = TypeVar("T")
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.25, 5.0


class Away(HostError):
    """The database cannot be reached now; the same may work later."""


def is_away(error: BaseException) -> bool:
    """Whether an error of the queue's or the store's is one that a restart of the database mends."""
    cause = error.__cause__
    if isinstance(cause, OperationalError | InterfaceError):
        return True
    return isinstance(error, Away) or (isinstance(cause, DBAPIError) and cause.connection_invalidated)


async def until_back(
    attempt: Callable[[], Awaitable[T]], note: Callable[[str], None], give_up_s: float = float("inf")
) -> T:
    """What ``attempt`` gives, tried again while the database is away.

    Raises:
        HostError: it was away for longer than ``give_up_s``, or something else is wrong.
    """
    waited_s, wait_s = 0.0, _FIRST_WAIT_S
    while True:
        try:
            return await attempt()
        except HostError as error:
            if not is_away(error) or waited_s >= give_up_s:
                raise
            if not waited_s:
                note(f"{error}; trying again until it is back")
        await asyncio.sleep(wait_s)
        waited_s, wait_s = waited_s + wait_s, min(2 * wait_s, _LONGEST_WAIT_S)
