# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows that are written: experiments, boots, looks. Each takes the connection of the caller's transaction."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, not_, or_, select, tuple_, update

from kdelta.errors import HostError, UserError
from kdelta.model import BESIDE_TAG, BootResult, Experiment, Mode, Profile
from kdelta.store import codec, planned, tables
from kdelta.store.rows import Look

_SHOWN = 8


class Found(NamedTuple):
    """An experiment's row without its document."""

    no: int
    id: str
    mode: Mode
    kernel_count: int
    case_count: int
    imported: bool


_DRAWN = re.compile(r"[0-9a-f]{4}")  # what tells experiments of one second apart: the end of an id
_NEWEST = re.compile(r"last(?:~(\d{1,6}))?", re.ASCII)
_LAST = frozenset({"last", "latest", "newest", "head", "-1"})


def find(connection: Connection, name: str) -> Found:
    """The experiment with this id, the only one whose id begins so, or the newest that is nobody's part.

    That is ``last``; the one before it is ``last~1``.

    Raises:
        UserError: none, or several.
    """
    row = _match(connection, name)
    cases = connection.execute(
        select(func.count()).select_from(tables.case).where(tables.case.c.experiment_no == row.no)
    ).scalar_one()
    return Found(row.no, row.id, row.mode, row.kernel_count, cases, row.imported)


def _match(connection: Connection, name: str) -> Any:
    e = tables.experiment.c
    wanted = select(e.no, e.id, e.mode, e.kernel_count, e.imported)
    if newest := _NEWEST.fullmatch(name):
        t = tables.tag.c
        part = exists().where(t.experiment_no == e.no, func.substr(t.name, 1, len(BESIDE_TAG)) == BESIDE_TAG)
        whole = wanted.where(not_(part)).order_by(e.created_at.desc(), e.no.desc())
        rows = connection.execute(whole.offset(int(newest[1] or 0)).limit(1)).all()
        if not rows and newest[1] and connection.execute(whole.limit(1)).first():
            raise UserError(f"experiment {name!r}: so many are not in the store; kdelta history lists what is")
        if not rows:
            raise UserError("no experiment is stored yet: start with kdelta compare or kdelta run")
        return rows[0]
    text = codec.column_text(name)
    exact = connection.execute(wanted.where(e.id == text)).first()
    if exact is not None:
        return exact
    begins = func.substr(e.id, 1, len(text)) == text
    rows = connection.execute(wanted.where(begins).order_by(e.id).limit(_SHOWN)).all() if text else []
    if not rows and _DRAWN.fullmatch(text):
        rows = connection.execute(wanted.where(e.id.endswith(f"-{text}")).order_by(e.id).limit(_SHOWN)).all()
    if len(rows) != 1:
        several = f"is ambiguous: {', '.join(row.id for row in rows)}; give more characters of the id" if rows else ""
        absent = "is not in the store; " + (
            "did you mean last?" if name.lower() in _LAST else "kdelta history lists what is"
        )
        raise UserError(f"experiment {name[:80]!r} {several or absent}")
    return rows[0]


def insert_experiment(connection: Connection, experiment: Experiment) -> None:
    """Add an experiment with its kernels and cases.

    Raises:
        UserError: its id is taken or not allowed, or a text in it is not UTF-8.
    """
    e = tables.experiment
    codec.check_id(experiment.id)
    if connection.execute(select(e.c.no).where(e.c.id == experiment.id)).first():
        raise UserError(f"experiment {experiment.id} is already in the store; kdelta report {experiment.id} shows it")
    no = connection.execute(
        insert(e)
        .values(
            id=experiment.id,
            created_at=codec.column_text(experiment.created_at),
            kind=codec.column_text(experiment.kind),
            mode=experiment.mode,
            command=codec.column_text(experiment.command),
            kernel_count=len(experiment.kernels),
            boots_planned=planned.boots_planned(experiment),
            document=codec.experiment_document(experiment),
            imported=experiment.imported,
        )
        .returning(e.c.no)
    ).scalar_one()
    _insert_names(connection, no, experiment)


def read_experiment(connection: Connection, owner: Found) -> Experiment:
    """The experiment as it stands."""
    e = tables.experiment.c
    document = connection.execute(select(e.document).where(e.no == owner.no)).scalar_one()
    with codec.named(owner.id):
        return replace(codec.experiment_of(document), imported=owner.imported)


