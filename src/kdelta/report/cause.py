# SPDX-License-Identifier: GPL-2.0-or-later
"""The one cause of a difference that a headline names, and how much of it that is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kdelta.model import Because, Warn
from kdelta.report.figures import effect
from kdelta.verdict.warnings import OtherCalls

_NAMES_TOLD = 2  # functions
_AGAINST = 0.25  # of what is new; where more than this of it is gone, or the other way, one alone says too much
_MOVED = 0.5  # of a change; where more of it is code that moved, it is the cause of nothing
_BEYOND = 1.5  # of the effect: what changed by more was nearly made up for elsewhere, and explains nothing alone
_MOST = 0.8  # of the effect: what explains less is told beside the whole
_SLIGHT = 0.15  # of the effect: what explains less is no answer
_LITTLE = 1 / 3  # of the effect: where one function explains less, the next ones are named with it
_TOGETHER = 3  # at most
_CAUSE_CHARS = 90  # a longer one is no answer: the causes have it whole


def cause(told: Because | None, percent: float, whole: float = math.inf, lines: bool = False) -> str:
    """The one cause that weighs most of those that go the way of the effect; "" where none does.

    ``whole``: the effect in counts, of which no cause is much more. ``lines``: causes are cache lines, not functions.
    """
    if told is None:
        return ""
    gone = (told.gone_delta, _became(told.gone, "gone", "no longer" if lines else ""))
    new = (told.new_delta, _became(told.new, "new", "now" if lines else ""))
    less, more = sorted((abs(told.gone_delta), abs(told.new_delta)))
    if told.gone and told.new and gone[0] * new[0] < 0 and less > _AGAINST * more:  # as where one was renamed
        first, second = (gone, new) if gone[0] * percent > 0 else (new, gone)
        causes = [(gone[0] + new[0], f"{first[1]} ({_signed(first[0])}), {second[1]} ({_signed(second[0])})")]
    else:
        groups = ((gone, told.gone, told.gone_kept), (new, told.new, told.new_kept))
        alone = [one for one, names, kept in groups if names and _stands(one[0], kept)]
        causes = [(delta, f"{what} ({_share(delta, whole)})") for delta, what in alone]
    taken = dict(told.taken)
    changed = [(name, delta) for name, delta in told.changed if _stands(delta, taken.get(name, 0.0))]
    causes += [(delta, f"of {name} ({_share(delta, whole)})") for name, delta in changed]
    causes += _together([(name, delta) for name, delta in changed if delta * percent > 0], whole)
    ways = [(abs(delta), text) for delta, text in causes if delta * percent > 0]
    weight, text = max(ways, key=lambda one: one[0], default=(0.0, ""))
    much = whole == math.inf or _SLIGHT * whole <= weight <= _BEYOND * whole
    return text if len(text) <= _CAUSE_CHARS and much else ""


def _stands(delta: float, against: float) -> bool:
    """Whether what changed is more than code that moved between a function and what that calls."""
    return abs(against) <= _MOVED * abs(delta)


def _together(changed: Sequence[tuple[str, float]], whole: float) -> list[tuple[float, str]]:
    """The first functions as one cause, where each is a small part: a second mutex_lock() is also what that calls."""
    first = changed[:_TOGETHER]
    if len(first) < 2 or whole == math.inf or abs(first[0][1]) >= _LITTLE * whole:
        return []
    delta = sum(one for _, one in first)
    *names, last = (name for name, _ in first)
    return [(delta, f"of {', '.join(names)} and {last} ({_share(delta, whole)})")]


def _share(delta: float, whole: float) -> str:
    """``-671``, and ``-671 of -1321`` where much of the effect has other causes."""
    part = abs(delta) < _MOST * whole < math.inf
    return _signed(delta) + (f" of {_signed(math.copysign(whole, delta))}" if part else "")


def _signed(delta: float) -> str:
    return f"{delta:+.0f}" if abs(delta) >= 10 else f"{delta:+.3g}"


def _became(names: Sequence[str], word: str, moves: str) -> str:
    """``f and g are new``; of cache lines ``a and b now move``: a line that moves for the first time may be old."""
    shown, more = list(names[:_NAMES_TOLD]), len(names) - _NAMES_TOLD
    told = f"{', '.join(shown)} and {more} more" if more > 0 else " and ".join(shown)
    if moves:
        return f"{told} {moves} {'move' if len(names) > 1 else 'moves'}"
    return f"{told} {'are' if len(names) > 1 else 'is'} {word}"


def at_same_calls(warnings: Sequence[Warn]) -> str:
    """``+1.34 %``, of prices that are far apart ``+4.76 % to +9.79 %``; "" where that is unknown or near the whole."""
    one = next((w for w in warnings if isinstance(w, OtherCalls)), None)
    if one is None or one.less_each:
        return ""
    found = [one.same_calls_percent] if one.then_percent is None else sorted((one.same_calls_percent, one.then_percent))
    return " to ".join(map(effect, found))
