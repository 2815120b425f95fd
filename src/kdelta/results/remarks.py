# SPDX-License-Identifier: GPL-2.0-or-later
"""What a reader must know beside the figures: of single rows, and of the whole experiment."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from msgspec.structs import replace

from kdelta.attribution.exact import GROWS, LINES_LEAST, TOUCHED, TRANSFERS
from kdelta.guest import here
from kdelta.model import CellResult, Experiment, Kernel, Warn, plans
from kdelta.results import definitions, versions
from kdelta.results.explain import places
from kdelta.results.warnings import (
    Carried,
    ExactLabel,
    FewerCpus,
    FolderLacking,
    Follows,
    Grows,
    IsolatedCpus,
    KernelComplained,
    NoCounters,
    OneTask,
    Pressure,
    Reclaim,
    SameKernel,
    TakenOver,
    UnknownParameters,
)
from kdelta.store.rows import BootRow, FactRow
from kdelta.store.store import Store

_SEVERAL = "with several tasks: "
_SIDE_FIGURES = ("rep_bytes", "rep_executions")
_CARRIES_PERCENT = 2.0  # a change of a count that is worth a word where instructions change by less
_CARRIES_TIMES = 3.0
# An operation: a timer tick in thousands carries nothing.
_CARRIES_LEAST = {"locked": 0.05, **{name: LINES_LEAST for name, _ in TOUCHED}}
_LINES_SHOWN = 2  # of what a kernel complained of


def _side_figures(rows: Sequence[CellResult]) -> list[CellResult]:
    """REP bytes and executions beside the instructions that hide them; none where nobody knows whether they differ."""
    by_key = {(r.case, r.mitigations, r.patched_label, r.metric): r for r in rows}
    found = []
    for row in rows:
        extra = dict(row.extra)
        if row.metric == "instructions":
            for name in _SIDE_FIGURES:
                side = by_key.get((row.case, row.mitigations, row.patched_label, name))
                known = side is not None and side.state == "ok" and side.verdict != "inconclusive"
                if side is not None and known and (side.baseline or side.patched):
                    extra[f"{name}_baseline"] = side.baseline or 0.0
                    if row.patched_label:  # one kernel alone has no other side, which is not 0
                        extra[f"{name}_patched"] = side.patched or 0.0
        found.append(replace(row, extra=extra))
    return found


def _labels(experiment: Experiment, rows: Sequence[CellResult]) -> list[CellResult]:
    """What an exact figure means where that is not plain, as a warning on the row."""
    if experiment.mode != "exact" or experiment.machine.smp > 1:  # the labels speak of one CPU
        return list(rows)
    found = definitions.of(experiment)
    labels = {case.name: found[case.workload].exact_label for case in experiment.cases if case.workload in found}

    def label(row: CellResult) -> str:
        text = labels.get(row.case, "") if row.primary else ""
        # "with several tasks: ..." says nothing of one task
        return "" if text.startswith(_SEVERAL) and row.params.get("tasks") == "1" else text.removeprefix(_SEVERAL)

    return [replace(r, warnings=(*r.warnings, ExactLabel(label(r)))) if label(r) else r for r in rows]


def _carried(rows: Sequence[CellResult]) -> list[CellResult]:
    """Which counts carry an effect that instructions hardly show, as a warning on their row."""
    beside: dict[tuple[str, str, str, str], list[CellResult]] = defaultdict(list)
    for row in rows:
        least = _CARRIES_LEAST.get(row.metric, math.inf)
        far = abs((row.patched or 0.0) - (row.baseline or 0.0)) >= least
        if row.verdict in ("improved", "regressed") and far:
            beside[row.case, row.cgroup, row.mitigations, row.patched_label].append(row)

    def told(row: CellResult) -> CellResult:
        found = beside.get((row.case, row.cgroup, row.mitigations, row.patched_label), [])
        if row.metric != "instructions" or row.effect_percent is None:
            return row
        least = max(_CARRIES_PERCENT, _CARRIES_TIMES * abs(row.effect_percent))
        known = [(one.metric, one.effect_percent) for one in found if one.effect_percent is not None]
        columns = sorted((one for one in known if abs(one[1]) >= least), key=lambda one: -abs(one[1]))
        new = tuple((one.metric, one.patched or 0.0) for one in found if one.effect_percent is None)
        carried = Carried(row.effect_percent, tuple(columns), new=new)
        return replace(row, warnings=(*row.warnings, carried)) if columns or new else row

    return [told(row) for row in rows]


def _alone(experiment: Experiment, rows: Sequence[CellResult]) -> list[CellResult]:
    """That a case has one task where transfers between CPUs were counted, as a warning on that row."""
    found = definitions.of(experiment)
    cases = [case for case in experiment.cases if "pack" not in case.params]  # how many a program has is its own affair
    alone = {case.name for case in cases if case.workload in found and found[case.workload].one_task}
    warn = OneTask(experiment.machine.smp)
    return [
        replace(row, warnings=(*row.warnings, warn)) if row.metric == TRANSFERS and row.case in alone else row
        for row in rows
    ]


def growing(experiment: Experiment, rows: Sequence[CellResult], told: Sequence[FactRow]) -> list[CellResult]:
    """That a count hangs on how often the case ran before, as a warning on its row."""
    grown: dict[tuple[int, int, str], list[float | None]] = defaultdict(list)
    for one in told if experiment.mode == "exact" else ():
        grown[one.case, one.kernel, one.mitigations].append(one.facts.get(GROWS))
    labels = [kernel.label for kernel in experiment.kernels]
    cases = places(case.name for case in experiment.cases)

    def warned(row: CellResult) -> CellResult:
        if row.metric != "instructions":
            return row
        sides = [label for label in dict.fromkeys((row.baseline_label, row.patched_label)) if label in labels]
        seeds = {label: grown[cases[row.case], labels.index(label), row.mitigations] for label in sides}
        found = tuple((k, median(v or 0.0 for v in by)) for k, by in seeds.items() if by and None not in by)
        return replace(row, warnings=(*row.warnings, Grows(found))) if found else row

    return [warned(row) for row in rows] if any(map(any, grown.values())) else list(rows)


def _reclaim(experiment: Experiment, rows: Sequence[CellResult], told: Sequence[FactRow]) -> list[CellResult]:
    """What the memory pressure beside a case came to, as a warning on its primary row."""
    pressed = {case.name: index for index, case in enumerate(experiment.cases) if case.pressure}
    if not pressed:
        return list(rows)
    facts: dict[tuple[str, int], list[dict[str, float]]] = defaultdict(list)
    for one in told:
        facts[experiment.kernels[one.kernel].label, one.case].append(one.facts)
    found = []
    for cell in rows:
        reclaims = []
        for label in dict.fromkeys((cell.baseline_label, cell.patched_label)):
            runs = [f for f in facts.get((label, pressed.get(cell.case, -1)), []) if "reclaim_pgscan" in f]
            if cell.primary and runs:
                pages = {key: median(f[f"reclaim_{key}"] for f in runs) for key in ("pgscan", "pgsteal", "allocstall")}
                reclaims.append(Reclaim(label, pages["pgscan"], pages["pgsteal"], pages["allocstall"]))
        pressure = (Pressure(tuple(reclaims)),) if reclaims else ()
        found.append(replace(cell, warnings=(*cell.warnings, *pressure)))
    return found


def on_rows(experiment: Experiment, store: Store, rows: Sequence[CellResult]) -> list[CellResult]:
    """``rows`` with what belongs beside their figures."""
    exact = experiment.mode == "exact"
    facts = store.facts(experiment.id) if exact or any(case.pressure for case in experiment.cases) else []
    found = growing(experiment, _reclaim(experiment, rows, facts), facts)
    return _alone(experiment, _labels(experiment, _carried(_side_figures(found))))


def on_counters(experiment: Experiment, store: Store) -> tuple[Warn, ...]:
    """Which cases the CPU's own counters were asked of in vain, by kernel and reason."""
    if not experiment.effort.pmu_windows or experiment.mode != "timed":
        return ()
    found: dict[tuple[int, int], dict[str, None]] = defaultdict(dict)
    for row in store.facts(experiment.id):
        if definitions.PMU_ERRNO in row.facts:
            found[row.kernel, int(row.facts[definitions.PMU_ERRNO])][experiment.cases[row.case].name] = None
    labels = [kernel.label for kernel in experiment.kernels]
    return tuple(NoCounters(labels[kernel], tuple(cases), error) for (kernel, error), cases in sorted(found.items()))


