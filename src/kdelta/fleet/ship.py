# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels and packed programs from one host's cache to another's, by way of the blobs: nothing is believed but sums."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kdelta import paths
from kdelta.errors import HostError
from kdelta.fleet.blobs import Blobs
from kdelta.guest import packing
from kdelta.kernel import cache
from kdelta.model import Case, Experiment, Kernel, Progress
from kdelta.spec.counted import START
from kdelta.spec.program import PACK

_BESIDE = (cache.SYSTEM_MAP, cache.TYPES)
_OPTIONAL = ("vmlinux", "config", *_BESIDE)
Parcel = dict[str, str]  # file of a cache entry -> sha256


def send(kernel: Kernel, blobs: Blobs, progress: Progress) -> Parcel:
    """Put what the cache has of ``kernel`` where all hosts reach it.

    Raises:
        HostError: it is not in the cache whole, or the place cannot be written.
    """
    stored = cache.get(kernel.image_sha256)
    if stored is None:
        raise HostError(f"kernel {kernel.label}: its image is not in the cache any more; name the kernel again")
    names = ["image", "meta.json", *(name for name in _OPTIONAL if (stored.folder / name).is_file())]
    parcel = {}
    for done, name in enumerate(names):
        progress.step(f"{kernel.label}: {name} to {blobs.url}", done, len(names))
        parcel[name] = blobs.put(stored.folder / name)
    return parcel


def receive(kernel: Kernel, parcel: Mapping[str, str], blobs: Blobs, progress: Progress) -> Kernel:
    """``kernel`` with the files of this host's cache, fetched where they are missing.

    Raises:
        HostError: a blob is missing or damaged, or it is another image.
    """
    stored = cache.get(kernel.image_sha256)
    if stored is None:
        stored = _fetched(kernel, parcel, blobs, progress)
    vmlinux = stored.image if stored.entry.form == "vmlinux" else stored.vmlinux
    return replace(kernel, image_path=str(stored.image), vmlinux_path=str(vmlinux) if kernel.vmlinux_path else None)


def _fetched(kernel: Kernel, parcel: Mapping[str, str], blobs: Blobs, progress: Progress) -> cache.Stored:
    paths.cache_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.cache_dir(), prefix=".fleet-") as work:
        files = {}
        for done, (name, sha256) in enumerate(sorted(parcel.items())):
            if name not in ("image", "meta.json", *_OPTIONAL):
                raise HostError(f"kernel {kernel.label}: was sent with a file {name!r}, which no kernel has")
            progress.step(f"{kernel.label}: {name} from {blobs.url}", done, len(parcel))
            blobs.get(sha256, Path(work) / name)
            files[name] = (Path(work) / name).read_bytes()
    entry = entry_of(files.get("meta.json", b""), kernel.label)
    if entry.sha256 != kernel.image_sha256 or parcel.get("image") != entry.sha256:
        raise HostError(f"kernel {kernel.label}: another image was sent (sha256 {entry.sha256[:12]})")
    config = files.get("config", b"").decode("utf-8", "replace")
    beside = {name: files[name] for name in _BESIDE if name in files}
    return cache.put(entry, files["image"], files.get("vmlinux"), config, beside)


def entry_of(data: bytes, label: str) -> cache.Entry:
    """What a host says of the kernel ``label`` that it sends.

    Raises:
        HostError: it cannot be read.
    """
    try:
        return msgspec.json.decode(data, type=cache.Entry)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise HostError(f"kernel {label}: what was sent cannot be read ({error})") from None


def send_programs(cases: Sequence[Case], blobs: Blobs, progress: Progress) -> dict[str, Parcel]:
    """Put the packed programs of ``cases`` where all hosts reach them; by their digests.

    Raises:
        HostError: one is not in the cache any more, or the place cannot be written.
    """
    found = {}
    for digest in sorted({case.params[name] for case in cases for name in (PACK, START) if name in case.params}):
        pack = packing.known(digest)
        if pack is None:
            raise HostError(f"program {digest[:12]}: its files are not in the cache any more; run the command again")
        progress.step(f"program {digest[:12]} to {blobs.url}")
        found[digest] = {"spec": blobs.put(pack.spec)} | ({"tree": blobs.put(pack.tree)} if pack.tree else {})
    return found


def receive_programs(packs: Mapping[str, Parcel], blobs: Blobs, progress: Progress) -> None:
    """Have the programs ``packs`` in this host's cache.

    Raises:
        HostError: a blob is missing, or it is another program.
    """
    paths.cache_dir().mkdir(parents=True, exist_ok=True)
    for digest, parcel in packs.items():
        if packing.known(digest) is not None:
            continue
        progress.step(f"program {digest[:12]} from {blobs.url}")
        with tempfile.TemporaryDirectory(dir=paths.cache_dir(), prefix=".fleet-") as work:
            for name in ("spec", "tree"):
                if name in parcel:
                    blobs.get(parcel[name], Path(work) / name)
            spec, tree = Path(work) / "spec", Path(work) / "tree"
            if not spec.is_file():
                raise HostError(f"program {digest[:12]}: was sent without what to run")
            packing.take(digest, spec.read_bytes(), tree.read_bytes() if tree.is_file() else None)


def here(
    experiment: Experiment, parcels: Mapping[str, Mapping[str, str]], blobs: Blobs, progress: Progress
) -> Experiment:
    """``experiment`` with kernels of this host's cache.

    Raises:
        HostError: see ``receive``.
    """
    kernels = tuple(receive(k, parcels.get(k.image_sha256, {}), blobs, progress) for k in experiment.kernels)
    return replace(experiment, kernels=kernels)
