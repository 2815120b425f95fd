# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels as the command line names them: read and refused early, then fetched or built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kdelta.cli._ending import HAD, going_on
from kdelta.cli._say import say
from kdelta.errors import UserError
from kdelta.paths import expanded

if TYPE_CHECKING:
    from kdelta.model import Kernel, Mode, Progress
    from kdelta.spec.kernels import KernelSpec


def named(texts: Sequence[str]) -> list[KernelSpec]:
    """What each of ``texts`` names; nothing is looked at yet. What a version or a package alone was taken for is said.

    Raises:
        UserError: one of them is not a kernel.
    """
    from kdelta.kernel.sources import parse_kernel

    specs = [parse_kernel(text) for text in texts]
    for text, spec in dict(zip(texts, specs, strict=True)).items():  # each once
        if spec.text != text:
            tag = f" (a tag of a git tree is src:TREE@{text})" if spec.kind in ("debian", "range") else ""
            say(f"{text}: taken as {spec.text}{tag}", err=True)
    return specs


def bootable(texts: Sequence[str], refusal: str) -> list[KernelSpec]:
    """``named`` for a command that boots guests.

    Raises:
        UserError: see ``named``; or one of them is the running kernel, with ``refusal`` as the message.
    """
    specs = named(texts)
    if any(spec.kind == "running" for spec in specs):
        raise UserError(refusal)
    return specs


def single(text: str, refusal: str) -> KernelSpec:
    """``named`` for a command that takes one kernel.

    Raises:
        UserError: see ``named``; or it is a range, with ``refusal`` as the message.
    """
    spec = named([text])[0]
    if spec.is_range:
        raise UserError(refusal)
    return spec


def look(specs: Sequence[KernelSpec]) -> None:
    """Read what ``specs`` name on this machine, before anything is fetched or built; see ``kernel.resolve.check``."""
    from kdelta.kernel.resolve import check

    check(specs)


def one_architecture(specs: Sequence[KernelSpec], beside: Sequence[Kernel] = ()) -> None:
    """``look``, for kernels of one experiment; see ``kernel.resolve.one_architecture``."""
    from kdelta.kernel import resolve

    resolve.one_architecture(specs, beside)


def fetched(
    specs: Sequence[KernelSpec], progress: Progress, had: Callable[[Kernel], object] = lambda _: None
) -> tuple[Kernel, ...]:
    """The kernels of ``specs``, ranges expanded, fetched or built; see ``kernel.resolve.resolve_all``."""
    from kdelta.kernel.resolve import resolve_all

    with going_on(HAD):
        return resolve_all(specs, progress, had)


def to_measure(
    specs: Sequence[KernelSpec], progress: Progress, had: Callable[[Kernel], object] = lambda _: None
) -> tuple[Kernel, ...]:
    """As ``fetched``; what a first measurement of them needs is made meanwhile."""
    from kdelta.experiment import ahead

    def each(kernel: Kernel) -> None:
        ahead.begin_reading(kernel)
        had(kernel)

    one_architecture(specs)
    ahead.begin_compiling()
    return fetched(specs, progress, each)


def note_equal(kernels: Sequence[Kernel], mode: Mode, progress: Progress) -> None:
    """Say which kernel is another one again: of times nothing but noise can come of it, of counts not even that."""
    from kdelta.results.remarks import repeated

    comes = "counts repeat, so no noise shows" if mode == "exact" else "only noise is measured"
    for label, first in repeated(kernels).items():
        progress.note(f"{label} is {first} again, the same image and command line: {comes}")


def refuse_without_image(kernels: tuple[Kernel, ...], refusal: str) -> tuple[Kernel, ...]:
    """``kernels``, all of which can be booted.

    Raises:
        UserError: ``refusal``.
    """
    if any(not kernel.image_path for kernel in kernels):
        raise UserError(refusal)
    return kernels


def of_one_tree(good: str, bad: str) -> tuple[KernelSpec, KernelSpec]:
    """GOOD and BAD as kernels of one tree that differ in nothing but the ref; the tree's path is whole.

    Raises:
        UserError: they are not such kernels.
    """

    import msgspec

    from kdelta.kernel.sources import parse_kernel

    ends = []
    for text, spec in zip((good, bad), map(parse_kernel, (good, bad)), strict=True):
        if spec.kind != "src":
            sweep = f"; steps between releases: kdelta sweep {good} {bad}" if spec.kind == "debian" else ""
            raise UserError(f"bisect needs commits of a git tree, as in src:.@v6.9; {text!r} is not one{sweep}")
        target = str(expanded(spec.target).resolve())
        ends.append(msgspec.structs.replace(spec, target=target, ref=spec.ref or "HEAD", label=""))
    plain = [msgspec.structs.replace(spec, text="", ref="") for spec in ends]
    if plain[0] != plain[1]:
        raise UserError(f"{good!r} and {bad!r} must name one tree, with the same patches and options")
    return ends[0], ends[1]
