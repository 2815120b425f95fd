# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentences around the figures: how it was measured, how to repeat it, what was left out. Counts, no statistics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kdelta.model import UNBOOTED, CellResult, Experiment, ExperimentResult, Kernel, plans
from kdelta.report import ended, floors
from kdelta.report.causes import more
from kdelta.report.figures import absolute
from kdelta.results.types import Sweep, SweepStep
from kdelta.spec.counted import START
from kdelta.units import counted, finite

_EFFECT = "Effect: Hodges-Lehmann estimate over blocks; confidence interval: exact signed-rank."
_STEPS = (
    "Steps: binary segmentation; a split (largest |t|) is a step where at most 5 % of random permutations within "
    "blocks reach it. Sizes are estimated within blocks. Fewer than 8 blocks show no step."
)
_FEWER_SEEDS = (
    "A version's figure is the median over all its seeds, a step is estimated over the seeds that both versions have: "
    "where these are fewer, its percentage is not that of the two figures."
)
_PRINTED_PERCENT = 0.01  # the least that a printed effect differs by
UNCONTENDED = "uncontended path length (several tasks, one CPU)"
_REP_LEAST = 1.0  # bytes an operation: less is what seeds vary by
_TASK_PARAMS = ("tasks", "threads", "processes", "procs", "writers", "readers")
_WORDS = (
    *("regressed", "improved", "same", "inconclusive", "descriptive"),
    *("unsupported", "lost", "panicked", "hung", "failed", UNBOOTED),
)


def title(result: ExperimentResult) -> str:
    """``compare: 6.12 (baseline) against 7.0, exact``"""
    experiment = result.experiment
    labels = [kernel.label for kernel in experiment.kernels]
    if experiment.in_steps and len(labels) > 2:
        subject = f"{len(labels)} kernels, {labels[0]} to {labels[-1]}"
    elif len(labels) > 1:
        subject = f"{labels[0]} (baseline) against {', '.join(labels[1:])}"
    else:
        subject = "".join(labels)
    beside = ", with counts beside it" if result.counts and experiment.mode == "timed" else ""
    return f"{experiment.kind}: {subject}, {experiment.mode}{beside}"


def summary(result: ExperimentResult, shown: Iterable[CellResult], sweeps: Sequence[Sweep]) -> str:
    """How many cells got which word, in a fixed order; for sweeps, how many steps."""
    shown = tuple(shown)
    words = Counter(ended.word(cell) for cell in shown)
    counts = ", ".join(f"{words[word]} {word}" for word in _WORDS if words[word])
    if sweeps:
        steps = sum(len(sweep.steps) for sweep in sweeps)
        counts = f"{steps} {'step' if steps == 1 else 'steps'} found" + (counts and f"; {counts}")
    made = result.boots_done - result.boots_left_out
    boots = f"{made} of {result.boots_planned} boots done"
    if nothing(result):
        return "nothing was booted"
    if result.decided and result.boots_done < result.boots_planned:
        decided = any(cell.verdict not in (None, "inconclusive") for cell in shown) or bool(sweeps)
        boots = f"stopped early{': decided' if decided else ','} after {made} boots"
    elif result.boots_spared and not missing(result):
        boots = f"{made} boots done; stopped early where decided: {result.boots_spared} were not needed"
    if result.boots_left_out:
        boots += f", {result.boots_left_out} left out: earlier ones had no figure"
    return f"{counts}; {boots}" if counts else boots


def nothing(result: ExperimentResult) -> bool:
    """Whether there was no case to measure: what differs is executed by none."""
    return result.experiment.annotations.looked is not None and not result.experiment.cases


def missing(result: ExperimentResult) -> int:
    """Boots that the plan still asks for."""
    left = result.boots_planned - result.boots_done - result.boots_spared
    return 0 if result.decided else max(0, left)


_FOLDERS = re.compile(r"(?<=[+])/(?:[^+,/]+/)*(?=[^+,/])")  # of patches: a reader of the table has other ones


