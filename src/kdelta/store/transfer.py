# SPDX-License-Identifier: GPL-2.0-or-later
"""One experiment <-> one file, for another person to report.

    line 1: JSON {"format": "kdelta-experiment", "schema": 2, "id", "boots", "tool_version"} and a newline
    then:   Zstandard of frames, each u32 little endian length and msgpack: Header, BootResult * boots, the word "end"
    last:   SHA-256 of all bytes before it (32 bytes)

The file comes from a stranger: its checksum is verified before anything is unpacked, every length is bounded, nothing
in it names a path to write, and all of it is stored in one transaction or nothing.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import msgspec
import zstandard
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, func, insert, select, update

from kdelta.errors import HostError, UserError
from kdelta.model import BootResult, Experiment
from kdelta.store import codec, planned, reads, tables, writes
from kdelta.store.old_documents import upgraded
from kdelta.store.rows import Look

T = TypeVar("T")

FORMAT, SCHEMA = "kdelta-experiment", 2
_IMPORT_LOCK = 0x6B64_696D  # "kdim": an advisory lock of PostgreSQL
_OLD_SCHEMA = 1  # whose experiments have no plan: see old_documents
LINE_LIMIT = 4096
FRAME_LIMIT = 256 * 2**20
FILE_LIMIT = 4 * 2**30
TOTAL_LIMIT = 16 * 2**30
BOOT_LIMIT = 1_000_000
_CHECKSUM = 32
_PIECE = 2**20


class Line(Struct, frozen=True, kw_only=True):
    """The first line."""

    format: str
    schema: int
    id: str = ""
    boots: int = 0
    tool_version: str = ""


class Header(Struct, frozen=True, kw_only=True):
    """The first frame: all of an experiment but its boots."""

    experiment: Experiment
    tags: tuple[str, ...] = ()
    note: str = ""
    looks: tuple[Look, ...] = ()


class _OldHeader(Struct, frozen=True, kw_only=True):
    """The first frame of an older file."""

    experiment: dict[str, Any]
    tags: tuple[str, ...] = ()
    note: str = ""
    looks: tuple[Look, ...] = ()


class Imported(Struct, frozen=True):
    """What an import did; ``added`` 0 with ``created`` false means that all of it was there before."""

    id: str
    created: bool
    added: int
    present: int


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name only when it is whole."""
    if path.exists():
        raise UserError(f"{path} exists already: name another file")
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}; name a file in a directory that you may write to"
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.link(temporary, path)  # fails where a file came up meanwhile
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}; the partial file was removed") from None
    finally:
        os.unlink(temporary)


def _header(connection: Connection, no: int) -> Header:
    e, t = tables.experiment.c, tables.tag.c
    row = connection.execute(select(e.document, e.note).where(e.no == no)).one()
    names = connection.execute(select(t.name).where(t.experiment_no == no).order_by(t.name)).scalars()
    return Header(
        experiment=codec.experiment_of(row.document),
        tags=tuple(names),
        note=row.note,
        looks=tuple(reads.looks(connection, no)),
    )


def _frame(value: Any) -> bytes:
    data = codec.pack(value)
    if len(data) > FRAME_LIMIT:
        raise HostError(f"a boot of {len(data)} bytes is over the {FRAME_LIMIT} that an exported file may hold")
    return struct.pack("<I", len(data)) + data


def write(connection: Connection, found: writes.Found, path: Path) -> str:
    """Write the experiment; see ``Store.export``."""
    boots = len(reads.boot_rows(connection, found.no))
    header = _header(connection, found.no)
    line = Line(
        format=FORMAT, schema=SCHEMA, id=found.id, boots=boots, tool_version=header.experiment.tool_version[:200]
    )
    packer, digest = zstandard.ZstdCompressor(level=9).compressobj(), hashlib.sha256()
    with _replacing(path) as file:
        for piece in _pieces(connection, found.no, header, line, packer):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())
    return found.id


def _pieces(connection: Connection, no: int, header: Header, line: Line, packer: Any) -> Iterator[bytes]:
    """All of a file but its checksum."""
    yield msgspec.json.encode(line) + b"\n"
    yield packer.compress(_frame(header))
    for boot in reads.whole_boots(connection, no):
        yield packer.compress(_frame(boot))
    yield packer.compress(_frame("end"))
    yield packer.flush()


def _bad(path: Path, why: str) -> UserError:
    return UserError(f"{path}: {why}; get the file again, as written by kdelta export")


