# SPDX-License-Identifier: GPL-2.0-or-later
"""That a program made other system calls, in a sentence."""

from __future__ import annotations

from kdelta.report.causes import more
from kdelta.verdict.warnings import CallsBeside, MixedCalls, OtherCalls

_WHY = {
    "kernel": "they are the same under all seeds",
    "seed": "how many it makes hangs on when things happen and varies with the seed",
    "interval": "an interval of its loop holds one of them more or fewer, whatever the kernel",
}


def told(w: OtherCalls | CallsBeside) -> str:
    """Which calls, what the change is with as many as before, and whether the count gives a verdict."""
    named = ", ".join([*(f"{name} {before:.4g} -> {after:.4g}" for name, before, after in w.calls), *more(w.more)])
    made = f"the program made other calls ({named} per operation)"
    if isinstance(w, CallsBeside):
        return f"{made}, so this count gives no verdict, as that of instructions gives none"
    decides = ", so the count gives no verdict" if isinstance(w, MixedCalls) else ""
    whole, same = f"{w.effect_percent:+.2f} %", f"{w.same_calls_percent:+.2f} %"
    cost = ", each at the average cost," if w.averaged else ""
    return f"{made}: with as many as on the baseline{cost} {whole} would be {same}; {_WHY[w.why]}{decides}"
