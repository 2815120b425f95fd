# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions behind a difference as one line of words."""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.attribution.because import told_delta
from kdelta.model import Because
from kdelta.units import counted

_SEEN = 0.05  # less is written as 0.0
_WORTH_TELLING = 0.25  # of the whole difference: from here on what the named functions leave is told


def _signed(value: float) -> str:
    if not abs(value) < 10 or value == round(value):
        return f"{value:+.0f}"
    return f"{value:+.1f}" if abs(value) >= _SEEN else f"{value:+.1g}"


def listed(names: Sequence[str]) -> str:
    """``a, b and c``"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def more(count: int) -> list[str]:
    """``["3 more"]``, nothing of 0: the end of names that are not all shown."""
    return [f"{count} more"] if count else []


def because(told: Because | None) -> str:
    """``"memset_orig -671, step_into and walk_component gone (-413)"``: what weighs most comes first.

    Empty where no function is known.
    """
    if not told:
        return ""
    groups = ((told.gone, told.gone_delta, "gone"), (told.new, told.new_delta, "new"))
    parts = [(delta, f"{listed(names)} {word} ({_signed(delta)})") for names, delta, word in groups if names]
    parts += [(delta, f"{name} {_signed(delta)}") for name, delta in told.changed]
    text = ", ".join(part for _, part in sorted(parts, key=lambda one: -abs(one[0])))
    whole = told_delta(told) + told.others_delta
    if told.others and abs(told.others_delta) > _WORTH_TELLING * abs(whole):
        text += f", {counted(told.others, 'other')} {_signed(told.others_delta)}"
    return text
