# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures that a claim is held against, read from the store: of two kernels, of two cases, of one function."""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.attribution.exact import TRANSFERS, WAITS
from kdelta.model import Case, CellResult, ExperimentResult, Warn
from kdelta.results import cells, claim_cross, claim_share
from kdelta.results.claims import Column, Measured, blank
from kdelta.spec.recipes import Claim
from kdelta.store.store import Store
from kdelta.verdict.warnings import UNDECIDABLE

# counts that can carry an effect in time; the last two are of several CPUs
COLUMNS = ("instructions", "locked", "code_lines", "data_lines", TRANSFERS, WAITS)


def measured(claim: Claim, cases: Sequence[Case], result: ExperimentResult, store: Store) -> Measured:
    """What ``result`` says of ``claim``, whose cases are ``cases`` (with from_case two, the last one the claim's)."""
    if claim.function:
        return claim_share.share(claim, cases[-1], _rows(result, cases[-1], ""), result.experiment, store)
    rows = [_rows(result, case, claim.metric) for case in cases]
    bad = next((found[0] for found in rows if found and found[0].state != "ok"), None)
    if bad is not None:
        return blank(f"{bad.state}: {bad.why}", bad)
    if not all(rows):
        return blank(f"{claim.metric or claim.case} was not measured")
    return _two_kernels(rows[-1], result) if not claim.from_case else _two_cases(claim, cases, rows, result, store)


def _rows(result: ExperimentResult, case: Case, metric: str) -> list[CellResult]:
    """The rows of ``case``: its ``metric`` or the primary one; in exact mode all counts, instructions first."""
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
    if mixed := next((warning for warning in row.warnings if isinstance(warning, UNDECIDABLE)), None):
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
        claim_cross.cross(experiment, data, (names.index(cases[0].name), names.index(cases[1].name)), kernel, row)
        for row in rows[-1]
    ]
    if found[0] is None:
        return blank("the two cases were not measured in the same boots")
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
