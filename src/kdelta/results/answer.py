# SPDX-License-Identifier: GPL-2.0-or-later
"""The store's answer to a question: numbers -> verdicts, profiles -> because, joined for the report.

Verdicts are made first and from numbers alone; the functions behind them are added to finished rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from kdelta import verdict
from kdelta.attribution import moved, profiles
from kdelta.attribution.exact import exact_metrics
from kdelta.errors import UserError
from kdelta.model import CellResult, Experiment, ExperimentResult, Metric, Mitigations, Profile, Warn, plans
from kdelta.results import sweep, versions
from kdelta.results.detail import details
from kdelta.results.floors import current_floors
from kdelta.results.types import Detail
from kdelta.spec import workloads
from kdelta.stats import sequential
from kdelta.store.rows import BootRow, Number
from kdelta.store.store import Store
from kdelta.verdict.words import SEED_CAUSES

_SEVERAL = "with several tasks: "
_SIDE_FIGURES = ("rep_bytes", "rep_executions")
Seeds = dict[tuple[int, str], dict[int, list[Profile]]]  # [case, mitigations][kernel] -> one profile per seed
Chosen = dict[tuple[int, str], dict[int, Profile]]  # [case, mitigations][kernel] -> the profile that speaks for it


def _folders(experiment: Experiment) -> tuple[Path, ...]:
    return tuple(path for path in map(Path, experiment.folders) if path.is_dir())


def workloads_of(experiment: Experiment) -> dict[str, workloads.Workload]:
    """The workloads that a stored experiment names and that are still here."""
    known = workloads.catalogue(_folders(experiment))
    return {case.workload: known[case.workload] for case in experiment.cases if case.workload in known}


def metrics_of(experiment: Experiment) -> dict[str, tuple[Metric, ...]]:
    """The metrics of each workload of ``experiment``, by its name."""
    found = workloads_of(experiment)
    if experiment.mode == "exact":
        return {name: exact_metrics(w.part, w.parts_per_op) for name, w in found.items()}
    return {name: w.metrics for name, w in found.items()}


def _facts(boots: Sequence[BootRow]) -> dict[tuple[int, int], dict[str, float]]:
    return {(b.block, b.slot): {k: v for k, v in b.facts.items() if isinstance(v, float)} for b in boots}


def _states(number: Number) -> tuple[str, str]:
    """A run in a boot that failed later counts as the boot does."""
    if number.boot_state != "ok" and number.state == "ok":
        return number.boot_state, "the boot failed after this run"
    return number.state, number.why


def cell_data(
    experiment: Experiment,
    numbers: Sequence[Number],
    boots: Sequence[BootRow],
    metrics: Mapping[str, tuple[Metric, ...]],
    counts: Mapping[tuple[int, int, int], Mapping[str, float]],
) -> list[verdict.CellData]:
    """The store's rows as the verdict engine takes them; a run without figures stands in every metric of its case.

    ``counts[block, slot, case]`` has the facts of a run; ``latency_count`` is the size of its latency histogram.
    """
    facts = _facts(boots)
    cells: dict[tuple[int, Mitigations, str, int], list[verdict.Observation]] = defaultdict(list)
    for number in numbers:
        declared = metrics.get(experiment.cases[number.case].workload, ())
        state, why = _states(number)
        wanted = [m for m in declared if m.name == number.metric] if number.metric else list(declared)
        for metric in wanted:
            samples = number.samples
            if metric.source.startswith("hist:"):
                hist = metric.source.split(":")[1]
                samples = int(counts.get((number.block, number.slot, number.case), {}).get(f"{hist}_count", samples))
            cells[number.case, number.mitigations, metric.name, number.kernel].append(
                verdict.Observation(
                    block=number.block,
                    slot=number.slot,
                    value=number.value if state == "ok" else None,
                    samples=samples,
                    state=state,  # type: ignore[arg-type]
                    why=why,
                    facts=facts.get((number.block, number.slot), {}),
                )
            )
    return [
        verdict.CellData(case=case, mitigations=mitigations, metric=metric, kernel=kernel, boots=tuple(found))
        for (case, mitigations, metric, kernel), found in cells.items()
    ]


def floors_of(experiment: Experiment, store: Store) -> dict[str, float]:
    """Noise floors by case: the workload's own in exact mode, the calibrated ones of this host in timed mode."""
    if experiment.mode == "exact":
        found = workloads_of(experiment)
        return {c.name: found[c.workload].floor_percent for c in experiment.cases if c.workload in found}
    return current_floors(experiment, store)


