# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps of a sweep that go with the compiler: it changes at one and back at the next, and so does the figure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from kdelta.results.types import Sweep, SweepStep

_LEFT = 1 / 3  # of a step: what may be left when the compiler is back, as releases change more than the compiler


def changed(compilers: Mapping[str, str], step: SweepStep) -> str:
    """How the compiler changed at a step; "" where it did not, or is not known. ``compilers``: by kernel label."""
    before, after = compilers.get(step.last, ""), compilers.get(step.first, "")
    return f"{before} before, {after} from here on" if before and after and before != after else ""


def explained(sweep: Sweep, compilers: Mapping[str, str]) -> dict[str, str]:
    """The steps (by their first version) whose figure goes with the compiler, with the words that say so."""
    found: dict[str, str] = {}
    for there, back in pairwise(sweep.steps):
        names = [compilers.get(label, "") for label in (there.last, there.first, back.last, back.first)]
        returns = names[0] == names[3] != names[1] == names[2] and all(names)
        least = min(abs(there.patched - there.baseline), abs(back.patched - back.baseline))
        if returns and abs(back.patched - there.baseline) <= _LEFT * least:
            words = f"the figure changes with it at {there.first} and is back with it at {back.first}"
            found |= {there.first: words, back.first: words}
    return found
