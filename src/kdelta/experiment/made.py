# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases that use what a changed function makes. It ran in their set-up, which no map sees.

A pipe with more buffers is dearer to make, and its readers and writers sleep less: the map knows who makes pipes alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from kdelta.attribution.changes import Change
from kdelta.attribution.disassembly import Image
from kdelta.attribution.reach import Reach
from kdelta.kernel import directories, source
from kdelta.kernel.spelling import fold
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec

_ALLOCATES = re.compile(r"_*(k(v?[mz]|vz|mem_cache_)alloc|vmalloc|pcpu_alloc|(alloc|get_free)_pages?\b)")


def called(image: Image, function: str) -> frozenset[str]:
    """Whom a function calls, those too that so many call that a graph of calls leaves them out."""
    code = (one for part in image.sources.get(function, ()) for one in image.instructions(part))
    return frozenset(fold(one.target) for one in code if one.calls and one.target)


def users(
    changes: Sequence[Change],
    reach: Reach,
    calls: Callable[[str], Iterable[str]],
    specs: Sequence[KernelSpec],
    among: Collection[str],
    most: int,
) -> list[str]:
    """At most ``most`` cases ``among`` some that spend most in the files of changed functions that allocate.

    Only of functions that some case executes; [] where none of these allocates, or the objects are not here.
    """
    hosts = {host for change in changes for host in change.hosts if any(host in row.functions for row in reach.rows)}
    makers = {host for host in hosts if any(map(_ALLOCATES.match, calls(host)))}
    folder = source.objects(specs[0]) if makers and specs and specs[0].kind in BUILT_KINDS else None
    if folder is None or most <= 0:
        return []
    own = directories.beside(folder, makers)
    shares = {row.case: row.share(own) for row in reach.rows if row.case in among}
    return sorted((case for case in shares if shares[case]), key=lambda case: (-shares[case], case))[:most]