def on_experiment(experiment: Experiment, boots: Sequence[BootRow]) -> tuple[Warn, ...]:
    """What holds for all rows."""
    told = (*_unknown(experiment, boots), *_fewer_cpus(experiment, boots), *_complained(experiment, boots))
    told = (*_lacking(experiment), *_isolated(experiment), *told)
    return (*_told(experiment), *_taken_over(boots), *_same(experiment), *told, *versions.remarks(experiment))


def _lacking(experiment: Experiment) -> tuple[Warn, ...]:
    """``find /usr`` in guests whose /usr has what find runs with is no answer about that directory."""
    return tuple(FolderLacking(case.name, folder) for case in experiment.cases for folder in here.lacking(case.found))


def _told(experiment: Experiment) -> tuple[Warn, ...]:
    """What was found out around the measurement: whom it follows, the machine code, the selftests."""
    plan = experiment.plan
    follows = plan.follows if isinstance(plan, plans.Compare) else ""
    return (*([Follows(follows)] if follows else []), *experiment.annotations.notes)


def _taken_over(boots: Sequence[BootRow]) -> tuple[Warn, ...]:
    """Which boots were not made for this experiment, and where they are from."""
    sources = Counter(boot.machine["taken_from"].split(" ")[0] for boot in boots if "taken_from" in boot.machine)
    return tuple(TakenOver(count, len(boots), source) for source, count in sorted(sources.items()))


