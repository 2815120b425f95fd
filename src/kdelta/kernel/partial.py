# SPDX-License-Identifier: GPL-2.0-or-later
"""A list of kernels of which some may not be had: those that can be fetched or built, and why the others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.errors import HostError, KdeltaError
from kdelta.kernel import debver
from kdelta.kernel.build import fault_of_source
from kdelta.kernel.labels import unique
from kdelta.kernel.resolve import check, expand, labels_differ, resolve
from kdelta.kernel.sources import written
from kdelta.model import Gap, Kernel, Progress
from kdelta.spec.kernels import KernelSpec


def name_of(spec: KernelSpec) -> str:
    """What to call a kernel of which nothing but its name is known. Pure."""
    if spec.label:
        return spec.label
    if spec.is_range:
        name = spec.text.partition(",")[0].partition(":")[2]  # as it was named: its end may be open
    elif spec.kind in ("debian", "src-debian"):
        name = debver.upstream_of(spec.target) + (f"-{spec.flavour}" if spec.flavour else "")
    else:
        name = spec.short_ref or Path(spec.target).name or spec.target
    return name + "".join(("-" if ref.reverse else "+") + Path(ref.path).stem for ref in spec.patches)


def absent(spec: KernelSpec, error: HostError) -> Gap:
    """``spec`` as a gap because of ``error``. A full disk says nothing of the version that was being built. Pure."""
    if line := fault_of_source(error):
        return Gap(label=name_of(spec), spec=written(spec), why=f"does not build: {line}", by_host=False)
    return Gap(label=name_of(spec), spec=written(spec), why=str(error), by_host=True)


def _singles(spec: KernelSpec, progress: Progress) -> list[KernelSpec | Gap]:
    try:
        return [*expand(spec, progress)]
    except HostError as error:
        return [absent(spec, error)]


def resolve_each(
    specs: Sequence[KernelSpec], progress: Progress, unbuilt: Mapping[KernelSpec, KdeltaError] | None = None
) -> tuple[Kernel | Gap, ...]:
    """Every kernel of ``specs`` in order, ranges expanded, labels of kernels unique; one that cannot be had is a Gap.

    What is misspelt is refused before anything is fetched or built. ``unbuilt``: what others could not build, and why.

    Raises:
        UserError: there is no such kernel, it is none, or an option does not apply to it; a label given twice.
    """
    labels_differ(specs)
    check(specs)
    todo = [single for spec in specs for single in _singles(spec, progress)]
    found: list[Kernel | Gap] = []
    for done, one in enumerate(todo):
        if isinstance(one, KernelSpec):
            progress.step(f"kernel {name_of(one)}", done, len(todo))
            try:
                if unbuilt and one in unbuilt:
                    raise unbuilt[one]
                found.append(resolve(one, progress))
            except HostError as error:
                progress.step(f"{name_of(one)} is left out: {error}")
                found.append(absent(one, error))
        else:
            progress.step(f"{one.label} is left out: {one.why}")
            found.append(one)
    return labelled(found, frozenset(i for i, one in enumerate(todo) if one.label and one in specs))


def labelled(versions: Sequence[Kernel | Gap], chosen: frozenset[int]) -> tuple[Kernel | Gap, ...]:
    """``versions`` with labels made unique; those at the indexes ``chosen`` stay. Pure."""
    places = [index for index, one in enumerate(versions) if isinstance(one, Kernel)]
    kernels = [one for one in versions if isinstance(one, Kernel)]
    named = unique(kernels, frozenset(at for at, index in enumerate(places) if index in chosen))
    result = list(versions)
    for index, kernel in zip(places, named, strict=True):
        result[index] = kernel
    taken = {kernel.label for kernel in named}
    for index, one in enumerate(result):
        if isinstance(one, Gap):
            label, number = one.label, 1
            while label in taken:
                number += 1
                label = f"{one.label}#{number}"
            taken.add(label)
            result[index] = msgspec.structs.replace(one, label=label)
    return tuple(result)
