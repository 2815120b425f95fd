# SPDX-License-Identifier: GPL-2.0-or-later
"""Warnings as sentences: the only place where they become words. One function for each kind of warning."""

from __future__ import annotations

import os
from functools import singledispatch

from kdelta.attribution import warnings as of_traces
from kdelta.model import Remark, Warn
from kdelta.report import doings
from kdelta.report.causes import listed, more
from kdelta.report.figures import count
from kdelta.results import warnings as of_results
from kdelta.stats import warnings as of_data
from kdelta.units import percent
from kdelta.verdict import warnings as of_verdicts

_SEED_CAUSES = "allocator order, random numbers or timer ticks"  # what it can be where no profile tells
_FAULTS_SHOWN = 4
_FAR_TIMES = 3.0  # more than the count that changed most
_OBJECTS = "where the allocator puts an object moves as much"


@singledispatch
def sentence(warning: Warn) -> str:
    """One sentence for people.

    Raises:
        TypeError: a warning that has no sentence here yet.
    """
    raise TypeError(f"report/sentences.py has no sentence for {type(warning).__name__}")


@sentence.register
def _(w: Remark) -> str:
    return w.text


# Too little for a verdict


@sentence.register
def _(w: of_data.TooFewBlocks) -> str:
    return f"a verdict needs {w.needed} complete blocks, only {w.blocks} available"


@sentence.register
def _(w: of_verdicts.SeedsMissing) -> str:
    if not w.planned:
        return "no seed was measured on both kernels: no verdict"
    told, left = f"{w.seeds} of {w.planned} planned seeds were measured: no verdict", w.planned - w.seeds - w.again
    if not left:
        return f"{told}; kdelta resume measures the rest"
    resumed = f"kdelta resume measures {w.again} more, " if w.again else ""
    return f"{told}; {resumed}the same command all anew, with --seed N under other seeds"


@sentence.register
def _(w: of_verdicts.TooFewSeeds) -> str:
    return f"a verdict needs {w.needed} seeds, only {w.seeds} available"


@sentence.register
def _(w: of_verdicts.BeforeFirstLook) -> str:
    return f"{w.blocks} blocks; the first planned look is at {w.first_look}: no verdict yet"


@sentence.register
def _(w: of_verdicts.SeedsVary) -> str:
    return f"varies across {w.seeds} seeds: no verdict before {w.needed} seeds{' or more' if w.at_least else ''}"


@sentence.register
def _(_: of_data.Unblocked) -> str:
    return "the kernels share no block: the effect is confounded with drift, no verdict"


@sentence.register
def _(w: of_verdicts.LegacyMetric) -> str:
    return f"{w.metric} is a legacy metric: shown, but never given a verdict"


@sentence.register
def _(w: of_verdicts.TailOfFew) -> str:
    if w.needed is None:
        return "a maximum does not estimate a percentile: shown, but never given a verdict"
    return f"p{w.percentile:g} needs {w.needed} samples per boot, only {w.samples} available: no verdict"


@sentence.register
def _(w: of_results.StepUnseen) -> str:
    return f"a step needs {w.needed} blocks, only {w.blocks} available"


@sentence.register
def _(w: of_results.StepDetectable) -> str:
    return f"minimum detectable step {w.percent:.1f} %"


# How the boots were made


def _fault(fault: of_verdicts.Fault) -> str:
    if fault.steal_percent is not None:
        return f"block {fault.block}: {fault.kernel} lost {fault.steal_percent:.1f} % to steal"
    if fault.state == "ok":
        return f"block {fault.block}: no value"
    return f"block {fault.block}: {fault.kernel} {fault.state}"


@sentence.register
def _(w: of_verdicts.Dropped) -> str:
    shown = "; ".join(map(_fault, w.faults[:_FAULTS_SHOWN])) + ("; ..." if w.dropped > _FAULTS_SHOWN else "")
    why = next((f"; {fault.kernel}: {fault.why}" for fault in w.faults if fault.why), "")
    return f"{w.dropped} of {w.blocks} blocks dropped: {shown}{why}"


@sentence.register
def _(w: of_data.Drift) -> str:
    return f"both kernels drifted by {w.percent:+.1f} % over the experiment; blocking cancels it"


@sentence.register
def _(_: of_data.OneOrder) -> str:
    return "one kernel always booted first: the order was not randomised and may explain the effect"


@sentence.register
def _(w: of_data.SlotEffect) -> str:
    return f"the first boot of a block differs by {w.percent:+.1f} %; balanced order cancels it"


