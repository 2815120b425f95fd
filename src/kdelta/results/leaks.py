# SPDX-License-Identifier: GPL-2.0-or-later
"""The leak check: which cases live and die, what their lives left behind, and whether that is a leak.

A guest runs each case in whole lives and tells the settled counts of its kernel's objects after each (see
guest/harness_leaks.c). Here counts become growth per operation. A leak is a verdict of its own: speed never meets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from kdelta.model import Case, Experiment, Kernel, State
from kdelta.stats import slopes
from kdelta.store.store import Store

# One word more on each kernel's command line: caches that are not merged are named by what is in them.
KERNEL_WORDS = "slab_nomerge"
BATCHES = 3
BATCH_OPS = 500
PAGE_BYTES = 4096
LEAST_PER_OP = 0.5  # objects (or pages of free memory) per operation; FEASIBILITY: a planted leak shows as exactly 1

# Every awkward path, and the five cases at a size at which hundreds of lives take seconds.
CASES = (
    "lifetimes:path=clone3|clone3_eagain|clone3_efault|dies_while_held|thread_pidfd|open_fails|peer_pidfd|scm_pidfd"
    "|fork_pids_max|fork_nproc|interrupted_open|pipe_full|named_vmas",
    "pidfd_open:target=child,targets=8",
    "path_lookup",
    "pipe:message=4K",
    "fork_vmas:vmas=64,names=distinct",
    "thread_spawn",
)
_COUNTED = ("dentries", "inodes", "files", "pids")
# Freed areas of vmalloc stay until some 32 MiB of them are purged together: thousands of thread stacks. What still has
# pages is told apart by VmallocUsed, which is held against the threshold instead.
_LAZY = ("slab/vmap_area",)
# TCP remembers a connection that was closed for a minute (TIME_WAIT, RFC 9293), which is longer than lives are apart.
_OF_TIME_WAIT = ("slab/tw_sock_TCP", "slab/tw_sock_TCPv6", "slab/tcp_bind_bucket", "slab/tcp_bind2_bucket")
Verdict = Literal["leak", "clean"]

NOT_RUN = "not run"


class Growth(Struct, frozen=True, kw_only=True):
    """One kind of object: ``per_op`` is its slope, ``batches`` the growth per operation of each batch."""

    what: str
    unit: str  # objects | pages
    per_op: float
    batches: tuple[float, ...]
    leaking: bool


class Finding(Struct, frozen=True, kw_only=True):
    """One case on one kernel. ``verdict`` is None where nothing was measured: see ``state`` and ``why``."""

    kernel: str
    case: str
    state: State
    why: str = ""
    verdict: Verdict | None = None
    ops: int = 0  # of each batch
    growth: tuple[Growth, ...] = ()

    @property
    def leaks(self) -> tuple[Growth, ...]:
        """What leaks, most telling first: dentries, inodes, files, pids, slab caches, pages."""
        return tuple(g for g in self.growth if g.leaking)


def observed(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """The kernels as the leak check boots them."""
    return tuple(msgspec.structs.replace(k, cmdline=f"{k.cmdline} {KERNEL_WORDS}".strip()) for k in kernels)


def counts(facts: Mapping[str, float]) -> dict[str, list[float]]:
    """``leak0:dentries`` ... of one run -> {what: counts before the first batch and after each}; gaps are dropped."""
    batches = int(facts.get("leak_batches", 0))
    names = [name.removeprefix("leak0:") for name in facts if name.startswith("leak0:")]
    found = {what: [facts.get(f"leak{i}:{what}") for i in range(batches + 1)] for what in names}
    return {what: [v for v in values if v is not None] for what, values in found.items() if None not in values}


def _pages(values: Sequence[float]) -> list[float]:
    """Free bytes as pages that are gone."""
    return [-value / PAGE_BYTES for value in values]


def growth(facts: Mapping[str, float]) -> tuple[Growth, ...]:
    """What grew in one run: counted objects first, then slab caches by growth, then pages."""
    ops = facts.get("leak_ops", 0.0)
    found = counts(facts)
    if ops <= 0 or int(facts.get("leak_batches", 0)) < 1:
        return ()
    rows = [_growth(what, "objects", found[what], ops) for what in _COUNTED if what in found]
    waiting = found.get("time_wait", [])
    slabs = [
        _growth(what, "objects", values, ops, waiting if what in _OF_TIME_WAIT else ())
        for what, values in found.items()
        if what.startswith("slab/")
    ]
    rows += sorted(slabs, key=lambda g: (-g.per_op, g.what))
    if "vmalloc_bytes" in found:
        rows.append(_growth("vmalloc", "pages", [v / PAGE_BYTES for v in found["vmalloc_bytes"]], ops))
    if "free_bytes" in found:
        rows.append(_growth("free memory", "pages", _pages(found["free_bytes"]), ops))
    return tuple(rows)


def _growth(what: str, unit: str, values: Sequence[float], ops: float, in_use: Sequence[float] = ()) -> Growth:
    """``in_use`` of them are no leak, at each count."""
    left = [value - used for value, used in zip(values, in_use, strict=True)] if in_use else values
    return Growth(
        what=what,
        unit=unit,
        per_op=round(slopes.slope(values, ops), 6) + 0.0,  # no -0.0, no 1e-17
        batches=slopes.increments(values, ops),
        leaking=what not in _LAZY and slopes.grows(left, ops, LEAST_PER_OP),
    )


def _agreed(runs: Sequence[tuple[Growth, ...]]) -> tuple[Growth, ...]:
    """The first run's growth; a leak must show in every run."""
    leaking = [{g.what for g in run if g.leaking} for run in runs]
    everywhere = set.intersection(*leaking) if leaking else set()
    return tuple(msgspec.structs.replace(g, leaking=g.what in everywhere) for g in runs[0])


