# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels as named by a user (spec.KernelSpec) to kernels as used (model.Kernel)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kdelta.errors import UserError
from kdelta.kernel.labels import unique
from kdelta.kernel.sources import source_of
from kdelta.model import Kernel
from kdelta.model.progress import Progress, Quiet
from kdelta.spec.kernels import KernelSpec


def check(specs: Sequence[KernelSpec]) -> None:
    """Look at all that ``specs`` name on this machine, before anything is fetched, unpacked or built.

    Raises:
        UserError: a file that is missing or is not what it should be, or an option that does not apply.
        HostError: a program that reads it is missing.
    """
    for spec in specs:
        source = source_of(spec)
        source.check(spec)
        if spec.config and not source.builds:
            raise UserError(
                f"kernel {spec.text!r}: config= needs a kernel that is built here, as src:TREE or src:debian:VERSION"
            )


def refuse_architectures(named: Iterable[tuple[str, str]]) -> None:
    """Names with architectures, of kernels of one experiment. Pure.

    Raises:
        UserError: there are several.
    """
    first: dict[str, str] = {}
    for name, arch in named:
        first.setdefault(arch, name)
    if len(first) > 1:
        (one, this), (other, that) = list(first.items())[:2]
        raise UserError(
            "kernels of different architectures cannot be compared, their instruction sets differ: "
            f"{this} is {one}, {that} {other}"
        )


def one_architecture(specs: Sequence[KernelSpec], beside: Sequence[Kernel] = ()) -> None:
    """Look at what ``specs`` name, as ``check``, and whether they can be in one experiment, with kernels ``beside``.

    Raises:
        UserError: see ``check``; or they are of several architectures. HostError: see ``check``.
    """
    check(specs)
    asked = [(spec.label or spec.text, arch) for spec in specs if (arch := source_of(spec).arch(spec))]
    refuse_architectures([*((kernel.label, kernel.arch) for kernel in beside), *asked])


def resolve(spec: KernelSpec, progress: Progress | None = None) -> Kernel:
    """The kernel that ``spec`` names, fetched or built where it must be.

    Raises:
        UserError: there is no such kernel, it is none, or an option does not apply to it.
        HostError: fetching, building or storing it failed.
    """
    check([spec])
    if spec.is_range:
        raise UserError(f"kernel {spec.text!r}: a range is several kernels; name one of them, or use kdelta sweep")
    return source_of(spec).resolve(spec, progress or Quiet())


def expand(spec: KernelSpec, progress: Progress) -> list[KernelSpec]:
    """``spec`` itself, or the single kernels of a range, oldest first; nothing is fetched yet but an index.

    Raises:
        UserError: the range holds no kernel, the archive has no such kernel, or an option does not apply to it.
        HostError: the archive's index cannot be had.
    """
    check([spec])
    return source_of(spec).expand(spec, progress)


def resolve_all(
    specs: Sequence[KernelSpec], progress: Progress | None = None, had: Callable[[Kernel], object] = lambda _: None
) -> tuple[Kernel, ...]:
    """All kernels of ``specs`` in order, ranges expanded to the newest of each series, labels unique.

    What lies on this machine is read before anything is fetched or built. ``had`` gets each kernel as soon as it is
    there; its label may still become a longer one.

    Raises:
        UserError: see ``resolve``; also a label given twice.
        HostError: see ``resolve``.
    """
    said = progress or Quiet()
    labels_differ(specs)
    check(specs)
    singles = [single for spec in specs for single in expand(spec, said)]
    if any(source_of(single).builds for single in singles):
        from kdelta.kernel.source import refuse_misfits

        refuse_misfits(singles, said)
    found: dict[int, Kernel] = {}
    for done, index in enumerate(sorted(range(len(singles)), key=lambda i: not source_of(singles[i]).lies_here)):
        single = singles[index]
        said.step(f"kernel {single.label or single.target or single.kind}", done, len(singles))
        found[index] = resolve(single, said)
        had(found[index])
    kernels = [found[index] for index in range(len(singles))]
    return unique(kernels, frozenset(i for i, single in enumerate(singles) if single.label and single in specs))


def labels_differ(specs: Sequence[KernelSpec]) -> None:
    """Raises:
    UserError: a label is given to several kernels.
    """
    named = [spec.label for spec in specs if spec.label]
    for label in named:
        if named.count(label) > 1:
            raise UserError(f"the label {label}= is given to {named.count(label)} kernels; labels must differ")
