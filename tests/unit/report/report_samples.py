# SPDX-License-Identifier: GPL-2.0-or-later
"""Results made up for the reports' tests: every shape that a report must lay out."""

from __future__ import annotations

import random

from kdelta.model import (
    Because,
    CellResult,
    Experiment,
    ExperimentResult,
    FunctionDelta,
    Kernel,
    MachineOptions,
    Plan,
    Remark,
    plans,
)
from kdelta.results.types import (
    CellName,
    CellPoints,
    Curve,
    Detail,
    Distribution,
    FunctionDiff,
    LegacyLine,
    LegacyView,
    Point,
    Scaling,
    ScalingLine,
)

UNBLOCKED = Remark("drift", "boots became slower over the experiment (0.4 % per block)")
BISTABLE = Remark("bistable", "boots split into two clusters: 480 ns and 530 ns")


def kernel(label: str, release: str = "", cmdline: str = "") -> Kernel:
    digest = format(sum(map(ord, label)), "x").rjust(64, "0")
    return Kernel(
        label=label,
        spec=f"debian:{label}",
        release=release or f"{label}.1-amd64",
        image_path=f"/boot/{label}",
        image_sha256=digest,
        cmdline=cmdline,
    )


def _word(plan: Plan | None) -> str:
    return str((plan or plans.Compare()).__struct_config__.tag)


def experiment(*labels: str, mode: str = "timed", plan: Plan | None = None, **fields: object) -> Experiment:
    values: dict[str, object] = {
        "id": "20260101-000000-abcd",
        "mode": mode,
        "plan": plan or plans.Compare(),
        "kernels": tuple(kernel(label) for label in labels),
        "cases": (),
        "seed": 7,
        "blocks": 12 if mode == "timed" else 3,
        "created_at": "2026-01-01T00:00:00+00:00",
        "tool_version": "0.1.0",
        "host": {"accel": "tcg", "cpu": "Example CPU", "qemu": "7.2"},
        "machine": MachineOptions(),
        "command": f"kdelta {_word(plan)} " + " ".join(f"debian:{label}" for label in labels) + " --seed 7",
    }
    return Experiment(**(values | fields))  # type: ignore[arg-type]


def cell(case: str, metric: str = "latency_p50", **fields: object) -> CellResult:
    values: dict[str, object] = {
        "case": case,
        "params": {},
        "cgroup": "root",
        "mitigations": "default",
        "metric": metric,
        "unit": "ns",
        "better": "lower",
        "primary": True,
        "baseline_label": "6.12",
        "patched_label": "7.0",
        "baseline": 489.0,
        "patched": 349.0,
        "effect_percent": -28.6,
        "interval_percent": (-29.1, -28.0),
        "verdict": "improved",
        "state": "ok",
        "boots": (12, 12),
        "floor_percent": 1.2,
        "p_value": 0.0005,
    }
    return CellResult(**(values | fields))  # type: ignore[arg-type]


def functions() -> tuple[FunctionDelta, ...]:
    rows = [("__call_rcu_common", 12.0, 276.0, "new path"), ("do_dentry_open", 90.0, 261.0, "")]
    rows += [("path_from_stashed", 0.0, 101.0, "new"), ("step_into", 270.0, 0.0, "inlined into walk_component?")]
    rows += [("link_path_walk", 400.0, 533.0, "")]
    return tuple(
        FunctionDelta(function=name, baseline=before, patched=after, delta=after - before, note=note)
        for name, before, after, note in rows
    )


def timed() -> tuple[ExperimentResult, Detail]:
    """Two kernels, timed: each verdict once, a second metric, warnings, histograms, points, scaling, legacy views."""
    results = (
        cell("pidfd_open"),
        cell(
            "pidfd_open",
            "latency_p99",
            primary=False,
            verdict="same",
            effect_percent=0.1,
            interval_percent=(-0.3, 0.4),
        ),
        cell(
            "path_lookup syscall=stat",
            baseline=1234.5,
            patched=1290.0,
            effect_percent=4.5,
            interval_percent=(4.1, 5.0),
            verdict="regressed",
            warnings=(UNBLOCKED, BISTABLE),
            because=functions()[:2],
        ),
        cell(
            "pipe",
            "throughput",
            unit="MB/s",
            better="higher",
            baseline=1119.0,
            patched=1121.0,
            effect_percent=0.2,
            interval_percent=(-0.4, 0.7),
            verdict="same",
        ),
        cell(
            "thread_spawn",
            "ops_per_s",
            unit="ops/s",
            better="higher",
            baseline=21619.0,
            patched=22536.0,
            effect_percent=4.2,
            interval_percent=(-1.5, 9.9),
            verdict="inconclusive",
            detectable_percent=6.1,
            boots_needed=14,
            warnings=(UNBLOCKED,),
        ),
    )
    rng = random.Random(1)

    def points(base: float, patched: float) -> tuple[Point, ...]:
        return tuple(
            Point(block, slot, k, round((base, patched)[k] * (1 + rng.gauss(0, 0.02)) * (1 + 0.002 * block), 3))
            for block in range(12)
            for slot, k in enumerate((0, 1) if block % 2 else (1, 0))
        )

    curves = tuple(
        Curve(kernel=label, points=tuple((p, base * (1 + p / 400) + tail) for p, tail in TAIL))
        for label, base in (("6.12", 450.0), ("7.0", 320.0))
    )
    detail = Detail(
        points=(
            CellPoints(
                cell=CellName(case="pidfd_open", metric="latency_p50"),
                unit="ns",
                better="lower",
                points=points(489, 349),
            ),
            CellPoints(
                cell=CellName(case="path_lookup syscall=stat", metric="latency_p50"),
                unit="ns",
                better="lower",
                points=points(1234, 1290),
            ),
        ),
        distributions=(Distribution(cell=CellName(case="pidfd_open", metric="latency"), unit="ns", curves=curves),),
        scaling=(
            Scaling(
                cell=CellName(case="thread_spawn", metric="ops_per_s"),
                unit="ops/s",
                lines=tuple(
                    ScalingLine(kernel=label, points=tuple((n, base * n**0.8) for n in (1, 2, 4, 8)))
                    for label, base in (("6.12", 21619.0), ("7.0", 22536.0))
                ),
            ),
        ),
        legacy=(
            LegacyView(
                name="kbest", lines=(LegacyLine("case         6.12    7.0"), LegacyLine("pidfd_open   480.0   341.0"))
            ),
        ),
    )
    result = ExperimentResult(
        experiment=experiment("6.12", "7.0", looks=(8, 12, 16, 20)),
        results=results,
        boots_done=23,
        boots_planned=24,
        boots_faulty=("block 3 slot 1 (7.0): lost, no end record; console lost-3-1.log",),
        warnings=(Remark("steal", "the host stole CPU time in 2 boots"),),
    )
    return result, detail