def kernel(item: Kernel) -> str:
    """What a label stands for: release, the name it was asked by, command line, image."""
    parts = [item.release or "unknown release", item.arch]
    if item.spec and item.spec != item.label:
        parts.append(_FOLDERS.sub("", item.spec) if item.spec.startswith("src:") else item.spec)
    if item.cmdline:
        parts.append(f"cmdline {item.cmdline}")
    if item.image_sha256:
        parts.append(f"image sha256 {item.image_sha256[:12]}")
    return ", ".join(parts)


def levels(step: SweepStep, sweep: Sweep) -> str:
    """What a step in times lies between; "" for exact counts, where it lies between two versions that show it."""
    if step.p_value is None:
        return ""
    before, after = (absolute(value, sweep.unit, sweep.cell.metric) for value in (step.baseline, step.patched))
    return f"level {before} before, {after} from here on; p = {step.p_value:.2g}"


def moved(step: SweepStep, sweep: Sweep) -> str:
    """What string instructions moved before and after a step, where that changed: a count of instructions hides it."""
    by_kernel = {point.kernel: finite(point.rep_bytes) for point in sweep.points}
    before, after = by_kernel.get(step.last), by_kernel.get(step.first)
    if before is None or after is None or absolute(before, "B") == absolute(after, "B"):
        return ""
    return rep_bytes(before, after)


def rep_bytes(before: float, after: float) -> str:
    """What string instructions moved before and after a step."""
    return f"REP bytes {absolute(before, 'B')} before, {absolute(after, 'B')} from here on"


def _task_count(cell: CellResult) -> int:
    """Tasks that ran at once: as the analysis says, else what the case's parameters ask for."""
    if "tasks" in cell.extra and finite(cell.extra["tasks"]) is not None:
        return int(cell.extra["tasks"])
    return sum(int(cell.params[name]) for name in _TASK_PARAMS if cell.params.get(name, "").isdecimal())


def asides(cells: list[CellResult], exact: bool, cpus: int) -> tuple[str, ...]:
    """Lines that must stand beside an exact row: REP bytes, and that several tasks met no contention on one CPU."""
    if not exact:
        return ()
    lines = []
    first = cells[0]
    if first.metric.endswith("instructions"):
        before = (value for c in cells if (value := c.extra.get("rep_bytes_baseline")) is not None)
        figures = [(first.baseline_label, next(before, None))]  # a kernel that failed does not know it
        figures += [(c.patched_label, c.extra.get("rep_bytes_patched")) for c in cells]
        known = [(label, absolute(value, "B")) for label, value in figures if label and value is not None]
        moved = [value for label, value in figures if label and value is not None]
        printed = {told for _, told in known}
        alike = len(known) > 1 and (len(printed) == 1 or max(moved) - min(moved) < _REP_LEAST)  # hides no difference
        if any(value for _, value in figures) and not alike:
            lines.append("REP bytes: " + ", ".join(f"{label} {told}" for label, told in known))
    if cpus == 1 and _task_count(first) > 1:
        lines.append(UNCONTENDED)
    return tuple(lines)


def single(experiment: Experiment) -> bool:
    """Whether there is one kernel, which is compared with nothing."""
    return len(experiment.kernels) == 1


def _seeds(experiment: Experiment) -> str:
    """The plan over seeds: what repeats is a fact at the first look, what varies is judged at the others."""
    looks = experiment.looks
    if len(looks) < 2:
        return counted(experiment.blocks, "seed")
    later = ", ".join(map(str, looks[1:]))
    return f"{looks[0]} seeds, more (looks at {later}) for counts that vary and overlap"


def _repetitions(experiment: Experiment) -> str:
    """Of several CPUs one is made: no two are alike, and within a boot they are no evidence."""
    return "one repetition" if experiment.machine.smp > 1 else f"at most {experiment.effort.repetitions} repetitions"


