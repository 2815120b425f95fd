# SPDX-License-Identifier: GPL-2.0-or-later
"""One kdelta at a time measures an experiment: two would make the same boots, of which the store takes one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kdelta import locks, paths
from kdelta.errors import HostError, UserError
from kdelta.store.codec import key_of
from kdelta.store.store import Store


def _lock(store: Store, experiment: str) -> Path:
    return paths.cache_dir() / "measuring" / f"{key_of(store.address, experiment)}.lock"


def refuse_measured(store: Store, experiment: str, remedy: str) -> None:
    """Raises:
    UserError: another process of this machine measures ``experiment``; ``remedy`` says what can be done.
    """
    if process := locks.holder(_lock(store, experiment)):
        raise UserError(f"another kdelta (process {process}) measures experiment {experiment} just now: {remedy}")


@contextmanager
def measuring(store: Store, experiment: str) -> Iterator[None]:
    """This process measures ``experiment`` meanwhile; the lock ends with it, however it ends.

    It holds on one machine. On several that share a database, the store refuses a boot that is there already.

    Raises:
        HostError: another one does, or the cache cannot be written.
    """
    path = _lock(store, experiment)
    try:
        lock = locks.take(path)
    except locks.Taken as other:
        raise HostError(
            f"another kdelta (process {other.process}) measures experiment {experiment} just now: wait for its end, "
            f"kdelta report {experiment} shows what there is"
        ) from None
    with lock:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