TAIL = ((0.0, 0.0), (50.0, 0.0), (90.0, 20.0), (99.0, 90.0), (99.9, 400.0), (99.99, 2100.0), (100.0, 9000.0))


def exact() -> tuple[ExperimentResult, Detail]:
    """Two kernels, exact: because, REP bytes, several tasks, both cgroups."""
    count: dict[str, object] = {"unit": "instructions", "floor_percent": 0.7, "p_value": None, "boots": (2, 2)}
    results = (
        cell(
            "pidfd_open",
            "instructions",
            **count,
            baseline=3314.0,
            patched=5569.0,
            effect_percent=68.04,
            interval_percent=(68.04, 68.04),
            verdict="regressed",
            because=functions(),
            extra={"rep_bytes_baseline": 0.0, "rep_bytes_patched": 512.0},
        ),
        cell(
            "path_lookup",
            "instructions",
            **count,
            baseline=4025.0,
            patched=2692.0,
            effect_percent=-33.12,
            interval_percent=(-33.12, -33.12),
            verdict="improved",
            because_line=Because(
                gone=("step_into", "walk_component"), gone_delta=-413, changed=(("memset_orig", -671),)
            ),
        ),
        cell(
            "pipe",
            "instructions",
            **count,
            cgroup="child",
            params={"writers": "2", "readers": "1"},
            baseline=120_000.0,
            patched=120_360.0,
            effect_percent=0.3,
            interval_percent=(0.3, 0.3),
            verdict="same",
        ),
    )
    name = CellName(case="pidfd_open", metric="instructions")
    detail = Detail(
        functions=(FunctionDiff(cell=name, baseline_label="6.12", patched_label="7.0", functions=functions()),)
    )
    host = {"accel": "tcg", "qemu": "7.2"}
    return ExperimentResult(
        experiment=experiment("6.12", "7.0", mode="exact", host=host),
        results=results,
        boots_done=6,
        boots_planned=6,
        gate="failed the gate: pidfd selftest pidfd_wait passed on 6.12 and fails on 7.0",
    ), detail


def gaps() -> tuple[ExperimentResult, None]:
    """Unsupported, lost, panicked, inconclusive, descriptive and not finite."""
    nothing: dict[str, object] = {
        "patched": None,
        "effect_percent": None,
        "interval_percent": None,
        "verdict": None,
        "p_value": None,
    }
    results = (
        cell("fork_vmas", "fork_ns", state="unsupported", why="needs CONFIG_ANON_VMA_NAME", **nothing),
        cell("pipe", "latency_p99", state="lost", why="no end record in 3 of 8 boots", **nothing),
        cell("thread_spawn", "ns_per_op", state="panicked", why="Kernel panic - not syncing: VFS", **nothing),
        cell(
            "path_lookup",
            verdict="inconclusive",
            effect_percent=-1.0,
            interval_percent=(-3.0, 1.2),
            detectable_percent=2.5,
            boots_needed=9,
        ),
        cell("pidfd_open", verdict=None, why="4 blocks, 8 are needed", interval_percent=None),
        cell("pidfd_open", "objects_left", unit="", patched=float("nan"), verdict="same"),
    )
    return ExperimentResult(
        experiment=experiment("6.12", "7.0"), results=results, boots_done=10, boots_planned=24
    ), None


def several() -> tuple[ExperimentResult, None]:
    """Five kernels; the fourth lacks one case."""
    labels = ("6.1", "6.12", "6.18", "7.0", "mine-with-a-long-label@v7.1-rc4")
    effects = (0.4, 12.5, -28.6, 104.25)
    words = ("same", "regressed", "improved", "regressed")
    results = []
    for case in ("pidfd_open", "path_lookup syscall=access"):
        for label, effect, word in zip(labels[1:], effects, words, strict=True):
            missing = label == "7.0" and case.startswith("path")
            results.append(
                cell(
                    case,
                    baseline_label="6.1",
                    patched_label=label,
                    patched=None if missing else 349.0,
                    verdict=None if missing else word,
                    state="unsupported" if missing else "ok",
                    why="syscall missing" if missing else "",
                    effect_percent=None if missing else effect,
                    interval_percent=None if missing else (effect - 0.5, effect + 0.5),
                    warnings=(BISTABLE,) if label == "6.18" else (),
                )
            )
    return ExperimentResult(
        experiment=experiment(*labels), results=tuple(results), boots_done=60, boots_planned=60
    ), None
