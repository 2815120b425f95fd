# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures that a claim is held against, read from the store: of two kernels, of two cases, of one function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdelta.kernel.spelling import fold
from kdelta.model import Case, CellResult, Experiment, ExperimentResult, Warn, Word
from kdelta.results import cells, explain
from kdelta.results.claims import Column, Measured
from kdelta.spec.recipes import Claim
from kdelta.stats import counts, paired
from kdelta.store.store import Store
from kdelta.units import Better
from kdelta.verdict.pairing import CellData, paired_blocks, values_of
from kdelta.verdict.warnings import MixedAccounts
from kdelta.verdict.words import ALPHA, DELTA_PERCENT, word

Floats = NDArray[np.float64]
COLUMNS = ("instructions", "locked", "code_lines", "data_lines")  # counts that can carry an effect in time
_SHARE_UNIT = 1e-6  # shares are judged as whole millionths of all instructions


def measured(claim: Claim, cases: Sequence[Case], result: ExperimentResult, store: Store) -> Measured:
    """What ``result`` says of ``claim``, whose cases are ``cases`` (with from_case two, the last one the claim's)."""
    if claim.function:
        return _share(claim, cases[-1], result, store)
    rows = [_rows(result, case, claim.metric) for case in cases]
    bad = next((found[0] for found in rows if found and found[0].state != "ok"), None)
    if bad is not None:
        return _blank(f"{bad.state}: {bad.why}", bad)
    if not all(rows):
        return _blank(f"{claim.metric or claim.case} was not measured")
    return _two_kernels(rows[-1], result) if not claim.from_case else _two_cases(claim, cases, rows, result, store)


def _blank(why: str, row: CellResult | None = None) -> Measured:
    state = "failed" if row is None else row.state
    return Measured(before=None, after=None, unit="" if row is None else row.unit, state=state, why=why)


def _rows(result: ExperimentResult, case: Case, metric: str) -> list[CellResult]:
    """The rows of ``case``: its ``metric`` or the deciding one; in exact mode all counts, instructions first."""
    mine = [row for row in result.results if row.case == case.name]
    if result.experiment.mode == "exact":
        return [row for name in COLUMNS for row in mine if row.metric == name]
    return [row for row in mine if (row.metric == metric if metric else row.primary)][:1]


def _two_kernels(rows: Sequence[CellResult], result: ExperimentResult) -> Measured:
    first, exact = rows[0], result.experiment.mode == "exact"
    return Measured(
        before=first.baseline,
        after=first.patched,
        unit=first.unit,
        better=first.better,
        verdict=first.verdict,
        interval_percent=first.interval_percent,
        counts=exact,
        columns=tuple(Column(name=r.metric, percent=r.effect_percent, verdict=r.verdict) for r in rows)
        if exact
        else (),
        why=_undecided(first, exact),
    )


def _undecided(row: CellResult, exact: bool) -> str | Warn:
    if row.verdict not in (None, "inconclusive"):
        return ""
    if mixed := next((warning for warning in row.warnings if isinstance(warning, MixedAccounts)), None):
        return mixed
    made = f"{row.boots[0]} {'seeds' if exact else 'boots'}"
    seen = f"; minimum detectable effect {row.detectable_percent:.1f} %" if row.detectable_percent else ""
    return f"inconclusive after {made}{seen}: more --{'seeds' if exact else 'blocks'}"


def _two_cases(
    claim: Claim, cases: Sequence[Case], rows: Sequence[Sequence[CellResult]], result: ExperimentResult, store: Store
) -> Measured:
    """Two cases on one kernel, paired by boot."""
    experiment = result.experiment
    kernel = 0 if claim.on == "baseline" else len(experiment.kernels) - 1
    data = cells.of_numbers(experiment, store, store.numbers(experiment.id))
    names = [case.name for case in experiment.cases]
    found = [
        _cross(experiment, data, (names.index(cases[0].name), names.index(cases[1].name)), kernel, row)
        for row in rows[-1]
    ]
    if found[0] is None:
        return _blank("the two cases were not measured in the same boots")
    exact = experiment.mode == "exact"
    columns = tuple(
        Column(name=row.metric, percent=one.percent, verdict=one.verdict)
        for row, one in zip(rows[-1], found, strict=True)
        if one is not None
    )
    first, row = found[0], rows[-1][0]
    return Measured(
        before=first.before,
        after=first.after,
        unit=row.unit,
        better=row.better,
        verdict=first.verdict,
        interval_percent=first.interval,
        counts=exact,
        columns=columns if exact else (),
        why="" if first.verdict not in (None, "inconclusive") else f"undecided after {first.n} boots",
    )


