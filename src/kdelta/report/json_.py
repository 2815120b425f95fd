# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON result, schema ``kdelta/1``: what scripts depend on. Documented in docs/reference/json.md.

Keys come in one fixed order; a value that was not measured is null with a state; what differs between two runs of
the same exact experiment (id, times, consoles, host) stands under ``experiment`` and ``host`` only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import msgspec

from kdelta.model import CellResult, ExperimentResult, FunctionDelta, Warn
from kdelta.report import behind, looked
from kdelta.report.registry import Format
from kdelta.report.sentences import sentence
from kdelta.report.view import View
from kdelta.results.types import CallFigures, CellName, MovedDiff, Sweep, SystemCalls

VOLATILE = ("experiment", "host")


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _interval(bounds: tuple[float, float] | None) -> list[float] | None:
    return list(bounds) if bounds is not None and all(map(math.isfinite, bounds)) else None


def _warnings(warnings: Iterable[Warn]) -> list[dict[str, str]]:
    return [{"code": warning.code, "text": sentence(warning)} for warning in warnings]


def _because(functions: Iterable[FunctionDelta]) -> list[dict[str, Any]]:
    return [
        {
            "function": item.function,
            "baseline": _number(item.baseline),
            "patched": _number(item.patched),
            "delta": _number(item.delta),
            "note": item.note,
            **({"where": item.where} if item.where else {}),
            **({"unshared": item.unshared} if item.unshared else {}),
        }
        for item in functions
    ]


def cell_document(cell: CellResult) -> dict[str, Any]:
    """One element of ``results``."""
    measured = cell.state == "ok"
    return {
        "case": cell.case,
        "params": dict(sorted(cell.params.items())),
        "cgroup": cell.cgroup,
        "mitigations": cell.mitigations,
        "metric": cell.metric,
        "unit": cell.unit,
        "better": cell.better,
        "primary": cell.primary,
        "baseline_kernel": cell.baseline_label,
        "patched_kernel": cell.patched_label or None,
        "baseline": _number(cell.baseline),
        "patched": _number(cell.patched),
        "effect_percent": _number(cell.effect_percent),
        "interval_percent": _interval(cell.interval_percent) if measured else None,
        "verdict": cell.verdict,
        "state": cell.state,
        "why": cell.why,
        "boots": list(cell.boots),
        "floor_percent": _number(cell.floor_percent),
        "p_value": _number(cell.p_value),
        "detectable_percent": _number(cell.detectable_percent),
        "boots_needed": cell.boots_needed,
        "because": _because(cell.because),
        "because_text": behind.text(cell.metric, cell.because, cell.because_line, cell.effect_percent),
        "warnings": _warnings(cell.warnings),
        "extra": {key: _number(value) for key, value in sorted(cell.extra.items())},
    }


def _name(cell: CellName, sweep: Sweep) -> dict[str, Any]:
    return {
        "case": cell.case,
        "cgroup": cell.cgroup,
        "mitigations": cell.mitigations,
        "metric": cell.metric,
        "unit": sweep.unit,
        "better": sweep.better,
    }


def _points(sweeps: Iterable[Sweep]) -> list[dict[str, Any]]:
    points = []
    for sweep in sweeps:
        for point in sweep.points:
            value = _number(point.value)
            why = point.why or (sentence(point.unseen) if point.unseen else "")
            state = "failed" if point.state == "ok" and value is None else point.state
            name = _name(sweep.cell, sweep)
            hidden = {} if point.rep_bytes is None else {"rep_bytes": _number(point.rep_bytes)}
            points.append(name | {"kernel": point.kernel, "value": value, "state": state, "why": why} | hidden)
    return points


def _steps(sweeps: Iterable[Sweep]) -> list[dict[str, Any]]:
    return [
        _name(sweep.cell, sweep)
        | {
            "last": step.last,
            "first": step.first,
            "baseline": _number(step.baseline),
            "patched": _number(step.patched),
            "effect_percent": _number(step.effect_percent),
            "interval_percent": _interval(step.interval_percent),
            "verdict": step.verdict,
            "p_value": _number(step.p_value),
            "effect_same_calls_percent": _number(step.effect_same_calls_percent),
            "because": _because(step.because),
            "because_text": behind.text(sweep.cell.metric, step.because, step.because_line, step.effect_percent),
        }
        for sweep in sweeps
        for step in sweep.steps
    ]


