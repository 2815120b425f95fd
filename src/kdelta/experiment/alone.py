# SPDX-License-Identifier: GPL-2.0-or-later
"""One kdelta at a time measures an experiment: two would make the same boots, of which the store takes one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from kdelta import paths
from kdelta.errors import HostError
from kdelta.store.codec import key_of
from kdelta.store.store import Store


@contextmanager
def measuring(store: Store, experiment: str) -> Iterator[None]:
    """This process measures ``experiment`` meanwhile; the lock ends with it, however it ends.

    It holds on one machine. On several that share a database, the store refuses a boot that is there already.

    Raises:
        HostError: another one does, or the cache cannot be written.
    """
    path = paths.cache_dir() / "measuring" / f"{key_of(store.address, experiment)}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            who = lock.read(16).strip() or "?"
            raise HostError(
                f"another kdelta (process {who}) measures experiment {experiment} just now: wait for its end, "
                f"kdelta report {experiment} shows what there is"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