class _Cross:
    """One metric of two cases in the same boots of one kernel."""

    def __init__(self, before: Floats, after: Floats, better: Better, exact: bool) -> None:
        self.before, self.after, self.n = float(np.median(before)), float(np.median(after)), before.size
        self.verdict: Word | None = None
        self.interval: tuple[float, float] | None = None
        self.percent: float | None = 100.0 * (self.after / self.before - 1.0) if self.before else None
        if exact:
            look = counts.look(before, after, counts.LOOKS, DELTA_PERCENT)
            self.percent = look.effect
            if look.finished:
                self.verdict = word(look.call, better)
                self.interval = None if look.low is None or look.high is None else (look.low, look.high)
        elif before.size >= paired.MIN_PAIRS and min(before.min(), after.min()) > 0:
            single = paired.look(np.log(after) - np.log(before), ALPHA, ALPHA, float(np.log1p(DELTA_PERCENT / 100.0)))
            self.verdict = word(int(single.call), better)
            self.interval = (100.0 * float(np.expm1(single.low)), 100.0 * float(np.expm1(single.high)))


def _cross(
    experiment: Experiment, data: Sequence[CellData], cases: tuple[int, int], kernel: int, row: CellResult
) -> _Cross | None:
    table = {(c.case, c.metric, c.kernel, c.mitigations): c.boots for c in data}
    sides = [table.get((case, row.metric, kernel, row.mitigations), ()) for case in cases]
    label = experiment.kernels[kernel].label
    pairs = paired_blocks((label, label), sides[0], sides[1], np.inf)
    if not pairs.a:
        return None
    return _Cross(values_of(pairs.a), values_of(pairs.b), row.better, experiment.mode == "exact")


def _share(claim: Claim, case: Case, result: ExperimentResult, store: Store) -> Measured:
    """A function's share in the kernel instructions of a case, in percent, judged over the seeds."""
    rows = _rows(result, case, "")
    if not rows or rows[0].state != "ok":
        return _blank(f"{case.name} was not measured" + (f": {rows[0].state}: {rows[0].why}" if rows else ""))
    index = [c.name for c in result.experiment.cases].index(case.name)
    by_kernel = explain.seeds_of(result.experiment, store).get((index, rows[0].mitigations), {})
    sides = [by_kernel.get(0, []), by_kernel.get(len(result.experiment.kernels) - 1, [])]
    shares: list[Floats] = []
    for profiles in sides:
        kernels = [{n: c[0] for n, c in p.functions.items() if n != "[user]"} for p in profiles]
        if not kernels or any(not any(not name.startswith("[") for name in one) for one in kernels):
            return _blank("the kernel has no function names")
        shares.append(np.array([100.0 * one.get(fold(claim.function), 0) / sum(one.values()) for one in kernels]))
    n = min(shares[0].size, shares[1].size)
    whole = [np.round(side[:n] / 100.0 / _SHARE_UNIT) for side in shares]
    look = counts.look(whole[0], whole[1], counts.LOOKS, DELTA_PERCENT)
    return Measured(
        before=float(np.median(shares[0])),
        after=float(np.median(shares[1])),
        unit="% of kernel instructions",
        verdict=word(look.call, "lower") if look.finished else None,
        interval_percent=None if look.low is None or look.high is None else (look.low, look.high),
        why="" if look.finished else f"{look.n} of the {counts.FACT_SEEDS} seeds that a verdict needs",
    )