def seeds_of(experiment: Experiment, store: Store) -> Seeds:
    """For every cell and kernel the profiles of all its seeds, in order."""
    found: Seeds = {}
    for case in range(len(experiment.cases)):
        for row in store.profiles(experiment.id, case):
            found.setdefault((case, row.mitigations), {}).setdefault(row.kernel, []).append(row.profile)
    return found


def _chosen(seeds: Seeds) -> Chosen:
    """For every cell and kernel the profile of its median seed."""
    return {
        cell: {kernel: profiles.median_profile(found) for kernel, found in by_kernel.items()}
        for cell, by_kernel in seeds.items()
    }


def profiles_of(experiment: Experiment, store: Store, row: CellResult) -> tuple[Profile, Profile]:
    """The two profiles behind one row: baseline and patched, of their median seeds.

    Raises:
        UserError: one of them is not there.
    """
    labels = [kernel.label for kernel in experiment.kernels]
    case = next(i for i, c in enumerate(experiment.cases) if c.name == row.case)
    by_kernel = _chosen(seeds_of(experiment, store)).get((case, row.mitigations), {})
    found = by_kernel.get(0), by_kernel.get(labels.index(row.patched_label) if row.patched_label else 0)
    if found[0] is None or found[1] is None:
        raise UserError(f"{row.case}: no profile is stored for {row.baseline_label} or {row.patched_label}")
    return found[0], found[1]


def _of_row(row: CellResult) -> tuple[str, ...]:
    return tuple(dict.fromkeys((row.baseline_label, row.patched_label)))


def _explain(experiment: Experiment, row: CellResult, seeds: Seeds) -> CellResult:
    """The finished ``row`` with the functions that account for it, where it is significant: nothing else has causes."""
    case = next(i for i, c in enumerate(experiment.cases) if c.name == row.case)
    labels = [kernel.label for kernel in experiment.kernels]
    by_kernel = seeds.get((case, row.mitigations), {})
    if row.patched_label not in labels or row.metric != "instructions":
        return row
    before, after = by_kernel.get(0, []), by_kernel.get(labels.index(row.patched_label), [])
    if not before or not after:
        return row
    if not all(map(moved.has_names, (*before, *after))):
        why = experiment.annotations.nameless
        told = [f"{label}: no function names: {why[label]}" for label in _of_row(row) if label in why]
        missing = Warn("no-symbols", f"{'; '.join(told) or 'no function names'}; totals only")
        return replace(row, warnings=(*row.warnings, missing))
    if row.verdict not in ("improved", "regressed") or row.effect_percent is None:
        return row
    deltas, text = sweep.explained(before, after, row.effect_percent)
    return replace(row, because=deltas, because_text=text)


def _seed_functions(experiment: Experiment, row: CellResult, seeds: Seeds) -> str:
    """What differs between the seeds of the side that spreads most; "" where no profile tells."""
    counter = moved.counter_of(row.metric)
    labels = [kernel.label for kernel in experiment.kernels]
    case = next(i for i, c in enumerate(experiment.cases) if c.name == row.case)
    by_kernel = seeds.get((case, row.mitigations), {})
    sides = [by_kernel.get(labels.index(label), []) for label in (row.baseline_label, row.patched_label) if label]
    sides = [side for side in sides if side and all(map(moved.has_names, side))]
    if counter is None or not sides:
        return ""
    side = max(sides, key=lambda found: moved.spread_percent(found, counter))
    return moved.names_text(moved.moved(*moved.extremes(side, counter), among=side, counter=counter))


def _name_seeds(experiment: Experiment, row: CellResult, seeds: Seeds) -> CellResult:
    """The finished ``row``; a warning that its seeds differ names the functions instead of what it may be."""
    if all(warning.code != "noisy" for warning in row.warnings):
        return row
    names = _seed_functions(experiment, row, seeds) or SEED_CAUSES
    told = (Warn(w.code, w.text.replace(SEED_CAUSES, names)) if w.code == "noisy" else w for w in row.warnings)
    return replace(row, warnings=tuple(told))


