# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments and boots to store, and a PostgreSQL server of the test's own."""

from __future__ import annotations

import hashlib
from typing import Any

from kdelta.model import BootResult, Case, Experiment, Kernel, PlannedBoot, Profile, RunResult, Series, plans

VECTOR = (7, 6, 5, 4, 3, 2, 1)


def kernel(label: str = "6.12", **more: Any) -> Kernel:
    sha256 = hashlib.sha256(label.encode()).hexdigest()
    given = {"label": label, "spec": label, "release": label, "image_path": "/i", "image_sha256": sha256}
    return Kernel(**(given | more))


def experiment(name: str = "first", **more: Any) -> Experiment:
    """Two kernels, two cases, two blocks: four boots."""
    return Experiment(
        **{
            "id": name,
            "mode": "timed",
            "plan": plans.Compare(),
            "kernels": (kernel("6.12"), kernel("7.0")),
            "cases": (Case(workload="pidfd_open"), Case(workload="pipe", label="pipe:writers=2", cgroup="child")),
            "blocks": 2,
            "created_at": "2026-05-01T10:00:00+00:00",
            "command": "kdelta compare debian:6.12 debian:7.0",
            "tool_version": "0.1.0",
            **more,
        }
    )


def run(case: int = 0, base: float = 500.0, **more: Any) -> RunResult:
    series = Series(
        metric="ns_per_op", unit="ns", better="lower", values=(base * 9, base, base + 2, base + 4),
        warm=(True, False, False, False),
    )  # fmt: skip
    profile = Profile(ops=16, functions={"pidfd_create": VECTOR}, total=VECTOR)
    fields: dict[str, Any] = {
        "case": case,
        "state": "ok",
        "series": (series,),
        "histograms": {"latency": b"\x1c\x84\x93\x03\0"},
        "facts": {"inodes": 3.0},
        "profile": profile,
    }
    return RunResult(**{**fields, **more})


def boot(
    block: int = 0, slot: int = 0, kernel_index: int | None = None, base: float = 500.0, **more: Any
) -> BootResult:
    plan = PlannedBoot(block=block, slot=slot, kernel=slot if kernel_index is None else kernel_index)
    fields: dict[str, Any] = {
        "plan": plan,
        "state": "ok",
        "started_at": "2026-05-01T10:00:05+00:00",
        "elapsed_s": 3.5,
        "first_sample_s": 1.25,
        "argv": ("qemu-system-x86_64", "-nodefaults"),
        "machine": {"accel": "tcg"},
        "facts": {"steal_percent": 0.5, "governor": "performance"},
        "console": b"Linux version 6.12\r\n\xff\xfe\0",
        "stream": b'kd1 0 00000000 {"t":"hello"}\n',
        "runs": (run(0, base), run(1, base * 2)),
    }
    return BootResult(**{**fields, **more})
