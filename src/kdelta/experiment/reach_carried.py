# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of a map that hold for another image too: of cases that execute nothing in which the two differ.

The next patch of a branch stands on the one before, and its base was never booted: all its cases would be counted
again, for minutes, though a patch touches few of them. In doubt a case is counted: where initial code differs, or data
that is found by pointer, whose effect nobody can follow, where a header or an option moved everything, and for kernels
that were not built here. A row knows nothing of the set-up of its case: what a function that differs leaves behind
there, for operations that execute none, is not seen. So a row says beyond what it was taken over, and reports do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from kdelta.attribution import alternatives, images
from kdelta.attribution.changes import Changes
from kdelta.attribution.reach import Row
from kdelta.errors import UserError
from kdelta.experiment import differing, reach_rows
from kdelta.experiment.reach_rows import Counted
from kdelta.experiment.work import Site
from kdelta.kernel import cache, maps
from kdelta.kernel.cache import Stored
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.symbols import SymbolTable
from kdelta.model import Kernel, Progress
from kdelta.spec.kernels import BUILT_KINDS


def take_over(kernel: Kernel, rows: Sequence[Counted], here: Site, table: SymbolTable, progress: Progress) -> int:
    """Keep for ``kernel`` those of its missing ``rows`` that maps of kernels like it have, newest first; how many.

    Raises:
        HostError: the cache cannot be read or written.
    """
    missing = [one for one in rows if reach_rows.recall(one.path, table) is None]
    if kernel.arch != "x86_64" or parse_kernel(kernel.spec.partition("#")[0]).kind not in BUILT_KINDS:
        return 0
    held = 0
    for other in _alike_mapped(kernel) if missing else ():
        there = _rows_of(other, missing, here, table)
        held += _take_over(kernel, other, [(one, there[one.path]) for one in missing if one.path in there], table)
        missing = [one for one in missing if one.path not in there]  # a row that does not hold is counted
        if not missing:
            break
    if held:
        progress.note(
            f"{held} of {len(rows)} cases execute nothing in which {kernel.label} differs from a mapped kernel"
        )
    return held


def _rows_of(other: Kernel, wanted: Sequence[Counted], here: Site, table: SymbolTable) -> dict[Path, Row]:
    """What the map of ``other`` has of the ``wanted`` rows, by where these are kept."""
    base = reach_rows.base_of(here, replace(wanted[0].work, kernel=other))
    places = ((one, reach_rows.path_of(other, base, one.work, one.parts, table)) for one in wanted)
    found = ((one, reach_rows.recall(path, table)) for one, path in places)
    return {one.path: row for one, row in found if row is not None and row.state == "ok"}


def _take_over(kernel: Kernel, other: Kernel, found: Sequence[tuple[Counted, Row]], table: SymbolTable) -> int:
    if not found:
        return 0
    try:
        changes = differing.between(other, kernel)
    except UserError:  # its code cannot be read: told by who needs it
        return 0
    patched = _patched_in(changes, other, kernel)
    held = {row.case for row in untouched(changes, [row for _, row in found], patched)}
    differ = {one.name for one in changes.changes} | (patched or frozenset())
    for one, row in found:
        if row.case in held:
            reach_rows.keep(one.path, replace(row, beyond=tuple(sorted(differ.union(row.beyond)))), table)
    return len(held)


def _patched_in(changes: Changes, before: Kernel, after: Kernel) -> frozenset[str] | None:
    """The functions into which another thing is patched at boot; None where nobody can tell which."""
    if not changes.boot_patched:
        return frozenset()
    return alternatives.differing(images.image_of(before), images.image_of(after))


def untouched(changes: Changes, rows: Iterable[Row], patched: frozenset[str] | None) -> list[Row]:
    """The rows that hold beyond ``changes`` and what is ``patched`` at boot: of cases that execute none. Pure."""
    if changes.whole or changes.sizes_only or patched is None:
        return []
    if any(one.boot_only or one.by_pointer or one.handed_on or one.taken_in for one in changes.changes):
        return []
    names = {name for one in changes.changes for name in (one.name, *one.hosts)} | patched
    return [row for row in rows if names.isdisjoint(row.functions)]


def _alike_mapped(kernel: Kernel) -> Iterator[Kernel]:
    """The mapped kernels built as ``kernel`` was, of its release and with its config; the newest map first."""
    own = cache.get(kernel.image_sha256)
    if own is None:
        return
    alike = {one.entry.sha256: one for one in cache.entries() if _alike(one, own)}
    for one in sorted(maps.maps(), key=lambda one: -one.counted_s):
        sha256 = next((sha256 for sha256 in alike if sha256.startswith(one.name)), "")
        stored = cache.get(sha256) if sha256 else None
        if stored is not None:
            yield _kernel(kernel, stored)


def _alike(one: Stored, own: Stored) -> bool:
    same = (one.entry.release, one.entry.arch, one.entry.form) == (own.entry.release, own.entry.arch, "vmlinux")
    return same and one.entry.sha256 != own.entry.sha256 and _text(one.config_text) == _text(own.config_text) != ""


def _text(path: Path | None) -> str:
    return path.read_text("utf-8", "replace") if path is not None else ""


def _kernel(like: Kernel, stored: Stored) -> Kernel:
    """The kernel of a cache entry, booted as ``like`` is."""
    image, sha256 = str(stored.image), stored.entry.sha256
    return replace(
        like,
        label=stored.entry.release,
        image_path=image,
        image_sha256=sha256,
        vmlinux_path=image,
        vmlinux_sha256=sha256,
        build_id=stored.entry.build_id,
    )
