# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures that a series gives itself, below what was measured, and whether that goes the other way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kdelta.kernel import directions
from kdelta.report.mail import safe
from kdelta.report.scrub import clean
from kdelta.report.sections import bullets
from kdelta.report.tallies import Tally, in_cases, told_once
from kdelta.report.text import WIDTH, wrap


def quoted(claims: Sequence[str], tallies: Sequence[Tally] = (), exact: bool = True, *, identical: bool = False) -> str:
    """A part of a plain-text report, at most 72 columns wide.

    ``tallies``: what was measured; ``exact``: in counts. ``identical``: both kernels are the same.
    """
    lines = ["", "Figures that the series gives itself (quoted, not checked)", *bullets(map(clean, claims), WIDTH - 1)]
    alike = "These get better; with this config machine code and data are identical."
    if other := _against(claims, tallies, exact) or (alike if identical and directions.of_all(claims) == 1 else ""):
        lines += ["", *wrap(other, WIDTH - 1)]
    return "\n".join(map(safe, lines)) + "\n"


def _against(claims: Iterable[str], tallies: Sequence[Tally], exact: bool) -> str:
    """That figures which get better stand beside what gets worse alone, and those that stay beside any such; or ""."""
    told = tuple(claims)
    regressed = any(tally.regressed for tally in tallies)
    better = directions.of_all(told) == 1
    if not regressed or not (better or directions.alike(told)):
        return ""
    if better and any(tally.improved for tally in tallies):
        return ""
    head = "These get better" if better else "These say that something stays as it was"
    times = " Counts are no times: --timed measures them." if exact else ""
    return f"{head}; what was measured here does not: {'; '.join(map(in_cases, told_once(tallies)))}.{times}"
