# SPDX-License-Identifier: GPL-2.0-or-later
"""C files of the user's own (--workloads, --case FILE.c) as they travel to hosts, which compile them as this one would.

What travels is what the compiler says that they include, but for the system's headers and kdelta's own, the TOML files
beside them and their data. They lie to each other as they did, so that ``#include "../common.h"`` finds its file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kdelta import paths
from kdelta.errors import HostError, UserError
from kdelta.fleet.blobs import Blobs
from kdelta.guest import binary
from kdelta.model import Arch, Experiment, Progress
from kdelta.spec.workloads import catalogue

_MOST_BYTES = 64 << 20  # a directory with more is not the sources of some cases


class Sources(Struct, frozen=True, kw_only=True):
    """``files``: path below their common directory -> sha256; ``folders``: where the experiment's are, in its order."""

    files: dict[str, str] = {}
    folders: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Digest of all of it."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:32]


def _files(arch: Arch, own: Sequence[Path]) -> list[Path]:
    """All files that decide what the guest's program and its data are."""
    found = set(binary.own_files(arch, own))
    for place in own:
        found.update(place.glob("*.toml") if place.is_dir() else [place.with_suffix(".toml")])
    known = catalogue(tuple(own)).values()
    beside = {path.parent for path in found}
    found.update(path for one in known if one.source_path.parent in beside for path in one.data_files.values())
    return sorted(path for path in found if path.is_file())


def send(folders: Sequence[str], arch: Arch, blobs: Blobs, progress: Progress) -> Sources:
    """Put the sources of an experiment's ``folders`` where all hosts reach them.

    Raises:
        UserError: they are gone, or do not compile, or are too large. HostError: the place cannot be written.
    """
    if not folders:
        return Sources()
    own = [Path(os.path.abspath(folder)) for folder in folders]
    files = [Path(os.path.abspath(path)) for path in _files(arch, own)]
    if (size := sum(path.stat().st_size for path in files)) > _MOST_BYTES:
        raise UserError(f"--fleet: your workloads have {size >> 20} MiB of files: name single C files with --case")
    root = Path(os.path.commonpath([*(path.parent for path in files), *(p if p.is_dir() else p.parent for p in own)]))
    progress.step(f"your workloads to {blobs.url}")
    sent = {path.relative_to(root).as_posix(): blobs.put(path) for path in files}
    return Sources(files=sent, folders=tuple(path.relative_to(root).as_posix() for path in own))


def receive(sources: Sources, blobs: Blobs, progress: Progress) -> tuple[str, ...]:
    """The experiment's folders on this host, fetched where they are missing.

    Raises:
        HostError: a blob is missing or damaged, a name leads out of the directory, or the disk is full.
    """
    if not sources.folders:
        return ()
    root = paths.cache_dir() / "workloads" / sources.name
    if not root.is_dir():
        _refuse_outside([*sources.files, *sources.folders])
        progress.step(f"workloads from {blobs.url}")
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent, prefix=".fleet-", ignore_cleanup_errors=True) as work:
            _fetch(sources.files, blobs, Path(work) / "all")
            if not root.is_dir():  # another worker of this host may have been faster
                os.rename(Path(work) / "all", root)
    return tuple(str(root / folder) for folder in sources.folders)


def _fetch(files: Mapping[str, str], blobs: Blobs, root: Path) -> None:
    for name, sha256 in files.items():
        blobs.get(sha256, root / name)


def _refuse_outside(names: Iterable[str]) -> None:
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise HostError(f"workloads: were sent with a file {name!r}, which is none of theirs")


def here(experiment: Experiment, sources: Sources, blobs: Blobs, progress: Progress) -> Experiment:
    """``experiment`` with the user's files of this host's cache; see ``receive``."""
    return replace(experiment, folders=receive(sources, blobs, progress)) if experiment.folders else experiment
