# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a guest's root: each where it is on this machine, a symbolic link as one, with what it points to."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from kdelta.errors import UserError
from kdelta.guest.image import Node

_SCRATCH = ("tmp", "var/tmp", "run/scratch")
_LINKS_MOST = 40  # as the kernel has it: MAXSYMLINKS


class Tree:
    """The files of a guest's root, by their path without its leading slash."""

    def __init__(self, walked_most: int | None = None) -> None:
        """``walked_most``: bytes of files after which no more of a directory is taken; ``cut`` says so."""
        self.nodes: dict[str, Node] = {}
        self.cut = False
        self._walked_most, self._walked = walked_most, 0

    def _put(self, path: Path, node: Node) -> None:
        self.nodes.setdefault(str(path).lstrip("/"), node)

    def folder(self, path: Path) -> None:
        """An empty directory, with those that it is in; links on the way are followed on this machine."""
        for one in [*reversed(path.parents), path]:
            if one != Path("/"):
                if one.is_symlink() or one.is_dir():
                    self.add(one)
                else:
                    self._put(one, Node(stat.S_IFDIR | 0o755))

    def add(self, path: Path) -> None:
        """A file, directory (without what is in it) or symbolic link, with all links and directories on its way.

        Raises:
            UserError: it is not there or cannot be read.
        """
        here, links = Path("/"), 0
        left = [*Path(os.path.abspath(path.parent)).parts[1:], path.name]
        try:
            while left:
                part = left.pop(0)
                here = here.parent if part == ".." else here / part
                if here.is_symlink():
                    target = os.readlink(here)
                    self._put(here, Node(stat.S_IFLNK | 0o777, os.fsencode(target)))
                    left = [one for one in target.split("/") if one not in ("", ".")] + left
                    here = Path("/") if target.startswith("/") else here.parent
                    links += 1
                elif here != Path("/"):
                    self._put(here, _plain(here))
                if links > _LINKS_MOST:
                    raise UserError(f"program: {path}: too many symbolic links")
        except OSError as error:
            raise UserError(f"program: {here} cannot be read: {error.strerror}") from None

    def add_all(self, folder: Path, but: str = "") -> None:
        """A directory with all that is below it, but sockets and devices, and names that are the expression ``but``."""
        out = re.compile(but)
        self.add(folder)
        for at, folders, files in os.walk(folder):
            if self.cut:  # it is refused anyway, and all of /usr would take a minute
                return
            folders[:] = sorted(name for name in folders if not out.fullmatch(name))
            for name in (*folders, *sorted(name for name in files if not out.fullmatch(name))):
                one = Path(at) / name
                if one.is_symlink() and not one.exists():
                    self.folder(one.parent)
                    self._put(one, Node(stat.S_IFLNK | 0o777, os.fsencode(os.readlink(one))))
                elif one.is_dir() or one.is_file():
                    self.add(one)
                    self._walked += one.stat().st_size
            self.cut = self._walked_most is not None and self._walked > self._walked_most

    def take(self, nodes: Iterable[tuple[str, Node]]) -> None:
        """What was found by whole path; the directories that it is in are there already."""
        for path, node in nodes:
            self.nodes.setdefault(path.lstrip("/"), node)

    def put_at(self, source: Path, place: str) -> None:
        """The file ``source`` at another place."""
        self.folder(Path(place).parent)
        self._put(Path(place), _plain(source.resolve()))

    def size(self) -> int:
        """Bytes of all files."""
        return sum(node.source.stat().st_size for node in self.nodes.values() if isinstance(node.source, Path))

    def scratch(self, but: Path | None = None) -> str:
        """A directory that nothing is packed in, for what the program writes; neither in ``but`` nor above it."""
        free = (one for one in _SCRATCH if not any(n.startswith(one + "/") for n in self.nodes))
        return next((one for one in free if but is None or not _related(Path("/") / one, but)), _SCRATCH[-1])

    def largest(self) -> str:
        """The deepest directory that holds more than half of all."""
        sizes: dict[Path, int] = {}
        for name, node in self.nodes.items():
            if isinstance(node.source, Path):
                for folder in (Path("/") / name).parents:
                    sizes[folder] = sizes.get(folder, 0) + node.source.stat().st_size
        half = max(sizes.values()) / 2
        top = max((folder for folder, size in sizes.items() if size > half), key=lambda folder: len(folder.parts))
        return f"{top} has {sizes[top] >> 20} MiB"


def _related(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _plain(path: Path) -> Node:
    """A directory or a file as it is here."""
    if path.is_dir():
        return Node(stat.S_IFDIR | 0o755)
    if path.is_file():
        return Node(stat.S_IFREG | (stat.S_IMODE(path.stat().st_mode) & 0o777), path)
    raise UserError(f"program: {path} is not there, or neither a file nor a directory")
