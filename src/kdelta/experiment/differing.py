# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between two kernels in machine code and data, with who calls what is new in the second one."""

from __future__ import annotations

from collections.abc import Iterable

from kdelta.attribution import changes, images
from kdelta.attribution.changes import Changes
from kdelta.kernel import calls, naming
from kdelta.kernel.calls import CallGraph
from kdelta.kernel.symbols import NoSymbols
from kdelta.model import Kernel


def between(before: Kernel, after: Kernel) -> Changes:
    """All that differs in ``after``.

    Raises:
        UserError: machine code that cannot be read.
    """
    images_of = images.image_of(before), images.image_of(after)

    def callers(name: str) -> Iterable[str]:  # asked of new functions alone
        graph = graph_of(after)
        return graph.callers(name) if graph else ()

    diff, whole = images.compare(*images_of)
    return changes.find(*images_of, diff, callers, sizes_only=not whole)


def graph_of(kernel: Kernel) -> CallGraph | None:
    """Who calls whom in a kernel; None where that cannot be told."""
    table = naming.load(kernel)
    graph = table if isinstance(table, NoSymbols) else calls.load(kernel, table)
    return None if isinstance(graph, NoSymbols) else graph
