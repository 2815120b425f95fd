# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as KCIDB v5 JSON: a checkout and a build for each kernel, a test for each cell, with its figure.

Schema: package kcidb-io, ``kcidb_io.schema.V5_0``. ``origin`` is the CI system that submits; KCIDB gives it out with
the permission to submit, so a system that has one says it (``KDELTA_ORIGIN``). Paths hold no release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kdelta.model import UNBOOTED, CellResult, Gap, Kernel
from kdelta.report.outcomes import broke
from kdelta.report.registry import Format
from kdelta.report.view import Cell, Group, Row, View
from kdelta.results.types import SweepPoint
from kdelta.units import finite
from kdelta.verdict import ended_alone

ORIGIN = re.compile(r"^[a-z0-9_]+$")
_PATH = re.compile(r"[^a-zA-Z0-9_-]+")
_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_EXCERPT_CHARS = 16_000
_STATUS = {
    "improved": "PASS",
    "same": "PASS",
    "regressed": "FAIL",
    "panicked": "FAIL",
    "lost": "ERROR",
    "hung": "ERROR",
    "failed": "ERROR",
    "unsupported": "SKIP",
}  # what has no verdict is DONE: a figure, and no word on the kernel


def path(*names: str) -> str:
    """``kdelta.pipe.instructions``: each name a node of KCIDB's tree, in the letters that it allows."""
    return ".".join(["kdelta", *(_PATH.sub("_", name).strip("_") or "_" for name in names)])


class _Document:
    """Names of the objects of one report: all begin with the origin, then the experiment."""

    def __init__(self, view: View) -> None:
        self.view, self.experiment = view, view.result.experiment
        self.origin = view.options.origin
        self.base = f"{self.origin}:{self.experiment.id}"
        self.builds = {kernel.label: f"{self.base}.{index}" for index, kernel in enumerate(self.experiment.kernels)}

    def started(self) -> dict[str, str]:
        try:
            at = datetime.fromisoformat(self.experiment.created_at)
        except ValueError:
            return {}
        return {"start_time": at.isoformat()} if at.tzinfo else {}

    def object(self, name: str, **fields: Any) -> dict[str, Any]:
        return {"id": name, "origin": self.origin, **fields}


