# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as CSV (RFC 4180), safe to open in a spreadsheet: text that a spreadsheet would run gets an apostrophe."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from kdelta.model import CellResult
from kdelta.report import behind
from kdelta.report.registry import Format
from kdelta.report.sentences import sentence
from kdelta.report.view import View
from kdelta.results.types import Sweep, SweepStep
from kdelta.units import finite

COLUMNS = (
    "record",
    "case",
    "params",
    "cgroup",
    "mitigations",
    "metric",
    "unit",
    "better",
    "primary",
    "baseline_kernel",
    "patched_kernel",
    "baseline",
    "patched",
    "effect_percent",
    "interval_low_percent",
    "interval_high_percent",
    "verdict",
    "state",
    "why",
    "boots_baseline",
    "boots_patched",
    "floor_percent",
    "p_value",
    "detectable_percent",
    "boots_needed",
    "because",
    "warnings",
)

# What spreadsheets take as the start of a formula, the full-width forms included.
_FORMULA = tuple("=+-@＝＋－＠'")

Value = str | float | int | None


def _text(value: Value) -> str:
    """A field: numbers as they are, nothing for null, text that cannot be taken as a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "" if finite(value) is None else repr(value)
    return f"'{value}" if value.lstrip().startswith(_FORMULA) else value


def _because(item: CellResult | SweepStep, metric: str) -> str:
    """``by -33 %: memset_orig -671``: it begins with a word, so that no spreadsheet takes the sign for a formula's."""
    text = behind.text(metric, item.because, item.because_line, item.effect_percent)
    return f"by {text}" if text.startswith(("+", "-")) else text


def _result(cell: CellResult) -> dict[str, Value]:
    low, high = cell.interval_percent if cell.interval_percent and cell.state == "ok" else (None, None)
    return {
        "record": "result",
        "case": cell.case,
        "params": " ".join(f"{key}={value}" for key, value in sorted(cell.params.items())),
        "cgroup": cell.cgroup,
        "mitigations": cell.mitigations,
        "metric": cell.metric,
        "unit": cell.unit,
        "better": cell.better,
        "primary": cell.primary,
        "baseline_kernel": cell.baseline_label,
        "patched_kernel": cell.patched_label,
        "baseline": cell.baseline,
        "patched": cell.patched,
        "effect_percent": cell.effect_percent,
        "interval_low_percent": low,
        "interval_high_percent": high,
        "verdict": cell.verdict,
        "state": cell.state,
        "why": cell.why,
        "boots_baseline": cell.boots[0],
        "boots_patched": cell.boots[1],
        "floor_percent": cell.floor_percent,
        "p_value": cell.p_value,
        "detectable_percent": cell.detectable_percent,
        "boots_needed": cell.boots_needed,
        "because": _because(cell, cell.metric),
        "warnings": " ".join(warning.code for warning in cell.warnings),
    }


def _sweep(sweep: Sweep) -> Iterator[dict[str, Value]]:
    name: dict[str, Value] = {
        "case": sweep.cell.case,
        "cgroup": sweep.cell.cgroup,
        "mitigations": sweep.cell.mitigations,
        "metric": sweep.cell.metric,
        "unit": sweep.unit,
        "better": sweep.better,
    }
    for point in sweep.points:
        state = "failed" if point.state == "ok" and finite(point.value) is None else point.state
        yield name | {
            "record": "point",
            "patched_kernel": point.kernel,
            "patched": point.value,
            "state": state,
            "why": point.why or (sentence(point.unseen) if point.unseen else ""),
        }
    for step in sweep.steps:
        yield name | {
            "record": "step",
            "baseline_kernel": step.last,
            "patched_kernel": step.first,
            "baseline": step.baseline,
            "patched": step.patched,
            "effect_percent": step.effect_percent,
            "verdict": step.verdict,
            "state": "ok",
            "p_value": step.p_value,
            "because": _because(step, sweep.cell.metric),
        }


def render(view: View) -> str:
    """All results, primary or not, then the points and steps of sweeps; CRLF line ends."""
    rows = [_result(cell) for cell in (*view.result.results, *view.result.counts)]
    for sweep in view.detail.sweeps:
        rows += _sweep(sweep)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_text(row.get(column)) for column in COLUMNS])
    return out.getvalue()


FORMAT = Format(name="csv", suffix=".csv", render=render, hidden=True, help="one line per result, RFC 4180")
