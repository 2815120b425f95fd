# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether operations wait in a loop until a clock says so, which a count of instructions takes for work. Pure.

A patch that has getrusage(2) wait for 20 us was "+1972.57 %, because delay_tsc is new (+19862)": as many as the
emulator executes in 20 us. On a real CPU it is another number, and the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.model import CellResult, Profile
from kdelta.results.idling import spent
from kdelta.results.warnings import BusyWaits
from kdelta.verdict.work import INSTRUCTIONS

# arch/x86/lib/delay.c and arch/arm64/lib/delay.c: udelay(), ndelay() and mdelay() come to these.
_LOOPS = ("delay_tsc", "delay_loop", "delay_halt", "delay_halt_mwaitx", "delay_halt_tpause", "__delay")
_LEAST = 10.0  # instructions an operation


def told(row: CellResult, before: Sequence[Profile], after: Sequence[Profile]) -> CellResult:
    """The ``row`` of instructions; with a warning where under all seeds it waits longer by the clock, or shorter.

    ``before`` and ``after`` are the profiles of all seeds of its two kernels.
    """
    if row.metric != INSTRUCTIONS or row.state != "ok" or not before or not after:
        return row
    old, new = ([spent(one, _LOOPS) for one in side] for side in (before, after))
    less, more = (old, new) if max(old) <= min(new) else (new, old)
    if min(more) - max(less) < _LEAST:
        return row
    change = (sum(more) / len(more) - sum(less) / len(less)) * (1 if more is new else -1)
    return replace(row, warnings=(*row.warnings, BusyWaits(instructions=change)))
