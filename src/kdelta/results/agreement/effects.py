# SPDX-License-Identifier: GPL-2.0-or-later
"""Timed effects of two experiments side by side, each as its own verdict engine found it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kdelta.errors import UserError
from kdelta.model import CellResult, Word
from kdelta.results.agreement.common import Measured, Shared
from kdelta.results.agreement.types import Effect, EffectCall, EffectPair
from kdelta.units import finite
from kdelta.verdict.warnings import Zeros

_TURNED: dict[Word, Word] = {"improved": "regressed", "regressed": "improved"}

# case, mitigations, metric, baseline and patched kernel (None: measured alone), by the indexes of the experiment here
Key = tuple[int, str, str, int, int | None]


def effect_pairs(here: Measured, there: Measured, common: Shared, all_metrics: bool) -> tuple[EffectPair, ...]:
    """Each effect that both have, the deciding metrics alone unless ``all_metrics``.

    An effect whose kernels stood the other way round there is turned round.

    Raises:
        UserError: no two kernels were compared in both by one case, or the workloads are not known here.
    """
    mine = _by_key(here, {a: a for a, _ in common.kernels}, {a: a for a, _ in common.cases})
    other = _by_key(there, {b: a for a, b in common.kernels}, {b: a for a, b in common.cases})
    pairs = []
    for key, row in mine.items():
        case, mitigations, metric, baseline, patched = key
        if not (row.primary or all_metrics):
            continue
        if key in other:
            pairs.append(_pair(row, other[key], turned=False))
        elif patched is not None:
            back = other.get((case, mitigations, metric, patched, baseline))
            pairs += [_pair(row, back, turned=True)] if back is not None and _turnable(back) else []
    if not pairs:
        sides = "; ".join(_compared(measured) for measured in (here, there))
        raise UserError(f"--against: no effect in common, of the same two kernels by the same case: {sides}")
    return tuple(pairs)


def _compared(measured: Measured) -> str:
    """What an experiment compared, or why none of it can be read."""
    e = measured.experiment
    kernels = f"{e.kernels[0].label} with {', '.join(k.label for k in e.kernels[1:]) or 'nothing'}"
    unread = "" if measured.rows else " (nothing can be read: no boot is done, or its workloads are not known here)"
    return f"{e.id} compared {kernels}{unread}"


def _by_key(measured: Measured, kernels: Mapping[int, int], cases: Mapping[int, int]) -> dict[Key, CellResult]:
    """The rows by what they are about, as far as ``kernels`` and ``cases`` (their indexes -> those here) know it."""
    e = measured.experiment
    labels = {kernel.label: kernels[index] for index, kernel in enumerate(e.kernels) if index in kernels}
    names = {case.name: cases[index] for index, case in enumerate(e.cases) if index in cases}
    found: dict[Key, CellResult] = {}
    for row in measured.rows:
        wanted = {row.baseline_label, row.patched_label} - {""}
        if row.case in names and wanted <= labels.keys():
            patched = labels[row.patched_label] if row.patched_label else None
            key = (names[row.case], row.mitigations, row.metric, labels[row.baseline_label], patched)
            found[key] = row
    return found


def _turnable(row: CellResult) -> bool:
    """Whether the effect is a ratio (see verdict: figures of 0 or less have none)."""
    bounds = (row.effect_percent or 0.0, *(row.interval_percent or ()))
    return min(bounds) > -100.0 and not any(isinstance(warning, Zeros) for warning in row.warnings)


def _turn(percent: float) -> float:
    return 100.0 * (1.0 / (1.0 + percent / 100.0) - 1.0)


def _effect(row: CellResult, turned: bool) -> Effect:
    bounds = row.interval_percent
    whole = bounds is not None and all(finite(bound) is not None for bound in bounds)
    plain = Effect(
        state=row.state,
        why=row.why,
        baseline=finite(row.baseline),
        patched=finite(row.patched),
        effect_percent=finite(row.effect_percent),
        interval_percent=bounds if whole else None,
        verdict=row.verdict,
        boots=row.boots,
    )
    if not turned:
        return plain
    return Effect(
        state=plain.state,
        why=plain.why,
        baseline=plain.patched,
        patched=plain.baseline,
        effect_percent=None if plain.effect_percent is None else _turn(plain.effect_percent),
        interval_percent=None if bounds is None or not whole else (_turn(bounds[1]), _turn(bounds[0])),
        verdict=_TURNED.get(plain.verdict, plain.verdict) if plain.verdict else None,
        boots=(plain.boots[1], plain.boots[0]),
    )


def _call(here: Effect, there: Effect) -> EffectCall:
    a, b = here.interval_percent, there.interval_percent
    if a is None or b is None:
        return "descriptive"
    return "overlap" if a[0] <= b[1] and b[0] <= a[1] else "apart"


def _pair(row: CellResult, other: CellResult, turned: bool) -> EffectPair:
    here, there = _effect(row, False), _effect(other, turned)
    return EffectPair(
        case=row.case,
        params=dict(sorted(row.params.items())),
        cgroup=row.cgroup,
        mitigations=row.mitigations,
        metric=row.metric,
        unit=row.unit,
        baseline_kernel=row.baseline_label,
        patched_kernel=row.patched_label,
        here=here,
        there=there,
        call=_call(here, there),
        reversed=turned,
    )
