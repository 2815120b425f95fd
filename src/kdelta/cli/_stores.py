# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of a command. A store at a place that the user named is not made by who only reads, and is told when made.

A name that was mistyped would else be an empty store, silently, of which every answer is that nothing was measured. The
default one, which nobody names, is made as it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kdelta import paths
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from kdelta.store.store import Store


def missing() -> Path | None:
    """The file that KDELTA_STORE names, where it is not there; None for any other store."""
    from kdelta.store import connect

    named = paths.named_store()
    return connect.absent(named) if named else None


def reading() -> Store:
    """The store for what is in it already.

    Raises:
        UserError: KDELTA_STORE names a file that is not there; and as ``Store``.
    """
    from kdelta.store.store import Store

    if (path := missing()) is not None:
        raise UserError(f"{_not_there(path)}; correct the name, or measure into it first")
    return Store()


def listing() -> Store:
    """``reading`` for a list, where a store that is not there is a note: a script may ask before it measures."""
    from kdelta.store.store import Store

    if (path := missing()) is None:
        return Store()
    say(f"note: {_not_there(path)}; it is made by the first measurement", err=True)
    return Store("sqlite://")  # in memory


def writing(note: Callable[[str], None]) -> Store:
    """The store for what is to be kept; ``note`` is told where KDELTA_STORE names a new one, once it is made."""
    from kdelta.store.later import LaterStore
    from kdelta.store.store import Store

    if (path := missing()) is None:
        return _writable(Store())
    return LaterStore(paths.named_store(), path, lambda: note(f"new store: {path}, as KDELTA_STORE names it"))


def going_on() -> Store:
    """``reading`` for what goes on with an experiment that is in it.

    Raises:
        HostError: nothing more can be kept in it; and as ``reading``.
    """
    return _writable(reading())


def _writable(store: Store) -> Store:
    from kdelta.store import connect

    try:
        connect.require_writable(store.address)
    except BaseException:
        store.close()
        raise
    return store


def _not_there(path: Path) -> str:
    named = paths.named_store().partition(":///")[2]
    hint = "" if named.startswith("/") else " (three slashes begin a path from here, four an absolute one)"
    return f"store {path}: KDELTA_STORE names it, but it is not there{hint}"
