# SPDX-License-Identifier: GPL-2.0-or-later
"""Times and counts of the same kernels and cases in one answer: time decides, the counts explain. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from kdelta.attribution.exact import TRANSFERS, WAITS
from kdelta.model import CellResult, ExperimentResult
from kdelta.results.warnings import Explained, Layout

COLUMNS = ("instructions", "locked", "data_lines", "code_lines", TRANSFERS, WAITS)  # that can carry an effect in time
_CHANGED = ("improved", "regressed")
_Key = tuple[str, str, str, str]


def _key(row: CellResult) -> _Key:
    return (row.case, row.cgroup, row.mitigations, row.patched_label)


def _is_layout(column: CellResult) -> bool:
    return any(isinstance(warning, Layout) for warning in column.warnings)


def _told(row: CellResult, columns: Sequence[CellResult]) -> CellResult:
    """``row``, a time, with what the counts beside it say."""
    if row.state != "ok" or row.effect_percent is None or not row.patched_label:
        return row
    sides: dict[str, list[tuple[str, float]]] = {word: [] for word in _CHANGED}
    for column in columns:
        if column.verdict in _CHANGED and not _is_layout(column):
            from_zero = column.effect_percent is None
            sides[column.verdict].append((column.metric, math.inf if from_zero else column.effect_percent or 0.0))
    for found in sides.values():
        found.sort(key=lambda one: (-abs(one[1]), one[0]))
    other = {"improved": "regressed", "regressed": "improved"}.get(row.verdict or "", "")
    along = sides[row.verdict] if row.verdict in _CHANGED else [*sides["improved"], *sides["regressed"]]
    told = Explained(
        metric=row.metric,
        percent=row.effect_percent,
        word=row.verdict or "",
        along=tuple(along),
        against=tuple(sides.get(other, ())),
        still=tuple(column.metric for column in columns if column.verdict == "same"),
        floor_percent=row.extra.get("delta_percent", row.floor_percent),
    )
    agree = row.verdict == "same" and not told.along
    return row if agree else replace(row, warnings=(*row.warnings, told))


def explained(timed: ExperimentResult, counts: ExperimentResult) -> ExperimentResult:
    """``timed`` with the columns of ``counts`` in their order, and on each primary row what these say of it."""
    by_key: defaultdict[_Key, list[CellResult]] = defaultdict(list)
    for row in counts.results:
        if row.metric in COLUMNS and row.state == "ok":
            by_key[_key(row)].append(row)
    for found in by_key.values():
        found.sort(key=lambda row: COLUMNS.index(row.metric))
    shown = {_key(row) for row in timed.results}
    return replace(
        timed,
        results=tuple(
            _told(row, by_key[_key(row)]) if row.primary and _key(row) in by_key else row for row in timed.results
        ),
        counts=tuple(row for key, found in by_key.items() if key in shown for row in found),
    )
