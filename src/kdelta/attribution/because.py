# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions account for a difference between two profiles. Pure.

Counts are kernel instructions per operation. Instructions are a cost that adds up exactly, so the differences of all
functions together are the whole difference: nothing is sampled and nothing is left over.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from kdelta.attribution.profiles import USER
from kdelta.model import FunctionDelta, Profile
from kdelta.units import percent

GONE = "gone"
NEW = "new"
# A function that vanished may live on inside its caller. Counts do not tell, so this is a hint: the function in both
# profiles whose growth comes nearest to what vanished, if it grew by a quarter of it at least (the call, the saved
# registers and repeated checks go away) and by hardly more than all of it.
_INLINED_AT_LEAST = 0.25
_INLINED_AT_MOST = 1.1
# A function with less than this part of all movement is not worth a word in one line.
_WORTH_A_WORD = 0.02


def _per_op(profile: Profile) -> dict[str, float]:
    return {name: counts[0] / profile.ops for name, counts in profile.functions.items() if name != USER and counts[0]}


def _inlined_into(vanished: float, growths: Sequence[tuple[str, float]]) -> str | None:
    fitting = [
        (abs(vanished - growth), name)
        for name, growth in growths
        if _INLINED_AT_LEAST * vanished <= growth <= _INLINED_AT_MOST * vanished
    ]
    return min(fitting)[1] if fitting else None


def _note(before: float, after: float, growths: Sequence[tuple[str, float]]) -> str:
    if before and not after:
        host = _inlined_into(before, growths)
        return f"{GONE}, maybe inlined into {host}" if host else GONE
    return NEW if after and not before else ""


def differences(baseline: Profile, patched: Profile) -> tuple[FunctionDelta, ...]:
    """Every kernel function whose instructions per operation differ, largest |difference| first (then by name).

    ``note`` is "gone", "new", "gone, maybe inlined into X" or empty. The deltas add up to the difference of the two
    profiles' kernel instructions per operation.
    """
    before, after = _per_op(baseline), _per_op(patched)
    growths = [
        (name, after[name] - before[name]) for name in before.keys() & after.keys() if after[name] > before[name]
    ]
    deltas = [
        FunctionDelta(
            function=name,
            baseline=before.get(name, 0.0),
            patched=after.get(name, 0.0),
            delta=after.get(name, 0.0) - before.get(name, 0.0),
            note=_note(before.get(name, 0.0), after.get(name, 0.0), growths),
        )
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    ]
    return tuple(sorted(deltas, key=lambda d: (-abs(d.delta), d.function)))


def cumulative_shares(deltas: Sequence[FunctionDelta]) -> tuple[float | None, ...]:
    """For each function the part of the net effect (the sum of all deltas) that it and those before it make up.

    Ends at 1.0. Passes beyond 1.0 on the way where later functions go the other way. None where the net effect is 0.
    """
    net = math.fsum(d.delta for d in deltas)
    if not net:
        return (None,) * len(deltas)
    return tuple(total / net for total in itertools.accumulate(d.delta for d in deltas))


def _signed(value: float) -> str:
    return f"{value:+.0f}" if abs(value) >= 10 or value == round(value) else f"{value:+.1f}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _group(deltas: Iterable[FunctionDelta], word: str) -> list[str]:
    of_it = list(deltas)
    if not of_it:
        return []
    return [f"{_listed([d.function for d in of_it])} {word} ({_signed(math.fsum(d.delta for d in of_it))})"]


def because_text(deltas: Sequence[FunctionDelta], effect_percent: float | None, limit: int = 4) -> str:
    """One short line: what is gone, what is new, then what changed; ``limit`` functions of each kind at most.

    ``"-33 %: step_into and walk_component gone (-413), memset_orig -671"``; empty when no function differs. What is
    gone or new is looked for further down the list than what merely changed: it says more.
    """
    movement = math.fsum(abs(d.delta) for d in deltas)
    worth = [d for d in deltas[: 2 * limit] if abs(d.delta) >= _WORTH_A_WORD * movement]
    parts = [
        *_group([d for d in worth if d.note.startswith(GONE)][:limit], GONE),
        *_group([d for d in worth if d.note == NEW][:limit], NEW),
        *(f"{d.function} {_signed(d.delta)}" for d in worth[:limit] if not d.note),
    ]
    if not parts:
        return ""
    if effect_percent is None or not math.isfinite(effect_percent):
        return ", ".join(parts)
    return f"{percent(effect_percent, 0 if abs(effect_percent) >= 10 else 1)}: {', '.join(parts)}"