def _first_line(file: IO[bytes], path: Path) -> Line:
    """The checked first line; the file's checksum is right when this returns."""
    start = file.readline(LINE_LIMIT)
    try:
        line = msgspec.json.decode(start, type=Line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UserError(f"{path}: not written by kdelta export") from None
    if line.format != FORMAT or not start.endswith(b"\n"):
        raise UserError(f"{path}: not written by kdelta export")
    if line.schema not in (_OLD_SCHEMA, SCHEMA):
        raise UserError(f"{path}: of schema {line.schema}, this kdelta reads {SCHEMA}: upgrade kdelta")
    if not 0 <= line.boots <= BOOT_LIMIT:
        raise _bad(path, f"it claims {line.boots} boots")
    body = file.tell()
    _verify(file, path)
    file.seek(body)
    return line


def _verify(file: IO[bytes], path: Path) -> None:
    size = file.seek(0, os.SEEK_END)
    if size > FILE_LIMIT:
        raise UserError(f"{path}: {size} bytes; the limit is {FILE_LIMIT}")
    digest, left = hashlib.sha256(), size - _CHECKSUM
    file.seek(0)
    while left > 0:
        piece = file.read(min(_PIECE, left))
        if not piece:
            break
        digest.update(piece)
        left -= len(piece)
    if left != 0 or file.read() != digest.digest():
        raise _bad(path, "damaged or cut short: its checksum is wrong")


class _Body:
    """The bytes of ``file`` from here to its checksum, for the decompressor to read."""

    def __init__(self, file: IO[bytes]) -> None:
        start = file.tell()
        self._file, self._left = file, file.seek(0, os.SEEK_END) - _CHECKSUM - start
        file.seek(start)

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(piece)
        return piece


class _Frames:
    """Frames of a decompressed stream, bounded one by one and in all."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._stream = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(cast(IO[bytes], _Body(file)))
        self._path, self._left = path, TOTAL_LIMIT

    def _exactly(self, size: int) -> bytes:
        self._left -= size
        if size > FRAME_LIMIT or self._left < 0:
            raise _bad(self._path, "it unpacks to more than the limit")
        pieces, missing = [], size
        while missing:
            try:
                piece = self._stream.read(min(missing, _PIECE))
            except zstandard.ZstdError as error:
                raise _bad(self._path, f"cannot be unpacked ({error})") from None
            if not piece:
                raise _bad(self._path, "it ends too early")
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def next(self, kind: type[T]) -> T:
        (size,) = struct.unpack("<I", self._exactly(4))
        try:
            return msgspec.msgpack.decode(self._exactly(size), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _bad(self._path, f"its contents are invalid ({str(error)[:200]})") from None


def check(path: Path) -> None:
    """Raises:
    UserError: ``path`` cannot be read, is not of kdelta, or is damaged.
    """
    try:
        with path.open("rb") as file:
            _first_line(file, path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def read(connection: Connection, path: Path) -> Imported:
    """Store the experiment in ``path``; see ``Store.import_``."""
    try:
        with path.open("rb") as file:
            line = _first_line(file, path)
            frames = _Frames(file, path)
            header = frames.next(Header) if line.schema == SCHEMA else _upgraded(frames.next(_OldHeader), path)
            _check(header, line, path)
            _in_turn(connection)
            created = _adopt(connection, header, path)
            owner = writes.find(connection, header.experiment.id)
            added = _boots(connection, owner, frames, line.boots, path)
            if frames.next(str) != "end":
                raise _bad(path, "it holds more than its first line says")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    return Imported(owner.id, created, added, line.boots - added)


def _in_turn(connection: Connection) -> None:
    """Two that import the same at once would both make the experiment; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_IMPORT_LOCK)))


def _upgraded(old: _OldHeader, path: Path) -> Header:
    try:
        experiment = msgspec.convert(upgraded(old.experiment), Experiment)
    except (msgspec.ValidationError, ValueError, KeyError, TypeError) as error:
        raise _bad(path, f"its contents are invalid ({str(error)[:200]})") from None
    return Header(experiment=experiment, tags=old.tags, note=old.note, looks=old.looks)


def _check(header: Header, line: Line, path: Path) -> None:
    experiment = header.experiment
    codec.check_id(experiment.id)
    codec.check_note(header.note)
    for tag in header.tags:
        codec.check_tag(tag)
    if experiment.id != line.id:
        raise _bad(path, "its first line names another experiment")
    if not 0 <= planned.boots_planned(experiment) < 2**31:
        raise _bad(path, f"it plans {experiment.blocks} blocks")
    try:
        planned.boots_spared(experiment, header.looks)
    except msgspec.ValidationError as error:
        raise _bad(path, f"a look is invalid ({str(error)[:200]})") from None


def _adopt(connection: Connection, header: Header, path: Path) -> bool:
    """Make the experiment, or find the same one; true if it was made. Looks and tags are added, a note is kept."""
    e, t = tables.experiment.c, tables.tag.c
    experiment = replace(header.experiment, imported=False)  # whatever the file says of itself
    stored = connection.execute(select(e.no, e.document).where(e.id == experiment.id)).first()
    if stored is None:
        writes.insert_experiment(connection, replace(experiment, imported=True))
    elif codec.experiment_of(stored.document) != experiment:
        raise UserError(
            f"{path}: another experiment {experiment.id} is in the store; nothing was changed: "
            "import into another store (KDELTA_STORE), or delete that one first"
        )
    owner = writes.find(connection, experiment.id)
    for look in header.looks:
        writes.insert_look(connection, owner, look)
    present = set(connection.execute(select(t.name).where(t.experiment_no == owner.no)).scalars())
    for tag in sorted(set(header.tags) - present):
        connection.execute(insert(tables.tag).values(experiment_no=owner.no, name=tag))
    if header.note and stored is None:
        connection.execute(update(tables.experiment).where(e.no == owner.no).values(note=header.note))
    return stored is None


def _boots(connection: Connection, owner: writes.Found, frames: _Frames, count: int, path: Path) -> int:
    """Store the boots that are not there yet; returns how many."""
    b = tables.boot.c
    rows = connection.execute(select(b.block, b.slot).where(b.experiment_no == owner.no))
    present = {(row.block, row.slot) for row in rows}
    added = 0
    for _ in range(count):
        boot = frames.next(BootResult)
        place = (boot.plan.block, boot.plan.slot)
        if place in present:
            continue
        if wrong := codec.misfit(boot, owner.kernel_count, owner.case_count):
            raise _bad(path, f"block {place[0]} slot {place[1]} holds {wrong}")
        writes.insert_boot(connection, owner, boot, foreign=True)
        present.add(place)
        added += 1
    return added
