# SPDX-License-Identifier: GPL-2.0-or-later
"""Model <-> bytes and texts that any database takes. Pure."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from kdelta.errors import HostError, UnreadableError, UserError
from kdelta.model import BootResult, Experiment, Mode, PlannedBoot, RunResult, State
from kdelta.store.samples import number_of, spread_percent
from kdelta.units import Better

T = TypeVar("T")

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,63}")
_SEAL = b"\xc1"
_UNFIT = re.compile("[\0\ud800-\udfff]")  # PostgreSQL refuses NUL in text, UTF-8 has no surrogates
_NOTE_LIMIT = 65_536
_ROOM = 16_384  # bytes for what is inflated, where that may be small; what does not fit is copied to twice the room
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class Damaged(HostError):
    """Stored bytes are not what was stored; ``place`` is that of the boot they belong to, in words."""

    def __init__(self, why: str, place: str = "") -> None:
        super().__init__(f"the store is damaged{place}: {why}; restore it from a backup")
        self.why, self.place = why, place

    def at(self, block: int, slot: int) -> Damaged:
        """The same, of the boot at this place."""
        return Damaged(self.why, f", block {block} slot {slot}")


@contextmanager
def named(experiment_id: str) -> Iterator[None]:
    """Damage met inside is told with the experiment it is in, and what to do.

    Raises:
        HostError: instead of ``Damaged``.
    """
    try:
        yield
    except Damaged as error:
        raise UnreadableError(
            f"experiment {experiment_id}{error.place}: damaged in the store ({error.why}); others are not touched: "
            f"restore the store from a backup, or forget this one: kdelta history delete {experiment_id}"
        ) from None


@contextmanager
def named_floors() -> Iterator[None]:
    """As ``named``, of the calibrated noise floors, which belong to no experiment."""
    try:
        yield
    except Damaged as error:
        raise HostError(
            f"the noise floors of this host are damaged in the store ({error.why}): restore it from a backup, or "
            "calibrate into another (KDELTA_STORE)"
        ) from None


class Figure(Struct, frozen=True, array_like=True, gc=False):
    """One number of a run as kept in ``run.figures``."""

    metric: str
    unit: str
    better: Better
    value: float | None
    samples: int
    spread_percent: float | None


class RunRow(Struct, frozen=True):
    """A row of ``run``: a case's figures, or why it has none."""

    case: int
    state: State
    why: str
    figures: tuple[Figure, ...] = ()


def column_text(text: str) -> str:
    """``text`` with what a database's text cannot hold replaced; the document beside it keeps the original."""
    return _UNFIT.sub("\ufffd", text)


def key_of(*names: str) -> str:
    """A digest by which names of any length are indexed; 32 hex digits."""
    joined = "\0".join(name.replace("\\", "\\\\").replace("\0", "\\0") for name in names)
    return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def check_id(text: str) -> str:
    """An experiment's id, which becomes file names and arguments.

    Raises:
        UserError: other characters than letters, digits, ``_.-``, over 64 of them, or the reserved word ``last``.
    """
    if not _ID.fullmatch(text) or text == "last":
        raise UserError(
            f"experiment id {text[:80]!r}: 1 to 64 letters, digits, dots, dashes or underscores, and not 'last'"
        )
    return text


def check_tag(text: str) -> str:
    """A tag.

    Raises:
        UserError: it is not one short word.
    """
    if not _TAG.fullmatch(text):
        raise UserError(f"tag {text[:80]!r}: 1 to 64 letters, digits or _.:/@+- , beginning with a letter or digit")
    return text


def check_note(text: str) -> str:
    """A note: any text up to 64 KiB characters.

    Raises:
        UserError: too long, or control characters other than tab and newline.
    """
    if len(text) > _NOTE_LIMIT:
        raise UserError(
            f"the note has {len(text)} characters, the limit is {_NOTE_LIMIT}: keep the rest elsewhere and refer to it"
        )
    if match := _CONTROL.search(text):
        raise UserError(
            f"the note holds the control character {match.group()!r}: only text, tabs and newlines are kept"
        )
    return text


def squeeze(value: Any) -> bytes:
    """msgpack, zlib-compressed.

    Raises:
        UserError: a text in it is not valid UTF-8.
    """
    return zlib.compress(pack(value), 6)


def pack(value: Any) -> bytes:
    """msgpack (NaN and infinities survive, unlike JSON).

    Raises:
        UserError: a text in it is not valid UTF-8.
    """
    try:
        return msgspec.msgpack.encode(value)
    except UnicodeEncodeError:
        raise UserError("a name holds bytes that are not UTF-8: rename the file or label and try again") from None


def seal(value: Any) -> bytes:
    """``pack`` with a CRC-32 in front, for what is not compressed: zlib has its Adler-32 (RFC 1950).

    The first byte is 0xC1, which msgpack never uses: what was stored before revision 0005 is told apart by it.

    Raises:
        UserError: a text in it is not valid UTF-8.
    """
    data = pack(value)
    return _SEAL + zlib.crc32(data).to_bytes(4, "little") + data


