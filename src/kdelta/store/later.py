# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that is made with the first thing that is kept in it.

A command that fails before it measures, for a name that was mistyped or a program that is missing, leaves none behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock

from sqlalchemy import Connection

from kdelta.errors import HostError
from kdelta.store import connect, transfer
from kdelta.store.store import Store

_EMPTY = "sqlite://"  # in memory; each thread has one of its own


class LaterStore(Store):
    """The store at ``url``, whose file ``path`` is not there; until something is kept it is empty for who reads."""

    def __init__(self, url: str, path: Path, made: Callable[[], None]) -> None:
        """``made`` is called once the file is there.

        Raises:
            HostError: no file can be made there.
        """
        _refuse_unwritable(path)
        super().__init__(_EMPTY)
        self._url, self._made, self._lock = url, made, Lock()
        self._there = False

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if not self._there:
            connect.prepare(self._engine)  # of this thread
        with super()._reading() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._lock:
            if not self._there:
                self._begin(self._url)
                self._there = True
                self._made()
        with super()._writing() as connection:
            yield connection

    def import_(self, path: Path) -> transfer.Imported:
        transfer.check(path)  # what is no experiment is not kept
        return super().import_(path)


def _refuse_unwritable(path: Path) -> None:
    """Before anything is fetched or built, which may take long. Nothing is left of what is tried."""
    folder = next(one for one in path.parents if os.path.lexists(one))
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise HostError(
            f"store {path}: cannot be made in {folder}: {error.strerror}; set KDELTA_STORE to another"
        ) from None