def _side_figures(rows: Sequence[CellResult]) -> list[CellResult]:
    """REP bytes and executions beside the instructions that hide them."""
    by_key = {(r.case, r.mitigations, r.patched_label, r.metric): r for r in rows}
    found = []
    for row in rows:
        extra = dict(row.extra)
        if row.metric == "instructions":
            for name in _SIDE_FIGURES:
                side = by_key.get((row.case, row.mitigations, row.patched_label, name))
                if side is not None and side.baseline is not None and (side.baseline or side.patched):
                    extra[f"{name}_baseline"] = side.baseline
                    extra[f"{name}_patched"] = side.patched or 0.0
        found.append(replace(row, extra=extra))
    return found


def _labels(experiment: Experiment, rows: Sequence[CellResult]) -> list[CellResult]:
    """What an exact figure means where that is not plain, as a warning on the row."""
    if experiment.mode != "exact":
        return list(rows)
    found = workloads_of(experiment)
    labels = {case.name: found[case.workload].exact_label for case in experiment.cases if case.workload in found}

    def label(row: CellResult) -> str:
        text = labels.get(row.case, "") if row.primary else ""
        # "with several tasks: ..." says nothing of one task
        return "" if text.startswith(_SEVERAL) and row.params.get("tasks") == "1" else text.removeprefix(_SEVERAL)

    return [replace(r, warnings=(*r.warnings, Warn("exact-label", label(r)))) if label(r) else r for r in rows]


def cells_of(experiment: Experiment, store: Store, numbers: Sequence[Number]) -> list[verdict.CellData]:
    """``numbers`` as the verdict engine takes them."""
    counts = (
        {(f.block, f.slot, f.case): f.facts for f in store.facts(experiment.id)} if experiment.mode == "timed" else {}
    )
    return cell_data(experiment, numbers, store.boots(experiment.id), metrics_of(experiment), counts)


def _reclaim(experiment: Experiment, store: Store, rows: Sequence[CellResult]) -> list[CellResult]:
    """What the memory pressure beside a case came to, as a warning on its deciding row."""
    pressed = {case.name: index for index, case in enumerate(experiment.cases) if case.pressure}
    if not pressed:
        return list(rows)
    facts: dict[tuple[str, int], list[dict[str, float]]] = defaultdict(list)
    for row in store.facts(experiment.id):
        facts[experiment.kernels[row.kernel].label, row.case].append(row.facts)
    found = []
    for cell in rows:
        words = []
        for label in dict.fromkeys((cell.baseline_label, cell.patched_label)):
            runs = [f for f in facts.get((label, pressed.get(cell.case, -1)), []) if "reclaim_pgscan" in f]
            if cell.primary and runs:
                pages = {key: median(f[f"reclaim_{key}"] for f in runs) for key in ("pgscan", "pgsteal", "allocstall")}
                words.append(
                    f"{label}: {pages['pgscan']:.0f} pages scanned, {pages['pgsteal']:.0f} reclaimed, "
                    f"{pages['allocstall']:.0f} stalls"
                )
        told = (Warn("pressure", "reclaim during a run: " + "; ".join(words)),) if words else ()
        found.append(replace(cell, warnings=(*cell.warnings, *told)))
    return found


def judged(experiment: Experiment, store: Store, numbers: Sequence[Number]) -> tuple[CellResult, ...]:
    """The verdicts of one experiment, from numbers alone."""
    data = cells_of(experiment, store, numbers)
    return verdict.judge(experiment, data, floors_of(experiment, store), metrics_of(experiment))


def _swept(detail: Detail, experiment: Experiment, store: Store, numbers: Sequence[Number], seeds: Seeds) -> Detail:
    """``detail`` of a sweep with its steps, and the functions behind them instead of those against the first kernel."""
    if not experiment.in_steps:
        return detail
    data = cells_of(experiment, store, numbers)
    found = sweep.sweeps(experiment, data, floors_of(experiment, store), metrics_of(experiment), seeds)
    return replace(detail, sweeps=found, functions=sweep.step_functions(found))


def _told(experiment: Experiment) -> tuple[Warn, ...]:
    """What was found out around the measurement: whom it follows, the machine code, the selftests."""
    plan = experiment.plan
    follows = plan.follows if isinstance(plan, plans.Compare) else ""
    text = f"fresh boots of what experiment {follows} left undecided; its own boots are not used"
    return (*([Warn("follows", text)] if follows else []), *experiment.annotations.notes)