def hold(connection: Connection, owner: Found) -> None:
    """Keep other writers of this experiment out until the transaction ends; SQLite has one writer anyway."""
    e = tables.experiment.c
    connection.execute(select(e.no).where(e.no == owner.no).with_for_update())


def grow(connection: Connection, owner: Found, change: Callable[[Experiment], Experiment]) -> Experiment:
    """Store an experiment anew as ``change`` makes it: with more kernels, other annotations, or vouched for."""
    e, k = tables.experiment, tables.kernel
    hold(connection, owner)  # else what another adds between the reading and the writing is undone
    stored = read_experiment(connection, owner)
    grown = change(stored)
    connection.execute(
        update(e)
        .where(e.c.no == owner.no)
        .values(
            document=codec.experiment_document(grown),
            kernel_count=len(grown.kernels),
            boots_planned=planned.boots_planned(grown),
            imported=grown.imported,
        )
    )
    added = _kernel_rows(owner.no, grown)[len(stored.kernels) :]
    if added:
        connection.execute(insert(k), added)
    return grown


def _kernel_rows(no: int, experiment: Experiment) -> list[dict[str, Any]]:
    return [
        {
            "experiment_no": no,
            "idx": index,
            "label": codec.column_text(kernel.label),
            "release": codec.column_text(kernel.release),
            "image_sha256": codec.column_text(kernel.image_sha256),
        }
        for index, kernel in enumerate(experiment.kernels)
    ]


def _insert_names(connection: Connection, no: int, experiment: Experiment) -> None:
    kernels = _kernel_rows(no, experiment)
    cases = [
        {
            "experiment_no": no,
            "idx": index,
            "name": codec.column_text(case.name),
            "name_key": codec.key_of(case.name),
            "workload_key": codec.key_of(case.workload),
        }
        for index, case in enumerate(experiment.cases)
    ]
    if kernels:
        connection.execute(insert(tables.kernel), kernels)
    if cases:
        connection.execute(insert(tables.case), cases)


def _identity(boot: BootResult) -> str | None:
    """By what the boot can be found again: only a whole one, measured and not itself taken over."""
    whole = boot.state == "ok" and not boot.cut_short and "taken_from" not in boot.machine
    return boot.machine.get("identity") if whole else None


def insert_boot(connection: Connection, owner: Found, boot: BootResult, *, foreign: bool = False) -> None:
    """Add a finished boot with everything it gave; a ``foreign`` one (imported) is never taken over by a sweep.

    It takes the place of a lost one: that was no measurement, its QEMU had been killed.

    Raises:
        HostError: this block and slot is stored already, or the boot does not fit the experiment.
    """
    plan = boot.plan
    if wrong := codec.misfit(boot, owner.kernel_count, owner.case_count):
        raise HostError(
            f"experiment {owner.id}: block {plan.block} slot {plan.slot} cannot be stored: it holds {wrong}"
        )
    b = tables.boot
    same_place = (b.c.experiment_no == owner.no) & (b.c.block == plan.block) & (b.c.slot == plan.slot)
    stored = connection.execute(select(b.c.no, cut_short().label("again")).where(same_place)).first()
    if stored is not None and stored.again:
        _forget(connection, owner, stored.no, plan.block)
    elif stored is not None:
        raise HostError(
            f"experiment {owner.id}: block {plan.block} slot {plan.slot} is stored already, as where another "
            "kdelta measures it too; nothing was changed"
        )
    no = connection.execute(
        insert(b)
        .values(
            experiment_no=owner.no,
            block=plan.block,
            slot=plan.slot,
            kernel=plan.kernel,
            mitigations=plan.mitigations,
            state=boot.state,
            document=codec.boot_document(boot),
            identity=None if foreign else _identity(boot),
        )
        .returning(b.c.no)
    ).scalar_one()
    _insert_runs(connection, no, owner, boot)
    logs = {"boot_no": no, "console": zlib.compress(boot.console), "stream": zlib.compress(boot.stream)}
    connection.execute(insert(tables.boot_log), logs)