def _call_figures(figures: CallFigures | None) -> dict[str, float | None] | None:
    if figures is None:
        return None
    return {name: _number(getattr(figures, name)) for name in ("calls", "instructions", "rep_bytes")}


def _system_calls(tables: Iterable[SystemCalls]) -> list[dict[str, Any]]:
    return [
        {
            "case": table.cell.case,
            "cgroup": table.cell.cgroup,
            "mitigations": table.cell.mitigations,
            "baseline_kernel": table.baseline_label,
            "patched_kernel": table.patched_label or None,
            "rows": [
                {"name": row.name, "baseline": _call_figures(row.baseline), "patched": _call_figures(row.patched)}
                for row in table.rows
            ],
        }
        for table in tables
    ]


def _lines(found: Iterable[MovedDiff]) -> list[dict[str, Any]]:
    return [
        {
            "case": one.cell.case,
            "cgroup": one.cell.cgroup,
            "mitigations": one.cell.mitigations,
            "baseline_kernel": one.baseline_label,
            "patched_kernel": one.patched_label or None,
            "rows": [
                {
                    "line": row.line,
                    "baseline": _number(row.baseline),
                    "patched": _number(row.patched) if one.patched_label else None,
                    "verdict": row.verdict or None,
                    "effect_percent": _number(row.effect_percent),
                    "interval_percent": _interval(row.interval_percent),
                    "false_sharing": _number(row.false_sharing),
                    "by": {name: [_number(side) for side in pair] for name, pair in row.by.items()},
                }
                for row in one.rows
            ],
        }
        for one in found
    ]


def _experiment(result: ExperimentResult) -> dict[str, Any]:
    experiment = result.experiment
    return {
        "id": experiment.id,
        "kind": experiment.kind,
        "mode": experiment.mode,
        "seed": experiment.seed,
        "blocks": experiment.blocks,
        "looks": list(experiment.looks),
        "boots_done": result.boots_done,
        "boots_left_out": result.boots_left_out,
        "boots_planned": result.boots_planned,
        "boots_faulty": list(result.boots_faulty),
        "created_at": experiment.created_at,
        "tool_version": experiment.tool_version,
        "command": experiment.command,
    }


def as_dict(view: View) -> dict[str, Any]:
    """The JSON result as one object; ``points`` and ``steps`` are there for sweeps."""
    result = view.result
    document: dict[str, Any] = {
        "schema": result.schema,
        "experiment": _experiment(result),
        "host": dict(sorted(result.experiment.host.items())),
        "kernels": [
            {
                "label": kernel.label,
                "spec": kernel.spec,
                "release": kernel.release,
                "arch": kernel.arch,
                "image_sha256": kernel.image_sha256,
                "cmdline": kernel.cmdline,
            }
            for kernel in result.experiment.kernels
        ],
        "gate": result.gate or None,
        "answer": view.headline.text,
        "results": [cell_document(cell) for cell in result.results],
        "warnings": _warnings(result.warnings),
    }
    if result.counts:
        document["counts"] = [cell_document(cell) for cell in result.counts]
    if found := {case.name: case.found for case in result.experiment.cases if case.found}:
        document["found"] = found
    if result.experiment.annotations.looked is not None:
        document["looked"] = looked.document(result.experiment.annotations.looked)
    if result.experiment.annotations.beside:
        document["beside"] = msgspec.to_builtins(result.experiment.annotations.beside)
    if view.detail.system_calls:
        document["system_calls"] = _system_calls(view.detail.system_calls)
    if view.detail.moved:
        document["lines"] = _lines(view.detail.moved)
    if view.detail.sweeps or result.experiment.in_steps:
        document["points"] = _points(view.detail.sweeps)
        document["steps"] = _steps(view.detail.sweeps)
    return document


def _dump(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def render(view: View) -> str:
    """The JSON result as text: ASCII only, two spaces of indent, one newline at the end."""
    return _dump(as_dict(view))


def result_part(document: bytes) -> bytes:
    """The part that two runs of the same exact experiment must repeat byte for byte: all but id, times and host."""
    parsed = json.loads(document)
    return _dump({key: value for key, value in parsed.items() if key not in VOLATILE}).encode("ascii")


FORMAT = Format(name="json", suffix=".json", render=render, hidden=True, help="the JSON result, schema kdelta/1")
