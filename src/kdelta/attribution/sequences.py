# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads under sequence counters (seqcount_t, seqlock_t) that were in vain, by counter and by who reads. Pure.

The plugin tells of words whose readers found them written (plugin/sequences.c). Of those a word is a sequence counter
where its type says so. Where no type is known, as of the variables of an image, it is one whose readers both wait until
it is even and end with a comparison.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kdelta.attribution.line_names import Places
from kdelta.attribution.lines import BEGIN, CHECK, PAUSES, SEQUENCE, Moves

# As the kernel calls what is code of the readers (include/linux/seqlock.h).
_NAMES = {CHECK: "read_seqcount_retry", BEGIN | PAUSES: "read_seqcount_begin"}


def _of_counters(moves: Moves, places: Places) -> NDArray[np.void]:
    """The rows of words that are sequence counters: reads that ended, and those that waited where they began.

    A test of bit 0 without a wait is none of a reader that loses anything by it (``raw_seqcount_try_begin``, latches).
    """
    rows = moves.sequences if moves.sequences is not None else np.empty(0, SEQUENCE)
    rows = rows[np.isin(rows["kind"], list(_NAMES))]
    kinds: defaultdict[int, set[int]] = defaultdict(set)
    for address, kind in zip(rows["address"].tolist(), rows["kind"].tolist(), strict=True):
        kinds[address].add(kind)
    known = {address: places.is_counter(address) for address in kinds}
    whole = {address for address, found in kinds.items() if found == _NAMES.keys()}
    counters = [a for a, by_type in known.items() if by_type or (by_type is None and a in whole)]
    return rows[np.isin(rows["address"], np.array(counters, np.uint64))]


def in_vain(moves: Moves, places: Places) -> int:
    """How often a reader found its counter written, in all."""
    return int(_of_counters(moves, places)["failed"].sum())


def by_reader(
    moves: Moves, readers: Callable[[NDArray[np.uint64]], Sequence[str]], places: Places
) -> tuple[Counter[tuple[str, str, str]], Counter[tuple[str, str, str]]]:
    """Reads in vain, and all of these, by what the kernel calls it, who reads, and the counter.

    ``readers`` names the functions at addresses of code.
    """
    rows = _of_counters(moves, places)
    failed: Counter[tuple[str, str, str]] = Counter()
    times: Counter[tuple[str, str, str]] = Counter()
    for row, reader in zip(rows, readers(rows["pc"]), strict=True):
        key = (_NAMES[int(row["kind"])], reader, places.at(int(row["address"])).name)
        failed[key] += int(row["failed"])
        times[key] += int(row["times"])
    return failed, times