def kept(
    connection: Connection, owner: Found, among: Collection[tuple[int, int]] | None = None
) -> set[tuple[int, int]]:
    """(block, slot) of every stored boot that is not made again; of those ``among`` which are asked about."""
    b = tables.boot.c
    query = select(b.block, b.slot).where(b.experiment_no == owner.no, not_(cut_short()))
    if among is not None:
        query = query.where(tuple_(b.block, b.slot).in_(list(among)))
    rows = connection.execute(query)
    return {(row.block, row.slot) for row in rows}


def cut_short() -> ColumnElement[bool]:
    """Of a boot: ``BootResult.cut_short``."""
    b, d = tables.boot.c, tables.run_detail.c
    return or_(b.state == "lost", exists().where(d.boot_no == b.no, d.state == "lost"))


def forget(connection: Connection, owner: Found, places: Collection[tuple[int, int]]) -> None:
    """Remove the boots of these blocks and slots."""
    b = tables.boot.c
    for no, block, slot in connection.execute(select(b.no, b.block, b.slot).where(b.experiment_no == owner.no)).all():
        if (block, slot) in places:
            _forget(connection, owner, no, block)


def _forget(connection: Connection, owner: Found, no: int, block: int) -> None:
    """Remove a lost boot. Looks at counts go with it: cells that missed a seed had no verdict and spent nothing."""
    connection.execute(delete(tables.boot).where(tables.boot.c.no == no))
    if owner.mode == "exact":
        look = tables.look.c
        connection.execute(delete(tables.look).where((look.experiment_no == owner.no) & (look.blocks > block)))


def _insert_runs(connection: Connection, no: int, owner: Found, boot: BootResult) -> None:
    light = [
        {
            "boot_no": no,
            "case_idx": row.case,
            "state": row.state,
            "why": codec.column_text(row.why),
            "figures": codec.seal(row.figures),
        }
        for row in codec.run_rows(boot, owner.mode, owner.case_count)
    ]
    heavy = [
        {
            "boot_no": no,
            "seq": seq,
            "case_idx": run.case,
            "state": run.state,
            "why": codec.seal(run.why),
            "series": codec.squeeze(run.series),
            "histograms": codec.squeeze(run.histograms),
            "facts": codec.seal(run.facts),
            "profile": None if run.profile is None else codec.squeeze(run.profile),
        }
        for seq, run in enumerate(boot.runs)
    ]
    if light:
        connection.execute(insert(tables.run), light)
    if heavy:
        connection.execute(insert(tables.run_detail), heavy)


def keep_stacks(connection: Connection, owner: Found, place: tuple[int, int], case: int, stacks: str) -> None:
    """See ``Store.keep_stacks``; ``place`` is block and slot."""
    b, d = tables.boot.c, tables.run_detail
    here = (b.experiment_no == owner.no) & (b.block == place[0]) & (b.slot == place[1])
    mine = (d.c.case_idx == case) & d.c.profile.is_not(None)
    query = select(d.c.boot_no, d.c.seq, d.c.profile).join_from(tables.boot, d, d.c.boot_no == b.no).where(here & mine)
    row = connection.execute(query).first()
    if row is None:
        raise HostError(f"experiment {owner.id}: block {place[0]} slot {place[1]} has no counts of this case")
    with codec.named(owner.id):
        profile = replace(codec.expand(row.profile, Profile), stacks=stacks)
    same = (d.c.boot_no == row.boot_no) & (d.c.seq == row.seq)
    connection.execute(update(d).where(same).values(profile=codec.squeeze(profile)))


def _look(document: bytes, owner: Found) -> Look:
    with codec.named(owner.id):
        return codec.unseal(document, Look)


def insert_look(connection: Connection, owner: Found, look: Look) -> None:
    """Add a sequential look. The same look again changes nothing: a resumed runner may compute it twice.

    Raises:
        HostError: another look is stored at this number of blocks: alpha that is spent stays spent.
    """
    k = tables.look
    here = (k.c.experiment_no == owner.no) & (k.c.blocks == look.blocks)
    stored = connection.execute(select(k.c.document).where(here)).scalar()
    if stored is None:
        values = {"experiment_no": owner.no, "blocks": look.blocks, "final": look.final, "document": codec.seal(look)}
        connection.execute(insert(k), values)
    elif _look(stored, owner) != codec.unpack(codec.pack(look), Look):
        raise HostError(
            f"experiment {owner.id}: another look after {look.blocks} blocks is stored and cannot change; "
            "nothing was changed: report it as it is, or start a new experiment"
        )
