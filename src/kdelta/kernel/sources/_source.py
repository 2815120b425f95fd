# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kind of kernel source is: the interface that every file of this directory gives, and what they share."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.kernel import cache
from kdelta.model import Kernel
from kdelta.model.progress import Progress
from kdelta.spec.kernels import KernelSpec

_DISTRIBUTION = re.compile(
    r"(\+deb[\d.]+(\+\d+)?)?-(amd64|arm64)$|\+deb[\d.]+(\+\d+)?(?=-)|-(amd64|arm64)(?=-\d+k$)|\.(x86_64|aarch64)$"
)


def _nothing(_: KernelSpec) -> None:
    """There is no file to look at."""


def _asked(spec: KernelSpec) -> str:
    """It is fetched or built for the architecture that is asked for."""
    return spec.arch


def _alone(spec: KernelSpec, _: Progress) -> list[KernelSpec]:
    """It names one kernel."""
    return [spec]


class Source(Struct, frozen=True, kw_only=True):
    """One way to name a kernel. Every function raises UserError for what the user must mend, HostError for the rest.

    ``prefix`` stands before the colon ("" for a name without one), ``forms`` is how it is written, in one line for
    help and messages, ``about`` what it is, in a few words. ``kinds`` are the values of ``KernelSpec.kind`` that it
    makes and answers for.
    """

    prefix: str
    forms: str
    about: str
    kinds: tuple[str, ...]
    parse: Callable[[KernelSpec, str], KernelSpec]
    """(spec without a kind, what follows the prefix) -> spec. Pure."""
    write: Callable[[KernelSpec], str]
    """spec -> a text that ``parse`` reads as it, with the prefix, also of one version out of a range. Pure."""
    resolve: Callable[[KernelSpec, Progress], Kernel]
    """Fetch, unpack or build the one kernel that a spec names."""
    check: Callable[[KernelSpec], None] = _nothing
    """Read all local inputs of a spec, before anything is fetched, unpacked or built. Takes less than a second."""
    arch: Callable[[KernelSpec], str] = _asked
    """Its architecture, before anything is fetched, unpacked or built; "" where that is not known."""
    expand: Callable[[KernelSpec, Progress], list[KernelSpec]] = _alone
    """The single kernels of a range, oldest first; refuses what an index shows to be absent. Fetches no kernel."""
    builds: bool = False  # whether config= means something
    lies_here: bool = False  # as a file, which may turn out to be no kernel: read before others are fetched or built
    word: bool = False  # the prefix stands alone, without a colon


def short(release: str) -> str:
    """A readable label from a release: ``6.12.117+deb13-cloud-amd64`` -> ``6.12.117-cloud``."""
    return _DISTRIBUTION.sub("", _DISTRIBUTION.sub("", release)) or release


def kernel_of(spec: KernelSpec, stored: cache.Stored, label: str) -> Kernel:
    """The kernel of a cache entry as ``spec`` asks for it; ``label`` where the user gave none.

    Raises:
        UserError: the image is for another architecture than the one asked for.
    """
    entry = stored.entry
    vmlinux = stored.image if entry.form == "vmlinux" else stored.vmlinux
    if "arch=" in spec.text and spec.arch != entry.arch:
        raise UserError(f"kernel {spec.text!r}: the image is for {entry.arch}, not {spec.arch}")
    cache.touch(stored, time.time())
    return Kernel(
        label=spec.label or label,
        spec=spec.text,
        release=entry.release,
        arch=entry.arch,
        image_path=str(stored.image),
        image_sha256=entry.sha256,
        vmlinux_path=str(vmlinux) if vmlinux else None,
        vmlinux_sha256=entry.sha256 if vmlinux == stored.image else entry.vmlinux_sha256,
        build_id=entry.build_id,
        cmdline=spec.cmdline,
        config=dict(entry.config),
        origin=entry.origin,
    )
