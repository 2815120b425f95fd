# SPDX-License-Identifier: GPL-2.0-or-later
"""What came of a build, as it travels back: the kernel with its symbols, what is remembered of it, its log."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from kdelta.errors import HostError, KdeltaError, UserError
from kdelta.fleet import ship
from kdelta.fleet.blobs import Blobs
from kdelta.fleet.ship import Parcel
from kdelta.kernel import products
from kdelta.kernel.build import BuildError
from kdelta.kernel.products import Built
from kdelta.model import Kernel, Progress

LOG = "build.log"
_FILES = (LOG, "applied.diff", "vmlinux")


class Outcome(Struct, frozen=True, kw_only=True):
    """A kernel and its files (name -> sha256), or ``why`` there is none: ``line`` is the compiler's, where it was that.

    ``refused``: what was asked for cannot be built anywhere, as with a patch that does not fit.
    """

    kernel: Kernel | None = None
    built: Built | None = None
    parcel: Parcel = {}
    files: Parcel = {}
    why: str = ""
    line: str = ""
    refused: bool = False

    def encode(self) -> bytes:
        """As msgpack."""
        return msgspec.msgpack.encode(self)


def decode(data: bytes | None) -> Outcome:
    """What ``Outcome.encode`` wrote.

    Raises:
        HostError: it is not that.
    """
    try:
        return msgspec.msgpack.decode(data, type=Outcome) if data else Outcome()
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise HostError(f"what came of the build cannot be read ({error})") from None


def sent(key: str, kernel: Kernel, built: Built, blobs: Blobs, progress: Progress) -> Outcome:
    """Put what was built here where all hosts reach it.

    Raises:
        HostError: the place cannot be written.
    """
    return Outcome(kernel=kernel, built=built, parcel=ship.send(kernel, blobs, progress), files=_files(key, blobs))


def failed(key: str, error: KdeltaError, line: str, blobs: Blobs) -> Outcome:
    """Why ``key`` cannot be built, with the log where there is one."""
    log = products.folder(key) / LOG
    plain = str(error).replace(str(log), LOG).encode("utf-8", "replace").decode()
    return Outcome(why=plain, line=line, refused=isinstance(error, UserError), files=_files(key, blobs))


def _files(key: str, blobs: Blobs) -> Parcel:
    home = products.folder(key)
    return {name: blobs.put(home / name) for name in _FILES if (home / name).is_file()}


def whole(outcome: Outcome, blobs: Blobs) -> bool:
    """Whether all files of a kernel are still where they were put."""
    return all(blobs.has(name) for name in (*outcome.parcel.values(), *outcome.files.values()))


def adopt(key: str, outcome: Outcome, blobs: Blobs, progress: Progress) -> None:
    """Keep the kernel as if it had been built here.

    Raises:
        HostError: a file is missing or damaged.
    """
    assert outcome.kernel is not None and outcome.built is not None
    ship.receive(outcome.kernel, outcome.parcel, blobs, progress)
    _fetch(key, outcome, blobs)
    products.adopt(key, outcome.built)


def _fetch(key: str, outcome: Outcome, blobs: Blobs) -> None:
    for name in _FILES:
        if name in outcome.files:
            blobs.get(outcome.files[name], products.folder(key) / name)


def error(key: str, name: str, host: str, outcome: Outcome, said: str, blobs: Blobs) -> KdeltaError:
    """Why there is no kernel, as if it had been tried here, with the log fetched."""
    where = f" (on {host})" if host else ""
    if outcome.refused:
        return UserError(outcome.why)
    if not outcome.line:
        return HostError(f"{name}: the fleet could not build it{where}: {said}")
    _fetch(key, outcome, blobs)
    log = products.folder(key) / LOG
    made = HostError(outcome.why.replace(f"log: {LOG}", f"log: {log}") + where)
    made.__cause__ = BuildError(outcome.line, Path(log))
    return made