def _unknown(experiment: Experiment, boots: Sequence[BootRow]) -> tuple[Warn, ...]:
    """Unknown kernel parameters: those of a user's command line that the kernel passed to user space."""
    found: dict[tuple[str, str], None] = {}
    for boot in boots:
        kernel = experiment.kernels[boot.kernel]
        asked = kernel.cmdline.replace('"', "").split()
        words = [word for word in boot.machine.get("unknown", "").split() if word in asked]
        if words:
            found[kernel.label, " ".join(words)] = None
    return tuple(UnknownParameters(label, words) for label, words in found)


def repeated(kernels: Iterable[Kernel]) -> dict[str, str]:
    """The labels of kernels that are an earlier one again, each with that one's."""
    first: dict[tuple[object, ...], str] = {}
    labels = {
        kernel.label: first.setdefault((kernel.image_sha256, kernel.cmdline, kernel.layouts), kernel.label)
        for kernel in kernels
        if kernel.image_sha256
    }
    return {label: earlier for label, earlier in labels.items() if label != earlier}


def _same(experiment: Experiment) -> tuple[Warn, ...]:
    """Kernels that are another one again, where counts are compared: times of such a pair show its noise.

    Where no case is measured, a patch has left the code as it was, and that is the answer.
    """
    if experiment.mode != "exact" or not experiment.cases:
        return ()
    return tuple(SameKernel(label, first) for label, first in repeated(experiment.kernels).items())


def _fewer_cpus(experiment: Experiment, boots: Sequence[BootRow]) -> tuple[Warn, ...]:
    """Which kernels did not bring up all CPUs of their guests: by their config or command line, or as one was late."""
    found: dict[int, list[int]] = defaultdict(list)
    for boot in boots:
        if (cpus := boot.machine.get("nproc", "")).isdecimal():
            found[boot.kernel].append(int(cpus))
    asked = experiment.machine.smp
    return tuple(
        FewerCpus(experiment.kernels[kernel].label, min(cpus), asked, sum(one < asked for one in cpus), len(cpus))
        for kernel, cpus in sorted(found.items())
        if min(cpus) < asked
    )


def _isolated(experiment: Experiment) -> tuple[Warn, ...]:
    """Which kernels keep tasks off some of several CPUs: a case that is counted on one beside two crosses nothing."""
    if experiment.machine.smp < 2:
        return ()
    words = [(one.label, [word for word in one.cmdline.split() if _isolates(word)]) for one in experiment.kernels]
    return tuple(IsolatedCpus(label, " ".join(some)) for label, some in words if some)


def _isolates(word: str) -> bool:
    """isolcpus=[flags,]list: nothing is moved there without flags, or with this one (kernel/sched/isolation.c)."""
    name, _, value = word.strip('"').partition("=")
    flags = [one for one in value.split(",") if one[:1].isalpha() and one[:3] != "all"]
    return name == "isolcpus" and (not flags or "domain" in flags)


def _complained(experiment: Experiment, boots: Sequence[BootRow]) -> tuple[Warn, ...]:
    """What each kernel reported on its console, the most frequent first."""
    found = []
    for index, kernel in enumerate(experiment.kernels):
        said = [boot.machine.get("complaints", "").splitlines() for boot in boots if boot.kernel == index]
        lines = Counter(line for one in said for line in one)
        if lines:
            shown = tuple(line for line, _ in lines.most_common(_LINES_SHOWN))
            boots_with = sum(bool(one) for one in said)
            found.append(KernelComplained(kernel.label, boots_with, len(said), shown, len(lines) - len(shown)))
    return tuple(found)
