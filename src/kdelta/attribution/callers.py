# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that act for their callers: locks, counters and lists, of which who called says more than who ran. Pure.

The plugin is told where they lie, and tells for whom they ran (plugin/callers.c). What is called when a lock is found
taken, its slow path, is a wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kdelta.kernel.spelling import fold

_HEAD = "kdelta-kernel 1"
# kernel/locking/*.c, lib/lockref.c, lib/list_debug.c, lib/rbtree.c, lib/percpu_counter.c of v6.1 to v7.3
_ACTING = re.compile(
    r"^(?:_raw_(?:spin|read|write)_\w+|(?:native_|__pv_)?queued_(?:spin|read|write)_\w+|_*mutex_\w+|ww_mutex_\w+"
    r"|(?:down|up)(?:_(?:read|write|interruptible|killable|trylock|timeout)\w*)?|__(?:down|up)(?:_\w+)?|rwsem_\w+"
    r"|downgrade_write|_*percpu_(?:down|up|counter|ref)_\w+|lockref_\w+|osq_\w+|_*rt_mutex_\w+|rtlock_\w+|_*rt_spin_\w+"
    r"|_?(?:atomic|refcount)_dec_and_\w+|(?:__)?list_(?:add|del_entry)_valid\w*|__list_(?:add|del)\w*|_*rb_\w+"
    r"|_*mem(?:cpy|set|move)\w*|_*(?:clear|copy)_page\w*|rep_(?:movs|stos)_\w+|errseq_\w+|try_cmpxchg\w*)$"
)
_WAITS = re.compile(
    r"^(?:(?:native_|__pv_)?queued_(?:spin|read|write)_lock_slowpath|__mutex_lock(?:_\w+)?|rwsem_down_\w+_slowpath"
    r"|__down(?:_common|_interruptible|_killable|_timeout)?|__percpu_down_\w+|rtlock_slowlock\w*|__?rt_mutex_slowlock\w*"
    r"|rt_mutex_slowlock\w*)$"
)
_RELEASES = re.compile(r"unlock|^_*up(?:$|_)|_up_")
_NO_LOCKS = re.compile(r"^(?:(?:__)?list_|_*rb_|_*mem(?:cpy|set|move)|_*(?:clear|copy)_page|rep_|errseq_|try_cmpxchg)")
LOCKREF = "lockref_"


class Table(Protocol):
    """What is needed of a symbol table (kernel.symbols.SymbolTable)."""

    @property
    def addresses(self) -> NDArray[np.uint64]:
        """Start of each function, shape (n,), rising."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """Name of each function."""

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Half-open address ranges of code."""


def acts_for_caller(function: str) -> bool:
    """Whether a function, named as in the source, acts for its callers."""
    return _ACTING.match(function) is not None


def waits(function: str) -> bool:
    """Whether a function is entered only where a lock is found taken."""
    return _WAITS.match(function) is not None


def takes(function: str) -> bool:
    """Whether a function that acts for its callers may take a lock: it gives none back, and is of no list or copy."""
    return _RELEASES.search(function) is None and _NO_LOCKS.match(function) is None


def ranges(table: Table) -> Iterable[tuple[int, int]]:
    """Half-open address ranges of the functions that act for their callers, rising."""
    starts = [int(address) for address in table.addresses]
    for index, name in enumerate(table.all_names):
        if not acts_for_caller(fold(name)):
            continue
        low = starts[index]
        limit = next((high for start, high in table.ranges if start <= low < high), low)
        high = min(starts[index + 1] if index + 1 < len(starts) else limit, limit)
        if low < high:
            yield low, high


def facts(table: Table, slabs: Sequence[int]) -> bytes:
    """What the plugin is told of a kernel (plugin/guest_facts.c); ``slabs``: ``SlabLayout.words()``, or nothing."""
    lines = [_HEAD]
    if slabs:
        lines.append("slab " + " ".join(f"{word:x}" for word in slabs))
    lines += (f"caller {low:x} {high:x}" for low, high in ranges(table))
    return ("\n".join(lines) + "\n").encode("ascii")
