# SPDX-License-Identifier: GPL-2.0-or-later
"""One correction over all cells of an experiment, facts and noisy ones together. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.model import CellResult
from kdelta.stats import multiplicity
from kdelta.verdict.warnings import BelowDelta, Withdrawn
from kdelta.verdict.words import ALPHA, GRID_PAIRS, below, with_need


def _withdrawn(result: CellResult, adjusted: float, cells: int) -> CellResult:
    """A significant cell that the correction does not keep: same where its interval lies within delta all the same."""
    few = result.extra["pairs"] < GRID_PAIRS and not result.extra.get("fact")
    withdrawn = Withdrawn(cells, adjusted, GRID_PAIRS if few else None)
    warnings = (*(w for w in result.warnings if not isinstance(w, BelowDelta)), withdrawn)
    delta = result.extra["delta_percent"]
    if result.interval_percent is not None and all(below(bound, delta) for bound in result.interval_percent):
        return replace(result, verdict="same", warnings=warnings)
    left = with_need(replace(result, verdict="inconclusive", warnings=warnings))
    return replace(left, boots_needed=max(left.boots_needed or 0, GRID_PAIRS)) if few else left


def corrected(results: list[CellResult]) -> tuple[CellResult, ...]:
    """Benjamini-Hochberg over the primary cells, and over the others, each a family of its own."""
    out = list(results)
    for primary in (True, False):
        family = [i for i, r in enumerate(results) if r.primary == primary and r.p_value is not None]
        adjusted = multiplicity.benjamini_hochberg([results[i].p_value or 0.0 for i in family])
        for index, q in zip(family, adjusted, strict=True):
            if results[index].verdict in ("improved", "regressed") and q > ALPHA:
                out[index] = _withdrawn(results[index], float(q), len(family))
    return tuple(out)


def gate_holm(
    results: Sequence[CellResult], alpha: float = ALPHA, delta_percent: float = 0.0
) -> tuple[CellResult, ...]:
    """The regressions that close a gate: of primary cells, by at least ``delta_percent``, kept by Holm at ``alpha``.

    Facts stand in the family with the chance of looking like one (``stats.counts.chance``).
    """
    family = [r for r in results if r.primary and r.p_value is not None]
    adjusted = dict(zip(map(id, family), multiplicity.holm([r.p_value or 0.0 for r in family]), strict=True))
    return tuple(
        r
        for r in results
        if r.primary
        and r.verdict == "regressed"
        and adjusted.get(id(r), 1.0) <= alpha
        and (r.effect_percent is None or abs(r.effect_percent) >= delta_percent)
    )
