# SPDX-License-Identifier: GPL-2.0-or-later
"""A bound on scaling: one cache line is with one CPU at a time, so what moves it is the serial part of an operation.

With N CPUs at the same operations, the line that moves T times an operation is busy for T transfers of each of them,
whichever CPU does it. However many CPUs there are, they finish no more operations in the time of one transfer than 1/T
(the utilisation law: Denning & Buzen, ACM Computing Surveys 10, 1978). One CPU alone does an operation in its I
instructions. So N CPUs do at most the work of I / (T c) CPUs, where a transfer takes as long as c instructions. It is
a bound, not a forecast: other lines, the lock's own critical section and memory make it worse. Mutexes' critical
sections are counted on one CPU: ``kdelta trace --what hold``.
"""

from __future__ import annotations

from msgspec import Struct

from kdelta.attribution import callers
from kdelta.model import Profile

TRANSFER_INSTRUCTIONS = 100  # about 30 to 60 ns between cores of one socket, at 2 to 3 instructions a ns


class Serial(Struct, frozen=True, kw_only=True):
    """The line that bounds scaling most. ``transfers`` and ``instructions`` are per operation, the latter without
    those in slow paths of locks; ``cpus``: at most the work of so many CPUs is done, however many there are."""

    line: str
    transfers: float
    instructions: float
    cpus: float

    @property
    def every(self) -> float:
        """Instructions' time of the line's transfers in one operation: no operation is done in less."""
        return self.transfers * TRANSFER_INSTRUCTIONS


def bound(profile: Profile) -> Serial | None:
    """The bound of a case on several CPUs; None where no single line moves.

    Names that stand for several lines do not count: each could be with another CPU.
    """
    single = [line for line in profile.moved if line.lines == 1 and line.cpus > 1 and line.transfers]
    if not single:
        return None
    hottest = max(single, key=lambda line: (line.transfers, line.name))
    waiting = sum(counts[0] for name, counts in profile.functions.items() if callers.waits(name))
    instructions = (profile.total[0] - waiting) / profile.ops
    transfers = hottest.transfers / profile.ops
    return Serial(
        line=hottest.name,
        transfers=transfers,
        instructions=instructions,
        cpus=instructions / (transfers * TRANSFER_INSTRUCTIONS),
    )
