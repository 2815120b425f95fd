# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of one experiment told apart by their labels, as shortly as what differs between them can be said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kdelta.errors import UserError
from kdelta.kernel import config_fragment
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel
from kdelta.spec.kernels import KernelSpec

Paths = Callable[[KernelSpec], tuple[str, ...]]


def _differing(kernel: Kernel, others: Sequence[Kernel]) -> str:
    """The words of a command line that not all kernels of the same label have."""
    words = [set(other.cmdline.split()) for other in others]
    return " ".join(word for word in kernel.cmdline.split() if not all(word in each for each in words))


def _apart(own: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The end of a path, given in parts, that no other path ends in: with one folder at least; () where none is."""
    for size in range(2, len(own) + 1) if others else ():
        if all(parts[-size:] != own[-size:] for parts in others):
            return own[-size:]
    return ()


def _folder(parts: tuple[str, ...]) -> str:
    """``new/bzImage``, or ``linux/…/bzImage`` where the folder that tells files apart lies higher."""
    return f"{parts[0]}/{'…/' if len(parts) > 2 else ''}{parts[-1]}"


def _place(kernel: Kernel, alike: Sequence[Kernel]) -> str:
    """The label of an image given as a file whose name others have too, with its folder; "" where none differs."""
    own = _parts(kernel)
    end = _apart(own, [parts for one in alike if (parts := _parts(one)) != own])
    return _folder(end) if end else ""


def _parts(kernel: Kernel) -> tuple[str, ...]:
    """The path of an image given as a file, in parts; () of any other."""
    return Path(kernel.origin.removeprefix("file ")).parts if kernel.origin.startswith("file ") else ()


def _asked(kernel: Kernel) -> KernelSpec | None:
    """What was asked for; None of a name that kdelta made (of a part of a series)."""
    try:
        return parse_kernel(kernel.spec)
    except UserError:
        return None


def _built(spec: KernelSpec | None) -> bool:
    return spec is not None and spec.kind in {"src", "src-debian"}


def _patches(label: str, spec: KernelSpec, others: Sequence[KernelSpec]) -> str:
    """``label``, of a kernel built here, with the folders of its patches where others' have the same names."""
    base, *names = label.split("+")
    paths = [Path(ref.path).absolute().parts for ref in spec.patches]
    if len(names) != len(paths):
        return label  # a patch that is taken out, or several in one file's name
    for at, own in enumerate(paths):
        of_others = [Path(one.patches[at].path).absolute().parts for one in others if at < len(one.patches)]
        if end := _apart(own, [path for path in of_others if path != own]):
            names[at] = _folder((*end[:-1], names[at]))
    return "+".join((base, *names))


def _config(text: str) -> str:
    """A config as part of a label: the name of its file, and the first of its options."""
    file, words = config_fragment.parts(text)
    options = words.split()
    names = [*([Path(file).name] if file else []), *options[:1]]
    return " ".join([*names, *(["…"] if len(options) > 1 else [])])


def _source(label: str, kernel: Kernel, alike: Sequence[Kernel]) -> str:
    """``label`` of a kernel built here, with what its source and its config have that others have not."""
    spec, others = _asked(kernel), [_asked(one) for one in alike]
    if spec is None or not _built(spec):
        return label
    label = _patches(label, spec, [one for one in others if one is not None and _built(one)])
    if any(one is not None and not _built(one) for one in others):
        label += "-src"
    if spec.config and any(one is None or one.config != spec.config for one in others):
        label += f" {_config(spec.config)}"
    return label


def unique(kernels: Sequence[Kernel], chosen: frozenset[int] = frozenset()) -> tuple[Kernel, ...]:
    """Kernels with labels made unique: by the folder of a file or patch, by whether they were built here and with what
    config, by architecture, by the words of the command line that differ, else by ``#2``.

    The labels of the kernels at the indexes ``chosen`` were given by the user and stay. Pure.
    """
    taken = {kernels[index].label for index in chosen}
    result: list[Kernel] = []
    for index, kernel in enumerate(kernels):
        label = kernel.label
        if index not in chosen:
            alike = [other for other in kernels if other.label == label]
            label = _source(_place(kernel, alike) or label, kernel, alike) if len(alike) > 1 else label
            if len({other.arch for other in alike}) > 1:
                label += f"-{kernel.arch}"
            if words := _differing(kernel, alike):
                label += f" {words}"
            base, number = label, 1
            while label in taken:
                number += 1
                label = f"{base}#{number}"
            taken.add(label)
        result.append(msgspec.structs.replace(kernel, label=label))
    return tuple(result)
