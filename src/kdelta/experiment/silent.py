# SPDX-License-Identifier: GPL-2.0-or-later
"""What the atlas knows (``attribution/atlas.py``): changes of drivers that no shipped case executes, where nothing is
counted, and cases that execute what differs on other kernels than this one.

In any doubt the kernel's own map is asked: another directory, a header, a Kconfig or Makefile, a command line or
config of the user's own, code that differs outside of the files that a patch touches, a release that the atlas
does not cover, a function of these files (or who calls one) that any case executes on any of its kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kdelta.attribution import atlas
from kdelta.attribution.atlas import Atlas
from kdelta.attribution.changes import Changes
from kdelta.kernel import changed, directories, source
from kdelta.kernel.calls import CallGraph
from kdelta.model import Case, Kernel, MachineOptions
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec


def told(
    found: Changes,
    kernels: Sequence[Kernel],
    specs: Sequence[KernelSpec],
    machine: MachineOptions,
    graph: CallGraph | None,
) -> Atlas | None:
    """The atlas where it says that none of its cases executes what differs, None where it cannot.

    ``graph`` are the calls of the first kernel.

    Raises:
        HostError: git fails, or an object of the build cannot be read.
    """
    if graph is None or found.whole or found.boot_patched or found.sizes_only or machine != _plain(machine):
        return None
    known = atlas.shipped()
    alike = len({(spec.kind, spec.target, spec.arch) for spec in specs}) == 1
    usual = all(spec.kind in BUILT_KINDS and not (spec.config or spec.cmdline) for spec in specs)
    if not alike or not usual or kernels[0].arch != "x86_64" or not known.covers(kernels[0].release):
        return None
    folder = source.objects(specs[0])
    paths = touched(specs)
    if folder is None or not paths or not all(map(atlas.answers_for, paths)):
        return None
    return known if _silent(known, found, folder, paths, graph) else None


def rarely(found: Changes, kernel: Kernel, away: Mapping[str, Case]) -> dict[str, Case]:
    """What differs, each with a case that executes it where the kernel can run that.

    ``away`` are the cases that this ``kernel`` cannot.
    """
    if kernel.arch != "x86_64" or found.whole or not away:
        return {}
    named = atlas.shipped().rare
    pairs = [(one.name, named.get(host, "")) for one in found.changes if not one.in_no_case for host in one.hosts]
    return {name: away[case] for name, case in pairs if case in away}


def _plain(machine: MachineOptions) -> MachineOptions:
    """One CPU and no features of the user's own; memory and QEMU's path decide no driver."""
    return MachineOptions(memory_mib=machine.memory_mib, qemu=machine.qemu, kvm=machine.kvm)


def touched(specs: Sequence[KernelSpec]) -> set[str]:
    """All files that the patches change; between commits those that git names."""
    paths = {path for spec in specs for path in source.touched(spec)}
    for spec in specs[1:]:
        if not spec.patches:
            paths |= {one.path for one in changed.between(specs[0], spec)}
    return paths


def _silent(known: Atlas, found: Changes, folder: Path, paths: set[str], graph: CallGraph) -> bool:
    own = directories.functions_of(folder, paths)
    for change in found.changes:
        if change.by_pointer or not (change.in_no_case or own.issuperset(change.hosts)):
            return False
    outside = {caller for name in own for caller in graph.callers(name)} - own
    return known.silent(own, outside)
