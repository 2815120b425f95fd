# SPDX-License-Identifier: GPL-2.0-or-later
"""Knobs of the chosen cases, and other cases, with which instructions run that a patch changed and else do not.

A path for large messages, for threads, for a directory of one's own: the map knows which functions a case executes, not
which of their instructions. So the chosen cases, then each with one knob otherwise, and cases that take another way
through these functions, run once on the patched kernel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import code, images, profiles
from kdelta.attribution.changes import Change
from kdelta.errors import KdeltaError
from kdelta.experiment import programs, reach, runner
from kdelta.experiment.boot_once import boot_each
from kdelta.experiment.known import watch
from kdelta.experiment.reach import Setup
from kdelta.experiment.reach_rows import Counted, intervals
from kdelta.kernel.spelling import fold
from kdelta.machine.boot import RawBoot
from kdelta.model import Case, Kernel, Progress
from kdelta.spec.variants import variants

Place = tuple[str, int]  # symbol, offset
Others = Callable[[Collection[str]], Sequence[Case]]  # cases that take another way through some functions
Count = Callable[[Kernel, Sequence[Case]], Mapping[str, frozenset[Place] | None]]  # None where it did not end well
_MOST = 3  # cases that are added
_LEAST = 2  # instructions that one must bring: a single one may be an interrupt's chance
_TOGETHER = 4  # cases of a boot
_FAILED = 6  # of those that did not end well, are tried on the first kernel too


class Turned(Struct, frozen=True, kw_only=True):
    """A case with a knob otherwise, and the functions of which it executes what differs and the others do not.

    () where the patched kernel does not come through it, and the first one does. ``other``: it is a case of its own.
    """

    case: Case
    functions: tuple[str, ...]
    other: bool = False


def _no_others(_: Collection[str]) -> Sequence[Case]:
    return ()


def search(
    kernels: Sequence[Kernel],
    changes: Sequence[Change],
    cases: Sequence[Case],
    asked: Setup,
    progress: Progress,
    over: Callable[[], bool],
    others: Others = _no_others,
) -> tuple[Turned, ...]:
    """What to measure beside ``cases``; () where they run all that differs between the first and the last kernel.

    () too where that cannot be told, which is noted: machine code that cannot be read, a full disk.
    """
    if not cases or over():
        return ()
    try:
        every = {case.name: variants(case, asked.workloads[case.workload]) for case in cases}
        turned = {name: programs.able(kernels, knobs, asked.workloads) for name, knobs in every.items()}
        missing = differing(kernels, changes)
        names = frozenset(missing.values())
        more = bool(others(names))
        asking = [case for case in cases if turned[case.name] or more]  # more: what is left by all of them
        if not missing or not asking:
            return ()
        return chosen(kernels, missing, asking, turned, partial(count, names, asked, progress), over, others)
    except (KdeltaError, OSError) as error:
        progress.note(f"knobs were not tried: {error}")
        return ()


def chosen(
    kernels: Sequence[Kernel],
    missing: Mapping[Place, str],
    cases: Sequence[Case],
    turned: Mapping[str, Sequence[Case]],
    count: Count,
    over: Callable[[], bool] = lambda: False,
    others: Others = _no_others,
) -> tuple[Turned, ...]:
    """Of ``turned`` and ``others``, those that run most of what ``cases`` are ``missing``. Pure but for ``count``.

    Those that the last kernel does not come through come first: where it panics in a path, nothing else matters.

    Args:
        missing: the function of each place that differs.
        count: the places that each of some cases runs on a kernel.
    """
    names = frozenset(missing.values())
    ran = {name: places for name, places in count(kernels[-1], cases).items() if places is not None}
    left = {place: name for place, name in missing.items() if not any(place in found for found in ran.values())}
    executing = [name for name, found in ran.items() if any(fold(symbol) in names for symbol, _ in found)]
    tried = {case.name: case for name in executing for case in turned[name]}
    apart = {case.name: case for case in others(frozenset(left.values()))} if left else {}
    apart = {name: case for name, case in apart.items() if name not in tried}
    tried |= apart
    if not left or not tried or over():
        return ()
    runs = count(kernels[-1], list(tried.values()))
    failed = [tried[name] for name, places in runs.items() if places is None][:_FAILED]
    before = count(kernels[0], failed) if failed else {}
    found = [Turned(case=case, functions=()) for case in failed if before[case.name] is not None][:_MOST]
    whole = {name: places for name, places in runs.items() if places}
    every = (*found, *covering(left, whole, tried, _MOST - len(found)))
    return tuple(replace(one, other=one.case.name in apart) for one in every)


def covering(
    left: Mapping[Place, str], runs: Mapping[str, frozenset[Place]], tried: Mapping[str, Case], most: int
) -> list[Turned]:
    """Few cases for most of what is left, the one that runs most of it first."""
    found: list[Turned] = []
    while runs and len(found) < most:
        best = max(runs, key=lambda name: len(runs[name] & left.keys()))  # of equals the first
        gained = runs[best] & left.keys()
        if len(gained) < _LEAST:
            break
        found.append(Turned(case=tried[best], functions=tuple(sorted({left[place] for place in gained}))))
        left = {place: name for place, name in left.items() if place not in gained}
    return found


def differing(kernels: Sequence[Kernel], changes: Sequence[Change]) -> dict[Place, str]:
    """The instructions that the last kernel has otherwise than the first, each with its function."""
    names = [one.name for one in changes if one.kind in ("code", "new") and not one.boot_only]
    before, after = (images.image_of(kernel) for kernel in (kernels[0], kernels[-1]))
    return {place: name for name in names for place in code.changed_places(before, after, name)}


def count(
    watched: Collection[str],
    asked: Setup,
    progress: Progress,
    kernel: Kernel,
    cases: Sequence[Case],
    what: str = "knobs",
) -> dict[str, frozenset[Place] | None]:
    """The places of the functions ``watched`` that each of ``cases`` runs on ``kernel``; None of one that ends badly.

    Raises:
        UserError, HostError: as ``reach.prepared``.
    """
    rows, site, table = reach.prepared(kernel, cases, asked, progress)
    places = watch(kernel, table, watched)
    workers = os.cpu_count() or 1
    size = max(1, min(_TOGETHER, -(-len(rows) // workers)))
    batches = [rows[at : at + size] for at in range(0, len(rows), size)]
    found: dict[str, frozenset[Place] | None] = {}
    with runner.workers(workers) as pool:
        booted = [pool.submit(boot_each, site, [one.work for one in batch]) for batch in batches]
        for batch, future in zip(batches, booted, strict=True):
            progress.step(f"trying {what} on {kernel.label}: {batch[0].case.name}", len(found), len(rows))
            found |= {one.case.name: _ran(one, raw, places) for one, raw in zip(batch, future.result(), strict=True)}
    return found


def _ran(one: Counted, raw: RawBoot, watch: Sequence[tuple[str, int, int]]) -> frozenset[Place] | None:
    if one.read(raw).state != "ok":
        return None
    places = profiles.places(intervals(raw), watch)
    return frozenset((symbol, offset) for symbol, offsets in places.items() for offset in offsets)