def _method(experiment: Experiment) -> list[str]:
    if experiment.mode == "exact":
        lines = [
            "Exact: QEMU's emulator counts what the guest executes between two marks, per operation; "
            f"{_seeds(experiment)}, {_repetitions(experiment)} each.",
            "KASLR is off and seeds are fixed: this measures path length, not wall time.",
        ]
        if experiment.machine.smp > 1:
            lines.append(
                "Transfers are those of the kernel's memory, by a model of coherence alone: no capacity, no latencies. "
                "What programs share among themselves, as threads a counter, is not in them."
            )
        if experiment.machine.rep_features:
            lines.append("The guest CPU offers ERMS/FSRM.")
        return lines
    unit = "boot" if single(experiment) else "block"
    boots = f"{experiment.blocks} {unit}{'s' * (experiment.blocks != 1)} planned"
    order = "" if single(experiment) else "each block runs every kernel once in random order, and "
    lines = [f"Timed: {boots}; {order}one boot counts as one observation (the median of its samples)."]
    if not single(experiment):
        lines.append(_STEPS if experiment.in_steps else _EFFECT)
    if experiment.looks:
        lines.append(
            f"Looks planned at {', '.join(map(str, experiment.looks))} blocks; the interval is adjusted for them."
        )
    if counted := plans.counted_by(experiment.plan):
        lines.append(
            f"Counts: experiment {counted} counted what one operation executes, exactly and in emulated guests; time "
            "decides, and they explain."
        )
    if experiment.host.get("accel") == "tcg":
        lines.append(
            "The guests were emulated, so their times resolve only large effects, and what is dear to an emulator "
            "alone (the pause of a spinning loop) looks dear."
        )
    return lines


def _layouts(experiment: Experiment) -> tuple[str, ...]:
    """That boots are spread over several links of the same code."""
    count = max((len(kernel.layouts) for kernel in experiment.kernels), default=0) + 1
    if count == 1:
        return ()
    unit = "seed" if experiment.mode == "exact" else "block"
    same = "; counts that repeat are the same in each" if experiment.mode == "exact" else ""
    return (
        f"Layouts: each kernel is linked {count} times, text and data shifted by paddings; {unit}s take turns{same}.",
    )


def _of_other_seeds(sweeps: Sequence[Sweep]) -> bool:
    """Whether a step of counts, as it is printed, is not what the two figures beside it differ by."""
    for sweep in sweeps:
        shown = {point.kernel: point.value for point in sweep.points}
        for step in sweep.steps:
            before, after = shown.get(step.last), shown.get(step.first)
            if not before or after is None or (before, after) == (step.baseline, step.patched):
                continue
            if abs(100.0 * (after / before - 1.0) - step.effect_percent) >= _PRINTED_PERCENT:
                return True
    return False


def _floors(result: ExperimentResult) -> str:
    experiment = result.experiment
    return floors.told(result.results, experiment.mode == "exact", experiment.definitions.values())


def measured(result: ExperimentResult, sweeps: Sequence[Sweep] = ()) -> tuple[str, ...]:
    """How it was measured: method, noise floor, machine, host, versions."""
    experiment = result.experiment
    machine = experiment.machine
    where = f"QEMU guests with {counted(machine.smp, 'CPU')} and {machine.memory_mib} MiB"
    if machine.native:
        where = "the running machine itself, no guest"
    elif machine.lab:
        alone = "kdelta's program was all that ran, and its disks were not mounted"
        where = f"{machine.lab_name}, no guest; {'inside its installed system' if machine.in_system else alone}"
    if machine.cold:
        where += ", booted for each case and seed: not every kernel can be paused"
    if machine.smp > 1 and experiment.mode == "exact":
        where += f", which take turns of {machine.turn_ns} instructions"
    floorless = single(experiment) or (experiment.in_steps and experiment.mode == "timed")  # steps in times need none
    lines = [
        *_method(experiment),
        *((_FEWER_SEEDS,) if experiment.mode == "exact" and _of_other_seeds(sweeps) else ()),
        *filter(None, () if floorless else (_floors(result),)),
        f"Machine: {where}.",
    ]
    if nothing(result):
        lines = ["Machine code and data of the kernels were compared, and what the cases execute looked up."]
    lines += [f"{case.name} found in the guest: {case.found}." for case in experiment.cases if case.found]
    lines += _layouts(experiment)
    if experiment.host:
        lines.append("Host: " + "; ".join(f"{key} {value}" for key, value in sorted(experiment.host.items())) + ".")
    if experiment.imported:
        lines.append("Imported: measured elsewhere; nothing that it names is run or read here.")
    if experiment.tool_version:
        made = f", started {experiment.created_at}" if experiment.created_at else ""
        lines.append(f"kdelta {experiment.tool_version}, experiment {experiment.id}{made}.")
    return tuple(lines)


