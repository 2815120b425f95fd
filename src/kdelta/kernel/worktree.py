# SPDX-License-Identifier: GPL-2.0-or-later
"""Work trees in the cache: a kernel source at a fixed path, with patches laid over it and taken off again.

One tree per origin (a repository, a directory, a Debian source package), so that baseline and patched share paths and
build products, and make sees only the files that really changed. The user's own tree is only read.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kdelta.errors import HostError, UserError
from kdelta.kernel.patch import File
from kdelta.model.progress import Progress

_ABSENT = "absent"  # suffix in originals/ of a path that the base does not have


def encode(text: str) -> bytes:
    """Bytes of a file's text (see ``decode``)."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """Text of a file; bytes that are not UTF-8 are kept as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def checked(root: Path, path: str) -> Path:
    """``root/path`` for a patch to read or write.

    Raises:
        UserError: a symbolic link or a file stands on the way, or it is a directory.
    """
    at = root
    for part in path.split("/"):
        if at.is_file():
            raise UserError(f"refused: {path} goes through {at.relative_to(root)}, which is a file in the tree")
        at = at / part
        if at.is_symlink():
            raise UserError(f"refused: {path} goes through the symbolic link {at.relative_to(root)} of the tree")
    if at.is_dir():
        raise UserError(f"refused: {path} is a directory in the tree, not a file")
    return at


class Worktree:
    """``home/src`` holds a base plus an overlay; ``home/originals`` keeps what the overlay hides, crash or not."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.src = home / "src"
        self._originals = home / "originals"
        self.lock_fd = -1  # while locked

    @contextmanager
    def locked(self, progress: Progress) -> Iterator[None]:
        """Hold this tree; another build in it is waited for. Who inherits ``lock_fd`` holds it too."""
        self.home.mkdir(parents=True, exist_ok=True)
        with open(self.home / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress.step(f"waiting for another build in {self.home}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            os.utime(self.home / "lock")  # when it was last used
            self.lock_fd = lock.fileno()
            try:
                yield
            finally:
                self.lock_fd = -1

    def _marks(self, path: str) -> tuple[Path, Path]:
        name = hashlib.sha256(encode(path)).hexdigest()
        return self._originals / name, self._originals / f"{name}.{_ABSENT}"

    def read_base(self, path: str) -> str | None:
        """Text of a file as the base has it; None where it has none.

        Raises:
            UserError: the path goes through a link of the tree.
        """
        kept, absent = self._marks(path)
        if absent.exists():
            return None
        at = kept if kept.exists() else checked(self.src, path)
        return decode(at.read_bytes()) if at.is_file() else None

    def overlaid(self) -> list[str]:
        """Paths that may differ from the base."""
        index = self._originals / "paths"
        return index.read_text("utf-8", "surrogateescape").split("\0") if index.exists() else []

    def _remember(self, paths: list[str]) -> None:
        self._originals.mkdir(parents=True, exist_ok=True)
        index = self._originals / "paths"
        index.with_suffix(".new").write_bytes(encode("\0".join(paths)))
        os.replace(index.with_suffix(".new"), index)
        for path in paths:
            kept, absent = self._marks(path)
            if kept.exists() or absent.exists():
                continue
            at = checked(self.src, path)
            if at.exists():
                part = kept.with_suffix(".new")
                shutil.copy2(at, part)
                os.replace(part, kept)
            else:
                absent.touch()

    def _restore_target(self, path: str) -> File:
        kept, absent = self._marks(path)
        if absent.exists() or not kept.exists():
            return File(None)
        return File(decode(kept.read_bytes()), bool(kept.stat().st_mode & 0o100))

    def lay(self, files: Mapping[str, File]) -> list[str]:
        """Make the tree the base plus ``files``; returns the paths that were written. Other files keep their times."""
        before = self.overlaid()
        if not before and not files:
            return []
        for path in files:
            checked(self.src, path)
        self._remember(sorted({*before, *files}))
        written = []
        for path in self.overlaid():
            if self._write(path, files.get(path) or self._restore_target(path)):
                written.append(path)
        for path in set(before) - set(files):
            for mark in self._marks(path):
                mark.unlink(missing_ok=True)
        if files:
            self._remember(sorted(files))
        else:
            shutil.rmtree(self._originals)
        return written

    def _write(self, path: str, wanted: File) -> bool:
        at = checked(self.src, path)
        if wanted.text is None:
            existed = at.exists()
            at.unlink(missing_ok=True)
            return existed
        data = encode(wanted.text)
        same = at.exists() and at.read_bytes() == data
        if not same:
            at.parent.mkdir(parents=True, exist_ok=True)
            part = at.with_name(f".{at.name}.kdelta")
            part.write_bytes(data)
            part.chmod(at.stat().st_mode & 0o777 if at.exists() else self._mode_of(wanted.like))
            os.replace(part, at)
        if wanted.executable is not None:
            at.chmod(0o755 if wanted.executable else 0o644)
        return not same

    def _mode_of(self, path: str) -> int:
        """The mode of the base's file ``path``, that of most where there is none."""
        kept = self._marks(path)[0] if path else self.src
        at = kept if kept.exists() else checked(self.src, path)
        return at.stat().st_mode & 0o777 if at.is_file() else 0o644

    @property
    def base_id(self) -> str:
        """What the base is, "" when it is unfinished."""
        mark = self.home / "base"
        return mark.read_text() if mark.exists() else ""

    @contextmanager
    def changing_base(self, base_id: str) -> Iterator[None]:
        """The base is another one afterwards; it counts as unfinished until then."""
        self.lay({})
        (self.home / "base").unlink(missing_ok=True)
        yield
        (self.home / "base").write_text(base_id)


def version_of(makefile: str, title: str) -> tuple[int, int]:
    """(major, minor) from the text of a kernel's top Makefile; ``title`` is for messages.

    Raises:
        UserError: not a kernel's.
    """
    found: dict[str, int] = {}
    for line in makefile.splitlines()[:40]:
        key, equals, value = line.partition("=")
        if equals and key.strip() in ("VERSION", "PATCHLEVEL") and value.strip().isdigit():
            found[key.strip()] = int(value)
    if len(found) < 2:
        raise UserError(f"{title}: not a kernel source (no Makefile with VERSION and PATCHLEVEL)")
    return found["VERSION"], found["PATCHLEVEL"]


def require_space(path: Path, needed_bytes: int) -> None:
    """Refuse early when the disk cannot hold a tree.

    Raises:
        HostError: less than ``needed_bytes`` are free.
    """
    path.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path).free
    if free < needed_bytes:
        raise HostError(
            f"{path}: {free >> 20} MiB free, a kernel tree and its build need {needed_bytes >> 20} MiB; "
            "free some, or set KDELTA_CACHE to a larger disk"
        )
