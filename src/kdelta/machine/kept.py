# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine's hardware, set while it is measured: what it was before is kept on disk until it is so again.

A kill leaves the file behind: the next measurement puts back what it says, unless the machine was started anew since.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from kdelta import locks, paths
from kdelta.errors import HostError
from kdelta.machine import settings
from kdelta.model import Hardware


class _State(Struct, frozen=True, kw_only=True):
    boot_id: str
    writes: tuple[settings.Write, ...]


class Here:
    """The files of this machine, or of a tree that looks like them."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def read(self, pattern: str) -> Mapping[str, str]:
        found = {}
        for name in sorted(glob.glob(str(self._root / pattern.lstrip("/")))):
            path = Path(name)
            try:
                found[f"/{path.relative_to(self._root)}"] = path.read_text(encoding="ascii", errors="replace").strip()
            except OSError:  # of a CPU that is offline
                continue
        return found

    def write(self, path: str, text: str) -> str:
        try:
            (self._root / path.lstrip("/")).write_text(text, encoding="ascii")
        except PermissionError as error:
            return f"{error.strerror} (only root may)"
        except OSError as error:
            return str(error.strerror)
        return ""


def state_path() -> Path:
    """Where is kept what is to be put back."""
    return paths.state_dir() / "hardware.json"


@contextmanager
def as_wanted(wanted: Hardware, root: Path = Path("/"), path: Path | None = None) -> Iterator[None]:
    """Set this machine's hardware, and put back what was changed, also what a killed kdelta left.

    Raises:
        HostError: it cannot be set or put back, or another kdelta has set it.
    """
    files, path = Here(root), path or state_path()
    if not wanted.any and not path.exists():
        yield
        return
    with _locked(path):
        _undo(files, path, _boot_id(files))

        def note(writes: tuple[settings.Write, ...]) -> None:
            _write(path, _State(boot_id=_boot_id(files), writes=writes))

        try:
            settings.apply(files, wanted, note)
            yield
        finally:
            _undo(files, path, _boot_id(files))


def left(root: Path = Path("/"), path: Path | None = None) -> tuple[settings.Write, ...]:
    """What a kdelta that was killed, or one at work, has changed here and not put back."""
    state = _read(path or state_path())
    return state.writes if state and state.boot_id == _boot_id(Here(root)) else ()


def _boot_id(files: Here) -> str:
    name = "/proc/sys/kernel/random/boot_id"
    return files.read(name).get(name, "")


def _undo(files: Here, path: Path, boot_id: str) -> None:
    state = _read(path)
    if state and state.boot_id == boot_id and (failed := settings.put_back(files, state.writes)):
        raise HostError(f"the hardware could not be put back: {failed[0]} (kept in {path})")
    path.unlink(missing_ok=True)


def _read(path: Path) -> _State | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_State)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise HostError(f"{path} cannot be read ({error}): put the hardware back by hand, and delete it") from None


def _write(path: Path, state: _State) -> None:
    beside = path.with_suffix(".new")
    try:
        beside.write_bytes(msgspec.json.encode(state))
        beside.replace(path)
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror}") from None


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    try:
        lock = locks.take(path.with_suffix(".lock"))
    except locks.Taken as other:
        who = f"another kdelta (process {other.process})"
        raise HostError(f"{who} has set this machine's hardware: wait for its end") from None
    with lock:
        yield lock