@sentence.register
def _(w: of_data.HostsDiffer) -> str:
    low, high = f"{w.low_percent:+.1f} % on {w.low_host}", f"{w.high_percent:+.1f} % on {w.high_host}"
    return f"the effect differs between hosts: from {low} to {high}"


@sentence.register
def _(w: of_data.LayoutMoves) -> str:
    return f"layout alone moves this by {w.percent:.2f} % (sd of {w.layouts}; at most {w.at_most_percent:.1f} %)"


@sentence.register
def _(w: of_data.Steal) -> str:
    return f"{w.boots} of {w.of} boots lost more than {w.limit_percent:g} % of CPU time to steal"


@sentence.register
def _(w: of_data.Busy) -> str:
    return f"other load kept {w.cpus:.1f} CPUs of the host busy during the boots: expect more noise"


@sentence.register
def _(w: of_data.Frequency) -> str:
    return f"the CPU frequency differed by {w.percent:.1f} % between boots; fix the governor and turbo"


@sentence.register
def _(w: of_data.Temperature) -> str:
    return f"the host's temperature changed by {w.degrees_c:.0f} degrees C between boots"


@sentence.register
def _(w: of_data.Bistable) -> str:
    return f"bimodal: two clusters of boots {w.percent:.1f} % apart ({w.boots[0]} and {w.boots[1]} boots)"


@sentence.register
def _(w: of_results.TakenOver) -> str:
    return (
        f"{w.boots} of {w.of} boots are reused from experiment {w.experiment}: the same image, command line, "
        "cases, seeds, guest program, plugin and QEMU"
    )


# What a verdict carries with it


@sentence.register
def _(w: of_verdicts.BelowDelta) -> str:
    return f"significant, but below delta ({w.delta_percent:g} %)"


@sentence.register
def _(w: of_verdicts.BelowLeast) -> str:
    return f"no more than {w.least:.2g} per operation apart: so are runs of what does the same"


@sentence.register
def _(w: of_verdicts.WithinFloor) -> str:
    within = "its interval reaches into" if w.reaches else "within"
    return f"{within} the noise floor of this case ({w.floor_percent:.3g} %): {_OBJECTS}"


@sentence.register
def _(_: of_verdicts.MediansHide) -> str:
    return "its counts lie at several levels, so the medians do not show what changes from seed to seed"


@sentence.register
def _(_: of_verdicts.CrossCheck) -> str:
    return "a paired t interval disagrees: the differences are skewed or have outliers"


@sentence.register
def _(_: of_verdicts.Zeros) -> str:
    return "values of 0 or less: judged by differences, not by ratios"


@sentence.register
def _(w: of_verdicts.FromZero) -> str:
    return f"the baseline counts 0, so there is no percentage; now {count(w.patched)}"


@sentence.register
def _(w: of_verdicts.Withdrawn) -> str:
    text = f"not significant after Benjamini-Hochberg ({w.cells} cells, adjusted p = {w.adjusted_p:.3f})"
    return text + (f"; a grid needs {w.blocks} blocks or more" if w.blocks is not None else "")


for said in doings.SENTENCES:
    sentence.register(said)


def _spread(value: float) -> str:
    return f"{value:.2f} %" if value >= 0.005 or not value else "less than 0.01 %"


@sentence.register
def _(w: of_verdicts.Noisy) -> str:
    size = "from 0" if w.spread_percent is None else f"by {_spread(w.spread_percent)}"
    causes = ", ".join([*w.functions, *more(w.more)]) or _SEED_CAUSES
    judged = "" if w.judged is None else f"; judged by the interval over {w.judged} seeds"
    return f"varies {size} across seeds ({causes}){judged}"


@sentence.register
def _(w: of_results.NoNames) -> str:
    told = "; ".join(f"{kernel}: no function names: {why}" for kernel, why in w.why)
    return f"{told or 'no function names'}; totals only"


@sentence.register
def _(w: of_results.ExactLabel) -> str:
    return w.text


@sentence.register
def _(w: of_results.Carried) -> str:
    told = [f"{name.replace('_', ' ')} 0 -> {count(now)}" for name, now in w.new]
    told += [f"{name.replace('_', ' ')} {percent(change, 1)}" for name, change in w.columns]
    if w.function:
        told[0] += f" (most of it in {w.function})"  # of the others it may be elsewhere
    return f"instructions {percent(w.instructions_percent, 1)}, but {', '.join(told)}; time may follow these"


@sentence.register
def _(w: of_results.Layout) -> str:
    return (
        f"layout: {w.moved:+.3g} of {w.moved + w.others:+.3g} lines are of functions that run the same and lie "
        "otherwise across cache lines, as after any change of the code before them"
    )