def reproduce(result: ExperimentResult) -> tuple[str, ...]:
    """What stands beside the command that repeats the experiment."""
    experiment = result.experiment
    decides = "how each guest is perturbed" if experiment.mode == "exact" else "the order of all boots"
    moot = nothing(result) or (experiment.mode == "timed" and single(experiment))  # there is one order
    lines = [] if moot else [f"Seed {experiment.seed}; it determines {decides}."]
    if not experiment.command:
        lines.append("The command was not recorded; the experiment is stored as " + experiment.id + ".")
    return tuple(lines)


def _gaps(result: ExperimentResult) -> list[str]:
    """Cases without a figure, by what became of them; where that is all of them on a kernel, no case by name."""
    gaps: dict[str, dict[tuple[str, str], None]] = {}
    told_of: set[tuple[str, str]] = set()  # its metrics have one reason: that of the first, by which it is judged
    cases: dict[str, set[str]] = {}
    for cell in result.results:
        label = cell.patched_label or cell.baseline_label
        for one in (cell.baseline_label, label):
            cases.setdefault(one, set()).add(cell.case)
        if cell.state != "ok" and (cell.case, label) not in told_of:
            told_of.add((cell.case, label))
            reason = cell.why if cell.unbooted else ended.why(cell)
            sides = zip((cell.baseline_label, label), cell.sides, strict=True)
            of = [] if cell.unbooted else [one for one, state in sides if state != "ok"]
            for one in of or [label]:
                gaps.setdefault(reason, {})[cell.case, one] = None
    lines = []
    for reason, names in gaps.items():
        all_of = {
            label for label, known in cases.items() if len(known) > 2 and all((one, label) in names for one in known)
        }
        told = [f"all {len(cases[label])} cases on {label}" for label in cases if label in all_of]
        told += [f"{case} on {label}" for case, label in names if label not in all_of]
        lines.append(f"{', '.join(told)} ({reason}).")
    return lines


def _lines_of_none(experiment: Experiment) -> list[str]:
    """Programs with a number of operations: of the difference of two runs nothing is known of single lines."""
    names = [case.name for case in experiment.cases if START in case.params]
    told = ", ".join([*names[: floors.NAMED], *more(max(0, len(names) - floors.NAMED))])
    why = "its figures are a run of 2N operations less one of N, and of two runs no line is the same"
    return [f"Transfers, waits and retries of {told}: {why}."] if names else []


def not_measured(result: ExperimentResult, shown: list[CellResult]) -> tuple[str, ...]:
    """What a reader might believe was covered and was not."""
    lines = _gaps(result)
    visible = set(map(id, shown))
    hidden = [cell for cell in result.results if id(cell) not in visible and cell.state == "ok"]
    swept = result.experiment.in_steps
    if hidden and not swept:
        compared = [cell.verdict for cell in hidden if cell.patched_label]
        changed = sum(verdict in ("improved", "regressed") for verdict in compared)
        undecided = sum(verdict in (None, "inconclusive") for verdict in compared)
        told = f", {changed or 'none'} of them changed" if compared else ""
        told += f", {undecided} undecided" if undecided else ""
        figures = f"{counted(len(hidden), 'figure')}{told}"
        lines.append(f"Measured but not shown here: other metrics ({figures}).")
    looked = result.experiment.annotations.looked
    if looked is not None and nothing(result):
        lines += ["What the changed code costs where it is executed: no case here does."] if looked.differ else []
    elif result.experiment.mode == "exact":
        alone = result.experiment.machine.smp == 1
        what = "contention between CPUs" if alone else "how long a CPU waits"
        lines.append(f"Time, memory, cache and TLB misses, and {what}: exact counts do not include them.")
        if not alone:
            lines.append("Instructions by system call: they are counted on one CPU alone, without --smp.")
            lines += _lines_of_none(result.experiment)
    else:
        lines.append("Other hardware, other configurations, other workloads.")
    if left := missing(result):
        lines.append(f"Planned boots not done: {left}; kdelta resume {result.experiment.id} makes them.")
    return tuple(lines)
