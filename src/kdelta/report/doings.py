# SPDX-License-Identifier: GPL-2.0-or-later
"""Sentences on what hangs on more than the kernel: a program's calls, where its tasks run, their waiting, its locks."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from kdelta.attribution import warnings as of_traces
from kdelta.guest import here
from kdelta.report.causes import listed, more
from kdelta.report.figures import count
from kdelta.results import warnings as of_results
from kdelta.units import percent
from kdelta.verdict import warnings as of_verdicts

_CALLS_WHY = {
    "kernel": "they are the same under all seeds",
    "seed": "how many it makes hangs on when things happen and varies with the seed",
    "interval": "an interval of its loop holds one of them more or fewer, whatever the kernel",
}


def columns(found: Sequence[tuple[str, float]]) -> str:
    """Counts with their changes in percent: ``instructions +2.0 % and locked from 0``, which has no percentage."""
    changes = [(name.replace("_", " "), percent(change, 1) if isfinite(change) else "from 0") for name, change in found]
    return listed([f"{name} {told}" for name, told in changes])


def other_calls(w: of_verdicts.OtherCalls | of_verdicts.CallsBeside) -> str:
    """What the program called more or less often, and what the count is worth then."""
    figures = [f"{name} {count(before)} -> {count(after)}" for name, before, after in w.calls]
    named = ", ".join([*figures, *more(w.more)])
    alike = isinstance(w, of_verdicts.OtherCalls) and w.why == "kernel"  # under all seeds
    made = f"the program made other calls ({named} per operation{'' if alike else ', the mean of all seeds'})"
    if isinstance(w, of_verdicts.CallsBeside):
        return f"{made}, so this count gives no verdict, as that of instructions gives none"
    decides = ", so the count gives no verdict" if isinstance(w, of_verdicts.MixedCalls) else ""
    whole, same = f"{percent(w.effect_percent)}", f"{percent(w.same_calls_percent)}"
    cost = ", each at the average cost," if w.averaged else ""
    if w.then_percent is not None:  # which kind of futex(2) was left out, a wait or a wake, is not known
        same += f" at what each costs now, {percent(w.then_percent)} at what it cost there"
    if w.refused:
        made += f"; the {w.by} kernel does not have {listed(w.refused)}, so the program asked in vain and went on"
    if w.less_each:
        why = f"{_CALLS_WHY[w.why]}, and each does less than one did there"
        return f"{made}: {why}, so what as many as on the baseline would come to is not known"
    return f"{made}: with as many as on the baseline{cost} {whole} would be {same}; {_CALLS_WHY[w.why]}{decides}"


def varies(w: of_results.ProgramVaries) -> str:
    """That a program does not do the same in every run."""
    own = "" if w.own_percent is None else f", its own by {w.own_percent:.2f} %"
    calls = [f"{name} {count(low)} to {count(high)}" for name, low, high in w.calls]
    parts = [("calls", [*calls, *more(w.more_calls)]), ("functions", [*w.functions, *more(w.more_functions)])]
    named = "".join(f"; {what}: {', '.join(names)}" for what, names in parts if names)
    return (
        f"the program does not do the same in every run: on {w.kernel} the kernel's instructions vary by "
        f"{w.spread_percent:.2f} %{own}{named}; threads, time and random numbers do that: fix what can be fixed "
        "(--env GOMAXPROCS=1, one thread, a seed), or take the interval as it is"
    )


def printed(w: of_results.PrintedOtherwise) -> str:
    """That a program says other things on one kernel: it may do other work there."""
    if isinstance(w, of_results.PrintedFigures):
        return (
            f'{w.case} printed other figures on {w.kernel}, "{w.line}", than on {w.other}, "{w.instead}": if they say '
            "how much it did, the count is of other work, if how long it took, they say nothing of that"
        )
    return (
        f'{w.case} printed on {w.kernel} and not on {w.other}: "{w.line}"; so it may have done other work there, of '
        "which the count is (--printed shows all of it)"
    )


_REMEDIES = {
    "file": "lacks that (--follow packs what it opens here, --file PATH what you name, --writable lets it write where "
    "it runs)",
    "huge": "lacks huge pages, of which a guest reserves none (--setup \"sh -c 'echo 64 >/proc/sys/vm/nr_hugepages'\", "
    "or hugepages=64 on each command line)",
    "memory": "lacks memory, of which its files take some, too (--memory SIZE gives the guests more)",
    "network": "lacks a network, which guests have not but for 127.0.0.1",
    "right": "was refused that by the guests' kernel",
}


def lacking(w: of_results.PrintedLacking) -> str:
    """That a program said that it lacks something, and went on."""
    return (
        f'{w.case} printed "{w.line}" in the guests: where it does not here, its figures are of a run that '
        f"{_REMEDIES[w.what]}"
    )


def placed(w: of_verdicts.Placed) -> str:
    """Why a count of a program on several CPUs decides nothing."""
    return (
        f"on {w.cpus} CPUs the scheduler places the program's tasks, which all seeds of a kernel share: on identical "
        "kernels that alone moved as much, so the count gives no verdict (one CPU counts the path, --timed its time)"
    )


def same_kernel(w: of_results.SameKernel) -> str:
    """That the counts of a kernel beside itself are no placebo."""
    return (
        f"{w.kernel} is {w.other} again, the same image and command line: under the same seeds its counts are the same "
        'to the last one, which says nothing of noise; a placebo needs another command line, as cmdline="placebo=1"'
    )


def folder_lacking(w: of_results.FolderLacking) -> str:
    """That a program did not find what it was to work on."""
    return (
        f"{w.case} found of {w.folder} only what it runs with, because that is too large to be packed unasked: its "
        f"figures are not of {w.folder} as it is here ({here.packs_all(w.folder)})"
    )


def fewer_cpus(w: of_results.FewerCpus) -> str:
    """That guests had not all CPUs, and what may be the reason."""
    often = "" if w.boots == w.made else f" in {w.boots} of {w.made} boots"
    return (
        f"{w.kernel} came up with {w.cpus} of {w.asked} CPUs{often}: by its command line (maxcpus=, nr_cpus=, nosmp), "
        "by its config (SMP, ACPI), or as a CPU did not start, of which kdelta report --console BLOCK.SLOT tells"
    )


def isolated_cpus(w: of_results.IsolatedCpus) -> str:
    """That tasks had fewer CPUs than the guest."""
    return (
        f"{w.kernel} moves no task to CPUs of its command line's {w.words}: a case that does not pin its tasks ran on "
        "the others alone"
    )


def waited(w: of_verdicts.Waited) -> str:
    """Why a small change of a program that waits decides nothing."""
    return (
        "the program waits, and what the kernel does of itself meanwhile is counted, which moved counts of identical "
        f"kernels by half as much: a change of up to {w.percent:.2g} % gets no verdict (--timed may tell)"
    )


def by_clock(w: of_verdicts.ByClock) -> str:
    """Why a count is no cost where a program runs for a time."""
    none = "; there is no verdict" if isinstance(w, of_verdicts.ByClockAlone) else ""
    own = f"its own instructions, {w.own_before:,.0f} -> {w.own_after:,.0f}, make up for the kernel's"
    if w.less_percent:
        own = f"where the clock goes 10 % faster, it takes {w.less_percent:.0f} % less CPU time"
    return (
        f"the program runs until the clock says so: {own}; the count is the kernel's part of that time, and no cost of "
        f"an operation{none} (give the program a fixed number of operations)"
    )


def deferred(w: of_verdicts.Deferred) -> str:
    """Why a change that is mostly of what the kernel does later, or in bulk, decides nothing."""
    if isinstance(w, of_verdicts.InBulk):
        return _in_bulk(w)
    return (
        "most of the change is in kernel threads and interrupts, which free later, in batches, what the program left; "
        f"how many fall into its run hangs on when that began: without them {percent(w.effect_percent)} of instructions"
        f" would be {percent(w.left_percent)}, so the count gives no verdict (--timed may tell)"
    )


def _in_bulk(w: of_verdicts.InBulk) -> str:
    return (
        "its figures are those of a longer run less a shorter one, and what the kernel does in bulk (it refills page "
        f"lists) falls into both or into one: a change of up to {w.limit_percent:.2g} % made of that gets no "
        "verdict (of more operations it would be less)"
    )


def meanwhile(w: of_verdicts.Meanwhile) -> str:
    """What a change is beside what the kernel does of itself."""
    return (
        "most of the change is in kernel threads and interrupts, also of what the kernel does without the program: "
        f"without them it is {percent(w.left_percent)}"
    )


def idles(w: of_results.Idles) -> str:
    """That operations wait otherwise than on the baseline."""
    if w.anew:
        how = "wait, where on the baseline they do not" if w.more else "no longer wait, where on the baseline they do"
    else:
        how = f"wait {'more' if w.more else 'less'} often than on the baseline"
    if w.grace:
        return (
            f"operations {how}, for a grace period of RCU, which is soon over on one CPU and takes milliseconds on "
            "many: counts do not tell (--timed does, with --smp)"
        )
    return f"operations {how}: all tasks sleep and the CPU idles; for how long, counts do not tell (--timed does)"


def cancels_out(w: of_results.CancelsOut) -> str:
    """That a figure which is the same is so as a sum."""
    moved = ", ".join(f"{one.name} {one.delta:+,.0f} ({percent(one.percent)})" for one in (*w.fewer, *w.more))
    return (
        f"the same as a sum alone: of its system calls some take fewer instructions an operation, others more: {moved}"
    )


def puts_off(w: of_results.PutsOff) -> str:
    """That a gain may be a delay, or that what is done later costs more."""
    so = "part of the gain may be a delay" if w.gain else "it may cost more than the figure says"
    how = f"more is handed over to {' and '.join(w.to)}" if w.to else "as many objects are made and fewer freed"
    return (
        f"{how} than on the baseline: what is done later may be in no count, so {so} (--timed of many operations tells)"
    )


def rearms(w: of_results.Rearms) -> str:
    """That how often a switch of tasks starts a timer hangs on what an instruction takes in an exact guest."""
    return (
        f"most of the change is that timers are started {w.times:.2g} times as often, without which it is "
        f"{percent(w.left_percent)}: where tasks switch that may be the scheduler's tick (hrtick), moved only "
        "where it changes by 5 us, and an instruction takes 1 ns here (--timed tells)"
    )


def busy_waits(w: of_results.BusyWaits) -> str:
    """That instructions of a loop which waits by a clock are a time."""
    how = "longer" if w.instructions > 0 else "less long"
    return (
        f"operations wait {how} in a loop that ends by the clock (udelay() and the like): {w.instructions:+.0f} of the "
        "instructions are a time, 1 ns each here; another CPU takes as long, with another number of them"
    )


def accounts(w: of_verdicts.MixedAccounts) -> str:
    """Where REP counted once and per 8 bytes do not say the same."""
    apart = "the two accounts disagree" if w.once_percent * w.per_word_percent < 0 else "only one of them is a change"
    return (
        f"REP counted once: {percent(w.once_percent)}; counted per 8 bytes moved: {percent(w.per_word_percent)}; "
        f"{apart}, so the instruction count gives no verdict; more boots do not change that, "
        "--timed measures what they cost"
    )


def strings(w: of_verdicts.Strings | of_results.StepStrings) -> str:
    """A change by what string instructions move."""
    whose = f", most of it in {w.function}" if isinstance(w, of_verdicts.Strings) and w.function else ""
    each = percent(w.per_word_percent)
    return f"string instructions count once, whatever they move; with one for each 8 bytes: {each}{whose}"


def holds(w: of_traces.HoldUnclear) -> str:
    """Of how many lock holds the end was not seen."""
    how = "ended in a function that is not known" if w.elsewhere else "began before the last one had ended"
    return f"{w.site}: {w.holds} holds {how}, and are not counted"


SENTENCES = (
    accounts, strings, other_calls, varies, printed, lacking, placed, same_kernel, folder_lacking, fewer_cpus, idles,
    isolated_cpus, waited, by_clock, deferred, meanwhile, puts_off, rearms, busy_waits,
    cancels_out,
)  # fmt: skip