@sentence.register
def _(w: of_results.Explained) -> str:
    time = f"{w.metric} {percent(w.percent, 1)}"
    still = listed([name.replace("_", " ") for name in w.still]) if w.still else ""
    if w.word not in ("improved", "regressed"):
        if not w.along:
            return f"{w.metric} is undecided; {still or 'no count'} {'the same' if still else 'is decided'}"
        if w.word != "same":
            return (
                f"{w.metric} is undecided, while {doings.columns(w.along)}: more boots would tell whether time follows"
            )
        least = f" ({w.floor_percent:g} %)" if w.floor_percent else ""
        return (
            f"{w.metric} is the same, but {doings.columns(w.along)}: hidden behind what the operation waits for, or "
            f"smaller in time than these boots resolve{least}"
        )
    but = f", though {doings.columns(w.against)}" if w.against else ""
    if w.along:
        most = abs(w.along[0][1])
        more = "; time changes by much more: something else is in it too" if abs(w.percent) > _FAR_TIMES * most else ""
        return f"{time}, and so {doings.columns(w.along)}{but}{more}"
    if w.against:
        return (
            f"{time} although {doings.columns(w.against)}: an instruction costs more or less than before (cache and "
            "TLB misses, mispredicted branches, waiting), which no count here shows"
        )
    if still:
        return f"{time}, {still} the same: layout of the code or of memory, or the host"
    return f"{time}; no count beside it is decided, so nothing explains it yet"


@sentence.register
def _(w: of_results.CountsElsewhere) -> str:
    return f"the counts that explain these times are experiment {w.experiment}, which is not in this store"


@sentence.register
def _(w: of_results.OneTask) -> str:
    return f"the case has one task: on {w.cpus} CPUs it meets nobody, so little moves between them"


@sentence.register
def _(w: of_results.Grows) -> str:
    sides = ", ".join(f"on {kernel} by {percent:.3g} %" for kernel, percent in w.kernels)
    return f"each repetition cost more than the one before ({sides}): the figure hangs on how often the case ran"


@sentence.register
def _(w: of_results.Pressure) -> str:
    kernels = (
        f"{one.kernel}: {one.scanned:.0f} pages scanned, {one.reclaimed:.0f} reclaimed, {one.stalls:.0f} stalls"
        for one in w.kernels
    )
    return "reclaim during a run: " + "; ".join(kernels)


# The whole experiment


@sentence.register
def _(w: of_results.Follows) -> str:
    return f"fresh boots for what experiment {w.experiment} left inconclusive; its own boots are not reused"


@sentence.register
def _(w: of_results.UnknownParameters) -> str:
    return f"{w.kernel}: Unknown kernel parameters: {w.parameters} (misspelled, or without effect on this kernel)"


@sentence.register
def _(w: of_results.KernelComplained) -> str:
    lines = "; ".join([*w.lines, *more(w.more)])
    return f"{w.kernel} complained on its console in {w.boots} of {w.of} boots: {lines}"


@sentence.register
def _(w: of_results.NoCounters) -> str:
    why = of_results.PMU_REASONS.get(w.error, os.strerror(w.error))
    return f"{w.kernel}: no hardware counters of {', '.join(w.cases)}: {why}"


@sentence.register
def _(w: of_results.LeftOut) -> str:
    return f"{', '.join(w.versions)} left out: {w.why}" + (f"; its change counts with {w.behind}" if w.behind else "")


@sentence.register
def _(w: of_results.StepStrings) -> str:
    return f"{w.case}, {w.last} to {w.first}: {doings.strings(w)}"


@sentence.register
def _(w: of_results.CompilerChange) -> str:
    what = "a step between them may come from the compiler" if w.steps else "part of each effect may be the compiler's"
    return f"{w.first} was built by {w.first_compiler}, {w.last} by {w.last_compiler}: {what}"


# Traces


@sentence.register
def _(w: of_traces.TraceDropped) -> str:
    return (
        f"{w.probe}: {w.dropped} of {w.hits} events did not fit into the {w.size} entries of {w.event}: "
        f"raise size= in recipes/collectors/{w.collector}.toml"
    )


@sentence.register
def _(w: of_traces.TraceMissed) -> str:
    return f"probe {w.probe} missed {w.missed} of {w.calls} calls: its counts are too low"


@sentence.register
def _(w: of_traces.TraceFailed) -> str:
    return f"{w.way}: {w.error} at {w.file}: {w.text}: its figures are unreliable"


@sentence.register
def _(w: of_traces.TraceShortened) -> str:
    return f"{w.ops} of {w.asked} operations: more do not fit into half of the time limit when traced"


@sentence.register
def _(w: of_traces.HoldUnclear) -> str:
    return doings.holds(w)
