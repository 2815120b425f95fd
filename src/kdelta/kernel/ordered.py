# SPDX-License-Identifier: GPL-2.0-or-later
"""The hunks of one file at their places, each behind the one before it. Pure.

A hunk that fits at several places is where the hunks after it leave room, if that is one place alone: code that
stands twice is often changed twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.kernel.align import squeeze
from kdelta.kernel.hunk import Hunk, Misfit, Placed, place

_TRIALS = 64  # places tried for hunks that fit at several, in one file


class Unplaced(Exception):
    """Why ``hunk`` has no place, or more than one."""

    def __init__(self, hunk: Hunk, why: Misfit) -> None:
        super().__init__(str(why))
        self.hunk, self.why = hunk, why


def place_all(hunks: Sequence[Hunk], real: Sequence[str], *, far: bool = False) -> list[Placed]:
    """Where all ``hunks`` of a file with the lines ``real`` fit; ``far`` is that of ``hunk.place``.

    Raises:
        Unplaced: one does not fit, or at more than one place.
    """
    return _File(real, far).behind(hunks, 0, 0)


class _File:
    def __init__(self, real: Sequence[str], far: bool) -> None:
        self.real, self.squeezed, self.far = real, [squeeze(line) for line in real], far
        self.trials = _TRIALS

    def behind(self, hunks: Sequence[Hunk], shift: int, lowest: int) -> list[Placed]:
        """``hunks`` from the line ``lowest`` (from 0) on; the hunk before them was off by ``shift`` lines."""
        placed: list[Placed] = []
        for number, hunk in enumerate(hunks, 1):
            try:
                found = place(hunk, self.real, self.squeezed, shift, lowest, far=self.far)
            except Misfit as why:
                only = self._only(why.places, hunks[number:])
                if not only:
                    raise Unplaced(hunk, why) from None
                return [*placed, *only]
            placed.append(found)
            shift, lowest = found.offset, _end(found)
        return placed

    def _only(self, places: Sequence[Placed], rest: Sequence[Hunk]) -> list[Placed]:
        """The one of ``places`` behind which the ``rest`` fits, and that; [] where several do, or it is not sure."""
        fits: list[list[Placed]] = []
        for one in places if rest else ():
            self.trials -= 1
            if self.trials < 0:
                return []
            try:
                fits.append([one, *self.behind(rest, one.offset, _end(one))])
            except Unplaced as error:
                if error.why.ambiguous:
                    return []
        return fits[0] if len(fits) == 1 else []


def _end(placed: Placed) -> int:
    return placed.at + sum(sign != "+" for sign, _ in placed.ops)
