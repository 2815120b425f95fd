# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between two kernels in machine code and data, with who calls what is new in the second one.

What is compared once of two kernels that were built here is kept: of the same two images the same code finds the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import changes, images, lined
from kdelta.attribution.changes import Changes
from kdelta.attribution.code import CodeDiff
from kdelta.errors import KdeltaError
from kdelta.kernel import cache as kept
from kdelta.kernel import calls, changed, naming
from kdelta.kernel.calls import CallGraph
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.symbols import NoSymbols
from kdelta.model import Kernel
from kdelta.paths import cache_dir
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec

_PACKAGE = Path(__file__).parents[1]
_COMPARING = ("attribution", "kernel")  # the packages that read and compare machine code


class _Kept(Struct, frozen=True, kw_only=True):
    """What was found of two images."""

    changes: Changes
    code: CodeDiff


def between(before: Kernel, after: Kernel) -> Changes:
    """All that differs in ``after``.

    Raises:
        UserError: machine code that cannot be read. HostError: the cache cannot be written.
    """
    path = _path(before, after)
    known = _recall(path)
    return known.changes if known is not None else _found(before, after, path)


def code_between(before: Kernel, after: Kernel) -> CodeDiff:
    """The functions that differ in ``after``, without its data.

    Raises:
        UserError: machine code that cannot be read.
    """
    known = _recall(_path(before, after))
    return known.code if known is not None else images.compare(images.image_of(before), images.image_of(after))[0]


def _found(before: Kernel, after: Kernel, path: Path | None) -> Changes:
    images_of = images.alike(images.image_of(before), images.image_of(after))

    def callers(name: str) -> Iterable[str]:  # of functions that are new, or that RCU may call
        graph = graph_of(after)
        return graph.callers(name) if graph else ()

    diff, whole = images.compare(*images_of)
    found = changes.find(*images_of, diff, callers, sizes_only=not whole)
    told = not any(one.kind == "new" for one in found.changes) or graph_of(after) is not None
    if path is not None and whole and told:  # else it hangs on names and calls that may be known later
        kept.write_checked(path, msgspec.msgpack.encode(_Kept(changes=found, code=diff)))
    return found


def without_lines(found: Changes, kernels: Sequence[Kernel], specs: Sequence[KernelSpec]) -> Changes:
    """``found`` without the functions of which nothing but numbers of lines differ (``attribution/lined.py``)."""
    names = [one.name for one in found.changes if one.kind == "code" and not any(one.namesakes)]
    if not names or found.whole or found.sizes_only or not len(kernels) == len(specs) == 2 or specs[0].patches:
        return found
    try:
        by = lined.moves(line for lines in changed.texts(specs) for line in lines)
        before, after = images.alike(*(images.image_of(kernel) for kernel in kernels))
    except (KdeltaError, OSError):  # a tree that moved on
        return found
    gone = lined.alone(before, after, names, by)
    kept = tuple(one for one in found.changes if one.kind != "code" or one.name not in gone)
    return replace(found, changes=kept, lined=tuple(sorted(gone)))


def _path(before: Kernel, after: Kernel) -> Path | None:
    """Where that of two kernels is kept; None where they were not built here: their names are not in the image."""
    kinds = {parse_kernel(one.spec.partition("#")[0]).kind for one in (before, after)}
    sums = [one.vmlinux_sha256 for one in (before, after)]
    if not all(sums) or not kinds <= {*BUILT_KINDS}:
        return None
    name = hashlib.sha256("\0".join((*sums, _own_code())).encode()).hexdigest()[:40]
    return cache_dir() / "symbols" / f"{name}.changes.msgpack"


@cache
def _own_code() -> str:
    """A digest of all code that reads and compares: of another one nothing is believed."""
    digest = hashlib.sha256()
    for path in sorted(path for package in _COMPARING for path in (_PACKAGE / package).rglob("*.py")):
        digest.update(f"{path.relative_to(_PACKAGE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _recall(path: Path | None) -> _Kept | None:
    try:
        return None if path is None else msgspec.msgpack.decode(kept.read_checked(path) or b"", type=_Kept)
    except msgspec.MsgspecError:
        return None  # never made, or damaged: made anew


def graph_of(kernel: Kernel) -> CallGraph | None:
    """Who calls whom in a kernel; None where that cannot be told."""
    table = naming.load(kernel)
    graph = table if isinstance(table, NoSymbols) else calls.load(kernel, table)
    return None if isinstance(graph, NoSymbols) else graph
