# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the code of a function went that runs no more, as far as calls and counts tell. Pure.

A function that vanished can only live on inside one that called it. Inside means: its caller, or the caller of a caller
that vanished with it, no longer calls it. Two things then speak for it, and not for a mere disappearance:

- The function called others that its caller did not call, and now the caller calls these itself. That is sure where
  they are at least two and half of all, and the caller runs more instructions than before.
- Nobody who runs calls it any more, what it called is now called by the caller or by functions that are new there (or
  it called nobody), and the caller grew by about what vanished.

Neither counts where the caller now calls a new function that can stand for the one that vanished: that is a new name or
a rewrite. Read from the later kernel to the earlier one, the same says out of whom a new function was split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cached_property

from msgspec import Struct

Calls = Mapping[str, Set[str]]  # [a function that ran]: whom it can call

# A caller may shrink by a call with the registers saved for it, in instructions, and yet hold what it called.
_CALL_COST = 10.0
# So many callees of a vanished function are not taken over by chance.
_MANY = 2
# The growth of a caller relative to all that it may hold: the call and repeated checks go away, nothing is added. Three
# pairs of Debian's kernels had true ones from 0.25 to 0.97, nearly all above 0.35, and a coincidence at 0.29.
_GROWN_AT_LEAST = 0.3
_GROWN_AT_MOST = 1.1
# A new function stands for one that vanished if it runs this part of its instructions, and calls the same.
_STANDS_FOR = 0.5


class Side(Struct, frozen=True, dict=True):
    """One kernel: instructions per operation by function that ran, and whom these can call."""

    counts: Mapping[str, float]
    calls: Calls

    @cached_property
    def called(self) -> Set[str]:
        """Whoever is called by a function that ran."""
        return set().union(*self.calls.values())


class Host(Struct, frozen=True):
    """The function that holds a vanished one; ``others`` if further ones do."""

    name: str
    sure: bool
    others: bool


def _reached(start: Set[str], within: Set[str], calls: Calls) -> set[str]:
    """The functions ``within`` that are called from ``start`` on, through nothing but each other."""
    found: set[str] = set()
    ahead = {*start & within}
    while ahead:
        name = ahead.pop()
        found.add(name)
        ahead |= (calls.get(name, frozenset()) & within) - found
    return found


class _Caller:
    """A function that runs in both kernels, as a place where vanished ones may live on."""

    def __init__(self, name: str, old: Side, new: Side, vanished: Set[str], appeared: Set[str]) -> None:
        self.name, self.old, self.new = name, old, new
        self.before, self.after = old.calls.get(name, frozenset()), new.calls.get(name, frozenset())
        self.lost = vanished - self.after
        self.gained = _reached(self.after - self.before, appeared, new.calls)
        self.grown = new.counts[name] - old.counts[name]

    @cached_property
    def around(self) -> Set[str]:
        """Whom it now calls, itself or through new functions."""
        return set(self.after).union(*(self.new.calls.get(other, frozenset()) for other in self.gained))

    @cached_property
    def room(self) -> float:
        """What all cost that it may hold."""
        return sum(self.old.counts[held] for held in _reached(self.before, self.lost, self.old.calls))

    def _replaced(self, function: str, own: Set[str], taken: Set[str]) -> bool:
        """Whether something new stands where ``function`` stood."""
        least = _STANDS_FOR * self.old.counts[function]
        return any(
            self.new.counts[other] >= least
            and (not own or len(own & self.new.calls.get(other, frozenset())) >= len(taken))
            for other in self.gained
        )

    def _holds(self, function: str, known: Set[str], called_now: Set[str]) -> bool | None:
        """Whether this is where ``function`` lives on: True surely, False maybe, None hardly.

        ``known`` are callees that tell nothing, since this caller and what it holds called them before.
        """
        own = self.old.calls.get(function, frozenset()) - known - self.lost
        taken = own & self.after
        if self._replaced(function, own, taken):
            return None
        many, most = len(taken) >= _MANY, taken and 2 * len(taken) >= len(own)
        if (many or most) and self.grown > -_CALL_COST:
            return bool(many and most and self.grown > 0)
        if function in called_now or 2 * len(own & self.around) < len(own):
            return None
        return False if _GROWN_AT_LEAST <= self.grown / self.room <= _GROWN_AT_MOST else None

    def claims(self, called_now: Set[str]) -> Iterator[tuple[str, bool]]:
        """(function, sure) of each that it holds; one is reached through the calls of those that it holds."""
        seen, known = set[str](), {*self.before}
        ahead = self.before & self.lost
        while ahead:
            seen |= ahead
            held = {name: sure for name in ahead if (sure := self._holds(name, known, called_now)) is not None}
            yield from held.items()
            known = known.union(*(self.old.calls.get(name, frozenset()) for name in held))
            ahead = (known & self.lost) - seen


def hosts(old: Side, new: Side) -> dict[str, Host]:
    """For functions that run in ``old`` only, the function that holds their code in ``new``, where one is known.

    Of several the one that grew most, sure ones first. Swap the sides to learn out of whom new functions were split.
    Empty where the calls of one side are not known.
    """
    vanished, appeared = old.counts.keys() - new.counts.keys(), new.counts.keys() - old.counts.keys()
    if not vanished or not old.calls or not new.calls:
        return {}
    claims: dict[str, list[tuple[bool, float, str]]] = {}
    stay = old.counts.keys() & new.counts.keys()
    callers = (name for name in stay if not vanished.isdisjoint(old.calls.get(name, ())))  # the others hold none
    for caller in (_Caller(name, old, new, vanished, appeared) for name in callers):
        for function, sure in caller.claims(new.called):
            claims.setdefault(function, []).append((not sure, -caller.grown, caller.name))
    best = {function: min(found) for function, found in claims.items()}
    return {function: Host(name, not unsure, len(claims[function]) > 1) for function, (unsure, _, name) in best.items()}
