# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels from Debian's archive: ``debian:VERSION[/FLAVOUR]``, and ranges of them."""

from __future__ import annotations

import re

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import debian
from kdelta.kernel.debver import DebianKernel
from kdelta.kernel.sources._source import Source, kernel_of
from kdelta.model import Kernel
from kdelta.model.progress import Progress
from kdelta.spec.kernels import ARCHES, KernelSpec, joined, version

_NEWEST = "9999.0"  # the end of a range without one
_PATCHED = re.compile(
    r"^[^/+]*[+-](~?\.{0,2}/|https?://|.*\.(patch|diff|mbox|eml)$)"
)  # what can only be meant as a patch
_FLAVOUR = re.compile(r"^[a-z0-9][a-z0-9-]{0,63}$")


def _parse(spec: KernelSpec, body: str) -> KernelSpec:
    if _PATCHED.match(body):
        built = joined(spec, f"src:debian:{body}")
        raise UserError(f"kernel {spec.text!r}: a patch needs a kernel that is built from source: {built}")
    named, slash, flavour = body.partition("/")
    if flavour in ARCHES:
        other = f",arch={ARCHES[flavour]}" if ARCHES[flavour] != "x86_64" else ""
        raise UserError(f"kernel {spec.text!r}: {flavour} is an architecture, no flavour: debian:{named}{other}")
    if slash and not _FLAVOUR.match(flavour):
        raise UserError(f"kernel {spec.text!r}: {flavour!r} is not a flavour such as cloud or rt")
    if ".." in named:
        first, _, last = named.partition("..")
        ends = version(spec.text, first), version(spec.text, last) if last else _NEWEST
        return replace(spec, kind="range", target=ends[0], last=ends[1], flavour=flavour)
    return replace(spec, kind="debian", target=version(spec.text, named), flavour=flavour)


def _write(spec: KernelSpec) -> str:
    last = f"..{'' if spec.last == _NEWEST else spec.last}" if spec.is_range else ""
    return f"debian:{spec.target}{last}{f'/{spec.flavour}' if spec.flavour else ''}"


def _label(found: DebianKernel) -> str:
    """The upstream version, since 6.1.0-56 says less than 6.1.192."""
    return found.upstream + (f"-{found.flavour}" if found.flavour else "")


def _expand(spec: KernelSpec, progress: Progress) -> list[KernelSpec]:
    if not spec.is_range:
        debian.find(spec.target, spec.flavour, spec.arch, progress)
        return [spec]
    found = debian.find_range(spec.target, spec.last, spec.flavour, spec.arch, progress)
    return [
        replace(
            spec,
            kind="debian",
            target=one.package_version,
            last="",
            label=f"{spec.label}-{_label(one)}" if spec.label else "",
        )
        for one in found
    ]


def _resolve(spec: KernelSpec, progress: Progress) -> Kernel:
    found = debian.find(spec.target, spec.flavour, spec.arch, progress)
    return kernel_of(spec, debian.fetch(found, progress), _label(found))


SOURCE = Source(
    prefix="debian",
    forms="debian:VERSION[/FLAVOUR], debian:FIRST..[LAST]",
    about="Debian's archive: the newest of a series, one version, or a range of series",
    kinds=("debian", "range"),
    parse=_parse,
    write=_write,
    resolve=_resolve,
    expand=_expand,
)
