# SPDX-License-Identifier: GPL-2.0-or-later
"""The job list that a guest reads. Pure; see ARCHITECTURE.md, Contract: jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdelta.errors import UserError
from kdelta.model import Case, Effort, Mode

RESERVED = frozenset(
    {"limit_ms", "warmup", "windows", "window_ms", "latency_ops", "reps", "ops", "cgroup", "batches", "pressure"}
)


def _job(index: int, case: Case, effort: Effort, mode: Mode, exact_ops: int) -> str:
    words = [f"job {index} {case.workload}", f"limit_ms={effort.limit_ms}"]
    if effort.batches:
        words += [f"batches={effort.batches}", f"ops={effort.batch_ops}"]
    elif mode == "exact":
        words += [f"reps={effort.repetitions}", f"ops={exact_ops}"]
    else:
        words += [
            f"warmup={effort.warmup_windows}",
            f"windows={effort.windows}",
            f"window_ms={effort.window_ms}",
            f"latency_ops={effort.latency_ops}",
        ]
    words.append(f"cgroup={case.cgroup}")
    if case.pressure:
        words.append(f"pressure={case.pressure}")
    for key, value in case.params.items():
        if key in RESERVED or not value or any(c.isspace() or not c.isprintable() for c in key + value):
            raise UserError(f"case {case.name}: parameter {key}={value!r} cannot be handed to a guest")
        words.append(f"{key}={value}")
    return " ".join(words)


def jobs_text(
    cases: Mapping[int, Case],
    *,
    mode: Mode,
    efforts: Mapping[int, Effort],
    exact_ops: Mapping[int, int],
    seed: int = 1,
    settle_ms: int = 0,
    snapshot: bool = False,
    traces: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """The job list for ``cases`` by index; with ``snapshot`` the jobs come later, through fw_cfg.

    ``traces``: what a job collects with the kernel's tracefs, as lines of guest/trace.h without their first word.
    """
    lines = ["kdelta-jobs 1", f"set mode {mode}", f"set seed {seed}", f"set settle_ms {settle_ms}"]
    lines.append(f"set snapshot {int(snapshot)}")
    for i, case in sorted(cases.items()):
        lines.append(_job(i, case, efforts[i], mode, exact_ops[i]))
        lines += [f"trace {line}" for line in (traces or {}).get(i, ())]
    return "\n".join([*lines, "end", ""])
