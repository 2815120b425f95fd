# SPDX-License-Identifier: GPL-2.0-or-later
"""What a ``src:`` kernel is to be built from: its source, with its patches and its config looked at beforehand."""

from __future__ import annotations

import re

from kdelta.errors import UserError
from kdelta.kernel import config_fragment, debian, diff
from kdelta.kernel.origin import Origin, from_path, look, tarball
from kdelta.kernel.steps import Step, load_patches
from kdelta.model import Progress
from kdelta.spec.kernels import KernelSpec


def check(spec: KernelSpec) -> None:
    """Read what ``spec`` names on this machine: its patches, its config fragment, its tree.

    Raises:
        UserError: one of them is missing or is not what it should be.
    """
    for step in load_patches(spec.patches):
        diff.parse(step.mail)
    config_fragment.check(spec.config)
    if spec.kind == "src":
        look(spec.target, spec.ref)


def origin_of(spec: KernelSpec, progress: Progress) -> Origin:
    """Where the source that ``spec`` names comes from, without its patches."""
    if spec.kind == "src":
        return from_path(spec.target, spec.ref)
    if spec.kind != "src-debian":
        raise UserError(f"kernel {spec.text!r}: not a source; write src:TREE or src:debian:VERSION")
    path = debian.fetch_source(spec.target, progress)
    name = path.name.split(".tar")[0].removeprefix("linux-source-")
    major, minor = name.split(".")[:2]
    version = (int(major), int(re.split(r"\D", minor)[0]))
    return tarball(
        path, version=version, key=f"debian-{re.sub(r'[^A-Za-z0-9.-]', '_', name)}", title=f"Debian linux-source {name}"
    )


def source_of(spec: KernelSpec, progress: Progress) -> tuple[Origin, tuple[Step, ...]]:
    """The source that ``spec`` names, fetched where it must be, and its patches.

    Raises:
        UserError: no such tree, ref or patch. HostError: the source cannot be fetched.
    """
    steps = load_patches(spec.patches)
    return origin_of(spec, progress), steps
