# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of the map case x function: each is a boot of its own, kept under a digest of all that its counts depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import exact, profiles, reach
from kdelta.attribution.profiles import Interval
from kdelta.attribution.reach import Row
from kdelta.experiment.boot_once import identity
from kdelta.experiment.measure import Measuring
from kdelta.experiment.work import Site, Work
from kdelta.guest.metrics import repetitions
from kdelta.guest.protocol import interval_of
from kdelta.kernel import cache, maps
from kdelta.kernel.symbols import SymbolTable
from kdelta.machine.boot import RawBoot
from kdelta.model import Case, Kernel, PlannedBoot, RunResult

FORMAT = 2  # of the cached rows: raised when their content changes
_PLAN = PlannedBoot(block=0, slot=0, kernel=0)
_TWICE, _ONCE = 0, 1  # jobs of a case; the second one is that of a program's run with half of the operations
_PASSING = ("hung", "lost")  # a matter of the host's load: tried again by the next map


class _Kept(Struct, frozen=True, kw_only=True):
    """A row in the cache."""

    format: int
    names: str  # the source of the function names
    row: Row


class Counted(Struct, frozen=True, kw_only=True):
    """One case made ready: ``work`` is its boot, ``read`` what becomes of it, ``path`` where its row is kept.

    ``digest`` is what the case is (``spec/sameness.py``).
    """

    case: Case
    work: Work
    read: Callable[[RawBoot], RunResult]
    parts: int
    path: Path
    digest: str = ""


def ready(kinds: Sequence[Measuring], digests: Sequence[str], site: Site, table: SymbolTable) -> list[Counted]:
    """The boots of ``kinds``, of one case each, with the name of its row: a digest of all that its counts depend on.

    ``digests`` are those of the cases.
    """
    base, found = "", []
    for kind, case_digest in zip(kinds, digests, strict=True):
        work = kind.work(_PLAN)
        base, parts = base or base_of(site, work), exact.parts_of(kind.metrics[0])
        found.append(
            Counted(
                case=kind.experiment.cases[0],
                work=work,
                read=partial(_read, kind),
                parts=parts,
                path=path_of(work.kernel, base, work, parts, table),
                digest=case_digest,
            )
        )
    return found


def base_of(site: Site, work: Work) -> str:
    """What the boots of all rows of a kernel have in common: not a case's own files, which its job names."""
    return identity(site, replace(work, jobs=replace(work.jobs, lines=()), own={}, trees=()))


def path_of(kernel: Kernel, base: str, work: Work, parts: int, table: SymbolTable) -> Path:
    """Where the row of a case is kept; ``base`` is that of ``kernel``, ``parts`` what an operation is divided into."""
    digest = hashlib.sha256(f"{base}\0{parts}\0{work.jobs.text()}".encode()).hexdigest()
    return maps.folder_of(kernel.image_sha256) / f"{digest[:40]}.{table.source}.msgpack"


def _read(kind: Measuring, raw: RawBoot) -> RunResult:
    return kind.runs(_PLAN, raw)[0]


def recall(path: Path, table: SymbolTable) -> Row | None:
    """The row kept at ``path``, None where there is none of these names."""
    found = _kept(path)
    return found.row if found is not None and found.names == table.source else None


def kept(path: Path) -> Row | None:
    """The row kept at ``path``, whatever its names are from; None where there is none."""
    found = _kept(path)
    return None if found is None else found.row


def _kept(path: Path) -> _Kept | None:
    try:
        found = msgspec.msgpack.decode(cache.read_checked(path) or b"", type=_Kept)
    except msgspec.MsgspecError:
        return None  # never made, or of another version: made anew
    return found if found.format == FORMAT else None


def count(
    boot: Callable[[Sequence[Work]], Sequence[RawBoot]], several: Sequence[Counted], table: SymbolTable
) -> list[Row]:
    """Boot for some cases, and keep what each executed."""
    return [_row(one, raw, table) for one, raw in zip(several, boot([one.work for one in several]), strict=True)]


def _row(one: Counted, raw: RawBoot, table: SymbolTable) -> Row:
    run = one.read(raw)
    row = Row(case=one.case.name, state=run.state, why=run.why, elapsed_s=raw.elapsed_s, digest=one.digest)
    if run.state == "ok":
        executed, total = reach.ran(intervals(raw), table)
        if repetitions(raw.records, _ONCE):
            start_up, of_start_up = reach.ran(intervals(raw, _ONCE), table)
            executed, total = reach.without(executed, start_up), total - of_start_up
        ops = sum(repetition.ops for repetition in repetitions(raw.records, _TWICE)) * one.parts
        row = replace(row, functions=executed, total=total, ops=ops)
    if run.state not in _PASSING:
        keep(one.path, row, table)
    return row


def intervals(raw: RawBoot, job: int = _TWICE) -> list[Interval]:
    """What the repetitions of a case counted."""
    counted = {interval_of(guest, one.id): one for guest, file in enumerate(raw.counts) for one in profiles.read(file)}
    return [counted[marked.id] for marked in repetitions(raw.records, job)]


def keep(path: Path, row: Row, table: SymbolTable) -> None:
    """Keep a row for ``recall``.

    Raises:
        HostError: the cache cannot be written.
    """
    cache.write_checked(path, msgspec.msgpack.encode(_Kept(format=FORMAT, names=table.source, row=row)))
