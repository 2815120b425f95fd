# SPDX-License-Identifier: GPL-2.0-or-later
"""What was built, and is never built twice: remembered by source, patches, config, compiler and architecture."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from kdelta import digests
from kdelta.kernel import cache, ingest
from kdelta.kernel.build import Products
from kdelta.kernel.guards import LeftOut
from kdelta.kernel.steps import whole
from kdelta.kernel.toolchain import Toolchain
from kdelta.model import Kernel, Location
from kdelta.paths import cache_dir, expanded
from kdelta.spec.kernels import KernelSpec


class Built(Struct, frozen=True, kw_only=True):
    """What is remembered of a build; ``diff`` is the clean patch that was applied, ``notes`` sentences for people."""

    image_sha256: str
    origin: str
    diff: str = ""
    notes: tuple[str, ...] = ()
    log: str = ""
    vmlinux: str = ""  # where the image itself has no symbols
    vmlinux_sha256: str = ""  # "" in what an older kdelta built
    steps: int = 0
    elapsed_s: float = 0.0
    locations: tuple[Location, ...] = ()  # what the patch changes; () in what an older kdelta built
    left_out: LeftOut = LeftOut()  # of what the patch changes; nothing in what an older kdelta built
    asked: tuple[tuple[str, str], ...] = ()  # see toolchain.Toolchain; () in what an older kdelta built


def root() -> Path:
    """The directory of work trees, build directories and what is remembered."""
    return cache_dir() / "build"


def folder(key: str) -> Path:
    """Where the products of the build ``key`` are."""
    return root() / "products" / key


def recall(key: str, tools: Toolchain | None = None) -> tuple[Built, cache.Stored] | None:
    """The build of ``key`` if its image is still there, intact, and configured as with ``tools`` today."""
    path = folder(key) / "built.json"
    try:
        built = msgspec.json.decode(path.read_bytes(), type=Built)
    except (OSError, msgspec.MsgspecError):
        return None
    stored = cache.get(built.image_sha256)
    if stored is None or not _vmlinux_intact(built):
        return None
    return (built, stored) if tools is None or _suits(built, stored, tools) else None


def logs(image_sha256: str) -> Iterator[str]:
    """What the builds here that made this image printed, as far as their logs are there."""
    for remembered in (root() / "products").glob("*/built.json"):
        try:
            built = msgspec.json.decode(remembered.read_bytes(), type=Built)
            if built.image_sha256 == image_sha256:
                yield Path(built.log).read_text("utf-8", "replace")
        except (OSError, msgspec.MsgspecError):
            continue


def _suits(built: Built, stored: cache.Stored, tools: Toolchain) -> bool:
    """Whether Kconfig would find the same programs today: else baseline and patched differ by more than the patch."""
    if built.asked:
        return built.asked == tools.asked
    return stored.config_text is None or tools.suits(stored.config_text.read_text("utf-8", "replace"))


def _vmlinux_intact(built: Built) -> bool:
    """Whether the uncompressed image of a build is there, as it was made."""
    if not built.vmlinux:
        return True
    try:
        return digests.of_file(Path(built.vmlinux)) == built.vmlinux_sha256
    except OSError:
        return False


def keep(
    key: str,
    name: str,
    made: Products,
    about: str,
    notes: tuple[str, ...],
    locations: tuple[Location, ...],
    left_out: LeftOut,
    asked: tuple[tuple[str, str], ...],
) -> Built:
    """Put the image of the kernel called ``name`` where all are; what belongs to the build stays in its directory."""
    home = folder(key)
    stored = ingest.store(name, made.image.read_bytes(), made.config, origin=about, types=made.types)
    vmlinux, vmlinux_sha256 = "", ""
    if made.image != made.vmlinux:
        vmlinux, content = str(home / "vmlinux"), made.vmlinux.read_bytes()
        vmlinux_sha256 = hashlib.sha256(content).hexdigest()
        cache.write_atomically(home / "vmlinux", content)
    built = Built(
        image_sha256=stored.entry.sha256,
        origin=about,
        diff=str(home / "applied.diff"),
        notes=notes,
        log=str(home / "build.log"),
        vmlinux=vmlinux,
        vmlinux_sha256=vmlinux_sha256,
        steps=made.steps,
        elapsed_s=made.elapsed_s,
        locations=locations,
        left_out=left_out,
        asked=asked,
    )
    cache.write_atomically(home / "built.json", msgspec.json.encode(built))
    return built


def adopt(key: str, built: Built) -> None:
    """Remember a build that another machine made; its files are in ``folder(key)`` and its image in the cache."""
    home = folder(key)
    vmlinux = str(home / "vmlinux") if built.vmlinux else ""
    here = msgspec.structs.replace(built, diff=str(home / "applied.diff"), log=str(home / "build.log"), vmlinux=vmlinux)
    cache.write_atomically(home / "built.json", msgspec.json.encode(here))


def _label(spec: KernelSpec, release: str) -> str:
    """Short and telling: ``6.12.117+my``, ``mybranch``, ``linux-my``."""
    base = release if spec.kind == "src-debian" else spec.short_ref or expanded(spec.target).resolve().name
    return base + "".join(("-" if ref.reverse else "+") + Path(ref.path).stem for ref in whole(spec.patches))


def kernel(spec: KernelSpec, built: Built, stored: cache.Stored) -> Kernel:
    cache.touch(stored, time.time())
    entry = stored.entry
    extracted = str(stored.vmlinux) if stored.vmlinux else ""
    return Kernel(
        label=spec.label or _label(spec, entry.release),
        spec=spec.text,
        release=entry.release,
        arch=entry.arch,
        image_path=str(stored.image),
        image_sha256=entry.sha256,
        vmlinux_path=built.vmlinux or extracted or str(stored.image),
        vmlinux_sha256=built.vmlinux_sha256 or (entry.vmlinux_sha256 if extracted else entry.sha256),
        build_id=entry.build_id,
        cmdline=spec.cmdline,
        config=entry.config,
        origin=built.origin,
    )