def findings(experiment: Experiment, store: Store) -> tuple[Finding, ...]:
    """Every case on every kernel, rebuilt from the store."""
    facts: dict[tuple[int, int], list[dict[str, float]]] = {}
    states: dict[tuple[int, int], tuple[State, str]] = {}
    healthy = {(boot.block, boot.slot) for boot in store.boots(experiment.id) if boot.state == "ok"}
    for number in store.numbers(experiment.id):
        state = number.state if number.boot_state == "ok" else number.boot_state
        states.setdefault((number.kernel, number.case), (state, number.why))
    for row in store.facts(experiment.id):
        if (row.block, row.slot) in healthy and "leak_batches" in row.facts:
            facts.setdefault((row.kernel, row.case), []).append(row.facts)
    return tuple(
        _finding(kernel.label, _called(case), facts.get((k, c), []), states.get((k, c), ("lost", NOT_RUN)))
        for c, case in enumerate(experiment.cases)
        for k, kernel in enumerate(experiment.kernels)
    )


def new(found: Sequence[Finding], baseline: str) -> tuple[Finding, ...]:
    """What leaks on other kernels than ``baseline`` and does not there, or less: each with that alone."""
    before = {(one.case, grown.what): grown.per_op for one in found if one.kernel == baseline for grown in one.leaks}
    kept = [
        msgspec.structs.replace(
            one,
            growth=tuple(g for g in one.leaks if g.per_op - before.get((one.case, g.what), 0.0) >= LEAST_PER_OP),
        )
        for one in found
        if one.kernel != baseline
    ]
    return tuple(one for one in kept if one.growth)


def unchecked(found: Sequence[Finding]) -> tuple[str, ...]:
    """The cases that do not tell whether something leaks: a kernel did not come to their end."""
    return tuple(dict.fromkeys(one.case for one in found if one.verdict is None))


def _called(case: Case) -> str:
    """The case with its path, also the default one, which names leave out: "lifetimes clean" would say it of all."""
    path = case.params.get("path", "")
    return case.name if not path or ":" in case.name else f"{case.name}:path={path}"


def _finding(kernel: str, case: str, runs: Sequence[Mapping[str, float]], state: tuple[State, str]) -> Finding:
    if not runs:
        return Finding(kernel=kernel, case=case, state=state[0], why=state[1])
    rows = _agreed([growth(run) for run in runs])
    return Finding(
        kernel=kernel,
        case=case,
        state="ok",
        verdict="leak" if any(row.leaking for row in rows) else "clean",
        ops=int(runs[0]["leak_ops"]),
        growth=rows,
    )