def _kernels(document: _Document) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The checkout and the build of each kernel."""
    compilers = document.experiment.annotations.compilers
    for index, kernel in enumerate(document.experiment.kernels):
        name = document.builds[kernel.label]
        compiler = compilers[index] if index < len(compilers) else ""
        yield (
            document.object(name, comment=kernel.spec or kernel.label, valid=True, **_commit(kernel)),
            document.object(
                name, checkout_id=name, comment=kernel.label, architecture=kernel.arch, status="PASS",
                **({"compiler": compiler} if compiler else {}), misc=_image(kernel),
            ),
        )  # fmt: skip


def _commit(kernel: Kernel) -> dict[str, str]:
    """The commit that a kernel was built from, where its origin names one."""
    found = set(_COMMIT.findall(kernel.origin))
    return {"git_commit_hash": found.pop()} if len(found) == 1 else {}


def _image(kernel: Kernel) -> dict[str, str]:
    return {"release": kernel.release, "image_sha256": kernel.image_sha256, "cmdline": kernel.cmdline}


def _gap(document: _Document, index: int, gap: Gap) -> tuple[dict[str, Any], dict[str, Any]]:
    """A version that did not build, or that this host could not get."""
    name = f"{document.base}.gap{index}"
    status = "MISS" if gap.by_host else "FAIL"
    return (
        document.object(name, comment=gap.spec, valid=True),
        document.object(name, checkout_id=name, comment=gap.label, status=status, log_excerpt=gap.why[:_EXCERPT_CHARS]),
    )


def _number(value: float | None, unit: str) -> dict[str, Any]:
    found = finite(value)
    return {} if found is None else {"number": {"value": found, **({"unit": unit} if unit else {})}}


def _status(cell: CellResult) -> str:
    return "FAIL" if ended_alone(cell) else _STATUS.get(cell.verdict or cell.state, "DONE")


def _misc(cell: CellResult) -> dict[str, Any]:
    effect, bounds = finite(cell.effect_percent), cell.interval_percent
    interval = [finite(bound) for bound in bounds] if bounds else None
    return {
        "better": cell.better,
        "verdict": cell.verdict,
        "baseline": cell.baseline_label,
        "baseline_value": finite(cell.baseline),
        "effect_percent": effect,
        "interval_percent": interval,
        "boots": list(cell.boots),
        "params": cell.params,
    }


def _tests(document: _Document) -> Iterator[dict[str, Any]]:
    """Of each row the baseline's figure, then each patched kernel's with what it was found to be; first the gate.

    What was not booted yet is left out: SKIP would say that it is not applicable, under an id that gets a figure later.
    """
    if document.view.gate:
        yield document.object(
            f"{document.base}.gate", build_id=document.builds[document.experiment.kernels[-1].label], status="FAIL",
            path=path("gate"), comment="gate", log_excerpt=document.view.gate, **document.started(),
        )  # fmt: skip
    seen: set[tuple[str, str]] = set()
    for number, (group, row, cell) in enumerate(document.view.cells()):
        if (group.title, row.metric) not in seen and cell.source.patched_label:
            seen.add((group.title, row.metric))
            yield from _baseline(document, number, group, row, cell)
        if not cell.source.unbooted:
            yield _test(document, f"{document.base}.t{number}", group, row, cell)


def _baseline(document: _Document, number: int, group: Group, row: Row, cell: Cell) -> Iterator[dict[str, Any]]:
    measured = _number(cell.source.baseline, cell.source.unit)
    if measured:
        yield document.object(
            f"{document.base}.b{number}", build_id=document.builds[cell.source.baseline_label], status="DONE",
            path=path(group.title, row.metric), comment=f"{group.title}: {row.metric}",
            **measured, **document.started(),
        )  # fmt: skip


def _test(document: _Document, name: str, group: Group, row: Row, cell: Cell) -> dict[str, Any]:
    source = cell.source
    value = source.patched if source.patched_label else source.baseline
    said = "\n".join(filter(None, (cell.figure, cell.sentence)))
    return document.object(
        name, build_id=document.builds[source.patched_label or source.baseline_label], status=_status(source),
        path=path(group.title, row.metric), comment=f"{group.title}: {row.metric}",
        **({"log_excerpt": said[:_EXCERPT_CHARS]} if said else {}),
        **(_number(value, source.unit) if source.state == "ok" else {}), misc=_misc(source), **document.started(),
    )  # fmt: skip


def _versions(document: _Document) -> Iterator[dict[str, Any]]:
    """The versions of a sweep: a figure each, with the step that arrives there."""
    for index, table in enumerate(document.view.sweeps):
        sweep = table.source
        steps = {step.first: step for step in sweep.steps}
        for place, (row, point) in enumerate(zip(table.rows, sweep.points, strict=True)):
            if point.kernel not in document.builds or row.sentence == UNBOOTED:
                continue  # a gap: its build says it; or not booted yet
            step = steps.get(point.kernel)
            status = _STATUS.get(row.verdict, "PASS" if row.verdict in ("first", "as before") else "DONE")
            status = "FAIL" if broke(table.rows, place) else status
            said = " ".join(filter(None, (row.change, row.sentence or row.unseen)))
            yield document.object(
                f"{document.base}.s{index}.{place}", build_id=document.builds[point.kernel], status=status,
                path=path(sweep.cell.case, sweep.cell.metric), comment=table.title,
                **({"log_excerpt": said[:_EXCERPT_CHARS]} if said else {}), **_figure(point, sweep.unit),
                **({"misc": {"effect_percent": finite(step.effect_percent), "since": step.last}} if step else {}),
                **document.started(),
            )  # fmt: skip


def _figure(point: SweepPoint, unit: str) -> dict[str, Any]:
    return _number(point.value, unit) if point.state == "ok" else {}


def as_dict(view: View) -> dict[str, Any]:
    """The submission as one object."""
    document = _Document(view)
    pairs = [
        *_kernels(document),
        *(_gap(document, index, gap) for index, gap in enumerate(document.experiment.annotations.gaps)),
    ]
    return {
        "version": {"major": 5, "minor": 0},
        "checkouts": [checkout for checkout, _ in pairs],
        "builds": [build for _, build in pairs],
        "tests": [*_tests(document), *_versions(document)],
    }


def render(view: View) -> str:
    """The submission as text, for ``kcidb-submit``."""
    return json.dumps(as_dict(view), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


FORMAT = Format(name="kcidb", suffix=".kcidb.json", render=render, help="KCIDB v5 JSON, for kcidb-submit")