def unsealed(data: bytes) -> bytes:
    """The msgpack of a sealed blob; of an older one, which has no checksum, all of it.

    Raises:
        Damaged: its checksum is wrong.
    """
    if data[:1] != _SEAL:
        return data
    body = data[5:]
    if zlib.crc32(body).to_bytes(4, "little") != data[1:5]:
        raise Damaged("its checksum is wrong")
    return body


def unseal(data: bytes, kind: type[T]) -> T:
    """Inverse of ``seal``.

    Raises:
        Damaged: the stored bytes are damaged.
    """
    return unpack(unsealed(data), kind)


def unpack(data: bytes, kind: type[T]) -> T:
    """Inverse of ``pack``.

    Raises:
        Damaged: the stored bytes are damaged.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Damaged(str(error)[:200]) from None


def inflate(data: bytes) -> bytes:
    """Inverse of ``zlib.compress``.

    Raises:
        Damaged: the stored bytes are damaged.
    """
    try:
        return zlib.decompress(data, bufsize=max(_ROOM, min(4 * len(data), 64 * _ROOM)))
    except zlib.error as error:
        raise Damaged(str(error)) from None


def expand(data: bytes, kind: type[T]) -> T:
    """Inverse of ``squeeze``."""
    return unpack(inflate(data), kind)


def experiment_document(experiment: Experiment) -> bytes:
    """zlib(JSON), readable by anybody without kdelta. Whether it was imported is no part of it.

    Raises:
        UserError: a text in it is not valid UTF-8.
    """
    try:
        return zlib.compress(msgspec.json.encode(structs.replace(experiment, imported=False)), 6)
    except UnicodeEncodeError:
        raise UserError(
            f"experiment {experiment.id}: a name or path holds bytes that are not UTF-8: rename it"
        ) from None


def experiment_of(document: bytes) -> Experiment:
    """Inverse of ``experiment_document``.

    Raises:
        Damaged: the stored bytes are damaged.
    """
    try:
        return msgspec.json.decode(inflate(document), type=Experiment)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Damaged(str(error)[:200]) from None


class Guests(Struct):
    """What tells the guests of an experiment from others."""

    smp: int = 1
    cold: bool = False


class Started(Struct):
    """How a kernel is started that its image does not tell."""

    arch: str = ""
    cmdline: str = ""


class Booted(Struct):
    """What of an experiment tells its boots from others of the same images."""

    machine: Guests = msgspec.field(default_factory=Guests)
    kernels: tuple[Started, ...] = ()


def booted(document: bytes) -> Booted:
    """The boots of an experiment; the usual ones of a document that cannot be read."""
    try:
        return msgspec.json.decode(inflate(document), type=Booted)
    except (Damaged, msgspec.DecodeError, UnicodeDecodeError):
        return Booted()


def boot_document(boot: BootResult) -> bytes:
    """A boot without console, stream and runs."""
    return seal(structs.replace(boot, console=b"", stream=b"", runs=()))


def figures_of(run: RunResult, mode: Mode) -> tuple[Figure, ...]:
    """One figure per series; a run that is not ok has none."""
    if run.state != "ok":
        return ()
    return tuple(
        Figure(s.metric, s.unit, s.better, number_of(s, mode), len(s.kept()), spread_percent(s)) for s in run.series
    )


def run_rows(boot: BootResult, mode: Mode, case_count: int) -> list[RunRow]:
    """One row per planned case: as measured, else with the boot's own state, so that no cell is silently missing."""
    rows = {run.case: RunRow(run.case, run.state, run.why, figures_of(run, mode)) for run in boot.runs}
    state: State = "lost" if boot.state == "ok" else boot.state
    why = boot.why or ("the guest sent no result for this case" if boot.state == "ok" else f"the boot {boot.state}")
    for case in boot.plan.cases or range(case_count):
        rows.setdefault(case, RunRow(case, state, why))
    return [rows[case] for case in sorted(rows)]


def misfit(boot: BootResult, kernel_count: int, case_count: int) -> str:
    """What in ``boot`` cannot belong to an experiment of so many kernels and cases; "" if nothing."""
    plan: PlannedBoot = boot.plan
    cases = [run.case for run in boot.runs]
    if plan.block < 0 or plan.slot < 0 or max(plan.block, plan.slot) >= 2**31:
        return f"block {plan.block}, slot {plan.slot} is not a place in the schedule"
    if not 0 <= plan.kernel < kernel_count:
        return f"kernel {plan.kernel} of {kernel_count}"
    if not all(0 <= case < case_count for case in (*plan.cases, *cases)):
        return f"a case beyond the {case_count} of the experiment"
    if len(set(cases)) != len(cases):
        return "two results of one case"
    return next(
        (
            f"series {s.metric[:80]!r} with {len(s.values)} values and {len(s.warm)} warm-up marks"
            for run in boot.runs
            for s in run.series
            if s.warm and len(s.warm) != len(s.values)
        ),
        "",
    )