def _taken_over(boots: Sequence[BootRow]) -> tuple[Warn, ...]:
    """Which boots were not made for this experiment, and where they are from."""
    sources = Counter(boot.machine["taken_from"].split(" ")[0] for boot in boots if "taken_from" in boot.machine)
    return tuple(
        Warn(
            "taken-over",
            f"{count} of {len(boots)} boots are taken over from experiment {source}: the same image, command line, "
            "cases, seeds, guest program, plugin and QEMU",
        )
        for source, count in sorted(sources.items())
    )


def _unknown(experiment: Experiment, boots: Sequence[BootRow]) -> tuple[Warn, ...]:
    """Words of a user's command line that the kernel handed on to user space because it does not know them."""
    found: dict[tuple[str, str], None] = {}
    for boot in boots:
        kernel = experiment.kernels[boot.kernel]
        asked = kernel.cmdline.replace('"', "").split()
        words = [word for word in boot.machine.get("unknown", "").split() if word in asked]
        if words:
            found[kernel.label, " ".join(words)] = None
    return tuple(
        Warn("cmdline", f"{label} does not know {words!r} of its command line: misspelt, or without effect there")
        for label, words in found
    )


def _machine(boots: Sequence[BootRow]) -> dict[str, str]:
    """What the boots ran on; several QEMUs in one experiment are all named."""
    return {
        key: ", ".join(sorted({b.machine[key] for b in boots if key in b.machine}))
        for key in ("accel", "qemu")
        if any(key in b.machine for b in boots)
    }


def _faulty(experiment: Experiment, boots: Sequence[BootRow]) -> tuple[str, ...]:
    return tuple(
        f"{experiment.kernels[b.kernel].label}, block {b.block}, slot {b.slot}: {b.state}: {b.why} "
        f"(kdelta report {experiment.id} --console {b.block}.{b.slot})"
        for b in boots
        if b.state != "ok"
    )


def result(store: Store, name: str, views: Sequence[str] = ()) -> tuple[ExperimentResult, Detail]:
    """Everything that a report shows of the experiment ``name``, rebuilt from the store.

    Raises:
        UserError: no such experiment.
    """
    experiment = store.experiment(name)
    numbers = store.numbers(experiment.id)
    boots = store.boots(experiment.id)
    rows = judged(experiment, store, numbers)
    seeds = seeds_of(experiment, store) if experiment.mode == "exact" else {}
    chosen = _chosen(seeds)
    explained = [
        _name_seeds(experiment, _explain(experiment, row, seeds), seeds)
        for row in _labels(experiment, _side_figures(_reclaim(experiment, store, rows)))
    ]
    planned = experiment.blocks * len(experiment.kernels) * len(experiment.mitigations)
    answer = ExperimentResult(
        experiment=replace(experiment, host=experiment.host | _machine(boots)),
        results=tuple(explained),
        boots_done=len(boots),
        boots_planned=planned,
        boots_faulty=_faulty(experiment, boots),
        gate=experiment.annotations.gate,
        warnings=(*_told(experiment), *_taken_over(boots), *_unknown(experiment, boots), *versions.remarks(experiment)),
    )
    detail = details(experiment, store, numbers, rows, chosen, views)
    return answer, _swept(detail, experiment, store, numbers, seeds)


def undecided(store: Store, experiment: Experiment, blocks: int) -> tuple[int, ...]:
    """The cases that are still open after ``blocks`` blocks; decided once, stored, and read back ever after."""
    for look in store.looks(experiment.id):
        if look.blocks == blocks:
            return tuple(int(index) for index in look.payload["open"])
    metrics = metrics_of(experiment)
    numbers = [n for n in store.numbers(experiment.id) if n.block < blocks]
    counts = {(f.block, f.slot, f.case): f.facts for f in store.facts(experiment.id)}
    data = cell_data(experiment, numbers, store.boots(experiment.id), metrics, counts)
    floors = floors_of(experiment, store)
    still = tuple(sorted(verdict.still_undecided(experiment, data, floors, metrics)))
    rows = verdict.judge(experiment, data, floors, metrics)
    decided = {
        f"{r.case}/{r.metric}/{r.mitigations}/{r.patched_label}": str(r.verdict or r.state) for r in rows if r.primary
    }
    store.save_look(
        experiment.id,
        blocks,
        decided,
        sequential.plan(experiment.looks).spent[experiment.looks.index(blocks)],
        {"open": list(still)},
        final=not still,
    )
    return still
