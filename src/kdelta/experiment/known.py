# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of a kernel when its counts are read: functions, entries of system calls, its data."""

from __future__ import annotations

from collections.abc import Callable

from kdelta.attribution import callers, entries
from kdelta.attribution.exact import Names
from kdelta.kernel import calls, naming, types, variables
from kdelta.kernel.symbols import NoSymbols
from kdelta.model import Kernel

NamesOf = Callable[[Kernel], Names]


def _names(kernel: Kernel, several_cpus: bool) -> Names:
    table = naming.load(kernel)
    if isinstance(table, NoSymbols):
        return Names()
    graph = calls.load(kernel, table)
    code = calls.Code(table, None if isinstance(graph, NoSymbols) else graph)
    if several_cpus:
        data, described = variables.load(kernel, table), types.load(kernel)
        slabs = types.slab_layout(data, described, kernel.release)
        facts = callers.facts(table, slabs.words() if slabs is not None else ())
        return Names(functions=code, variables=data, types=described, facts=facts)
    return Names(functions=code, entries=entries.find(table))


def known(several_cpus: bool = False) -> NamesOf:
    """What is known of a kernel, looked up once for each image: its functions and the entries of its system calls.

    For guests of several CPUs its data in place of the entries: which call moves a line is not told.
    """
    found: dict[str, Names] = {}

    def of(kernel: Kernel) -> Names:
        if kernel.image_sha256 not in found:
            found[kernel.image_sha256] = _names(kernel, several_cpus)
        return found[kernel.image_sha256]

    return of
