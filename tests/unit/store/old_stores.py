# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores written by an older kdelta (tests/data/stores), and everything that can be printed of them."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

from kdelta.model import Experiment
from kdelta.report.registry import formats
from kdelta.store.store import Store

DATA = Path(__file__).parents[2] / "data"
OWN_WORKLOADS = DATA / "workloads"  # as "own" beside the user: two experiments of each store use it
MODES = ("exact", "timed")
VIEWS = ("kbest", "lkp", "fastpath", "benchstat")
KINDS = ("compare", "run", "sweep", "bisect", "calibrate")


def unpacked(mode: str, folder: Path) -> str:
    """The URL of a copy of the store in ``folder``."""
    path = folder / f"{mode}.sqlite"
    path.write_bytes(lzma.decompress((DATA / "stores" / f"{mode}.sqlite.xz").read_bytes()))
    return f"sqlite:///{path}"


def report_lines(store: Store) -> Iterator[tuple[str, list[str]]]:
    """(name, argv) of every report that can be printed."""
    found = [store.experiment(row.id) for row in reversed(store.experiments())]
    for experiment in found:
        yield from _of_one(experiment)
    measured = [e for e in found if e.kind not in ("trace", "leaks")]
    for here in measured:
        for there in measured[measured.index(here) + 1 :]:
            if _comparable(here, there):
                for end in ("", "--json"):
                    words = ["report", here.id, "--against", there.id, *filter(None, [end])]
                    yield f"{here.id}.against-{there.id}{end}", words
    yield "history", ["history"]
    for kind in KINDS:
        yield f"history.{kind}", ["history", "--json", "--kind", kind]
    if store.experiments() and any(e.id == "gated-1" for e in found):
        yield "gated-1.ktap", ["report", "gated-1", "--ktap", "init"]


def _of_one(e: Experiment) -> Iterator[tuple[str, list[str]]]:
    if e.kind in ("trace", "leaks"):
        yield f"{e.id}.terminal", ["report", e.id, "-q"]
        yield f"{e.id}.json", ["report", e.id, "--json", "-q"]
        return
    for name in formats():
        yield f"{e.id}.{name}", ["report", e.id, "--format", name]
    yield f"{e.id}.all-metrics", ["report", e.id, "--all-metrics", "-q"]
    if e.mode == "timed" and e.kind == "compare":
        yield from ((f"{e.id}.{view}", ["report", e.id, "--view", view, "-q"]) for view in VIEWS)
    if e.mode == "exact" and len(e.kernels) > 1:
        for case in {case.workload: case.name for case in e.cases}.values():
            yield f"{e.id}.why-{case}", ["why", e.id, case, "--mitigations", "default"]


def _comparable(here: Experiment, there: Experiment) -> bool:
    kernels, cases = (
        ({(k.image_sha256, k.cmdline) for k in e.kernels} for e in (here, there)),
        (here.cases, there.cases),
    )
    shared = len(set.intersection(*kernels))
    return shared >= (2 if here.mode == "timed" else 1) and bool(
        {c.name for c in cases[0]} & {c.name for c in cases[1]}
    )
