# SPDX-License-Identifier: GPL-2.0-or-later
"""The largest steps of the stored sweeps as a page in Markdown: no figure in it is typed by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdelta.report import behind, prose, rewritten
from kdelta.report.figures import absolute, effect, interval
from kdelta.report.markdown import escape
from kdelta.report.scrub import clean
from kdelta.report.view import cell_title
from kdelta.results.findings import Finding, Swept
from kdelta.results.types import SweepStep
from kdelta.units import counted

_ALIKE_SHOWN = 6
_REP_OTHERWISE, _CALLS_OTHERWISE = 0.05, 0.25  # of a change: what another account makes of it is told from here on
_COMMITS_SHOWN = 3
_TICKLESS = (
    "The idle CPU stops its timer tick on one of the two alone: a matter of how long it expects to be idle in emulated "
    "time rather than of cost"
)
_SLEEPLESS = "Tasks wait for a timer on one of the two alone: a matter of emulated time rather than of cost"
_HEAD = """# Findings

Made by `kdelta findings` from stored sweeps: the largest steps between neighbouring kernels, the largest change first.
Counts are per operation and exact; the range behind a change is its interval. "Also" are cases whose step between the
same kernels is led by the same function. A REP instruction counts once, however much it moves: steps stand in the order
of the smaller change, with it as one or as one for each 8 bytes. Steps that come and go with the compiler are left out;
those of which one side alone waits for a timer, because on the other it runs out before, or stops its tick are last.
"""


def reason(finding: Finding) -> str:
    """The functions or lines behind a step, "" where none are known."""
    step = finding.step
    return behind.text(finding.cell.metric, step.because, step.because_line)


def title(finding: Finding) -> str:
    """The case, and the kernels that the step lies between."""
    return f"{clean(cell_title(finding.cell))}: {clean(finding.step.last)} to {clean(finding.step.first)}"


def figure(finding: Finding) -> str:
    """The change with its interval and the two figures."""
    step, metric = finding.step, finding.cell.metric
    bounds = interval(step.interval_percent, finding.mode == "exact")
    both = " to ".join(absolute(value, finding.unit, metric) for value in (step.baseline, step.patched))
    return f"{effect(step.effect_percent)} {bounds}".strip() + f" {clean(metric)}, {both}"


def doubt(finding: Finding) -> str:
    """Why a step may say nothing of a real machine; "" where nothing is known against it."""
    return _SLEEPLESS if finding.sleepless else _TICKLESS if finding.tickless else ""


def strings(finding: Finding) -> str:
    """What string instructions moved, and what the program's calls did, where the change is another without that."""
    step, told = finding.step, []
    if finding.rep_bytes and _otherwise(step, step.effect_rep8_percent, _REP_OTHERWISE):
        words = f"with one instruction for each 8 of these the change is {effect(step.effect_rep8_percent)}"
        told.append(f"{prose.rep_bytes(*finding.rep_bytes)}; {words}")
    if _otherwise(step, step.effect_same_calls_percent, _CALLS_OTHERWISE):
        told.append(f"with as many system calls as before the change is {effect(step.effect_same_calls_percent)}")
    return "; ".join(told)


def _otherwise(step: SweepStep, other: float | None, share: float) -> bool:
    return other is not None and abs(step.effect_percent - other) >= share * abs(step.effect_percent)


def alike(finding: Finding) -> str:
    """The other cases of the same step with their changes."""
    shown = [f"{clean(cell_title(cell))} {effect(change)}" for cell, change in finding.alike[:_ALIKE_SHOWN]]
    more = len(finding.alike) - _ALIKE_SHOWN
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def changes(finding: Finding) -> list[str]:
    """A line for each function behind a step that commits between the two releases change."""
    lines = []
    for one in finding.changes:
        shown = [f'{commit.short} ("{clean(commit.subject)}")' for commit in one.commits[:_COMMITS_SHOWN]]
        more = len(one.commits) - _COMMITS_SHOWN
        told = ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])
        lines.append(f"{clean(one.function)} was changed between {one.before} and {one.after} by {told}")
    return lines


def more(one: rewritten.Told) -> str:
    """How much of a diff is not shown."""
    return f"{one.more} {'more lines' if one.diff else 'lines'} not shown"


def _sources(told: Sequence[rewritten.Told]) -> list[str]:
    """What became of the functions' text, with the diff in blocks that nothing in it can end."""
    lines = []
    for one in told:
        lines += [escape(one.text), ""]
        if one.diff:
            fence = "`" * max(3, 1 + max(len(run) for line in one.diff for run in re.findall("`*", line)))
            lines += [f"{fence}diff", *one.diff, fence, ""]
        if one.more:
            lines += [more(one), ""]
    return lines


def guests(one: Finding) -> str:
    """What tells its guests from the usual ones, to stand behind a name; "" of those."""
    arch = one.kernels[1].arch
    return ("" if arch == "x86_64" else f", {arch}") + (f", {one.cpus} CPUs" if one.cpus > 1 else "")


def markdown(findings: Sequence[Finding], read: Sequence[Swept]) -> str:
    """The page; ``read`` are the sweeps that the findings are from."""
    lines = [_HEAD]
    for number, (finding, told) in enumerate(zip(findings, rewritten.of_all(findings), strict=True), 1):
        lines += [f"## {number}. {escape(title(finding))}", "", f"{escape(figure(finding))}  "]
        if text := reason(finding):
            lines.append(f"Because {escape(clean(text))}  ")
        if text := strings(finding):
            lines.append(f"{escape(text)}  ")
        lines += [f"{escape(line)}  " for line in changes(finding)]
        if text := doubt(finding):
            lines.append(f"{text}  ")
        if finding.compiler:
            lines.append(f"The compiler changed too, and may explain it: {escape(clean(finding.compiler))}  ")
        if finding.alike:
            lines.append(f"Also: {escape(alike(finding))}  ")
        lines += [f"Experiment {escape(finding.experiment)}{guests(finding)}", "", *_sources(told)]
    if not findings:
        lines += ["No sweep in the store has a step. `kdelta sweep debian:6.1..7.0` makes one.", ""]
    lines += ["## Read for this page", ""]
    for one in read:
        e = one.experiment
        kernels = ", ".join(escape(clean(kernel.label)) for kernel in e.kernels)
        steps = sum(len(sweep.steps) for sweep in one.sweeps)
        cases = counted(len({sweep.cell.case for sweep in one.sweeps if sweep.measured}), "case")
        lines.append(f"- {escape(e.id)}: {cases}, {counted(steps, 'step')}; {kernels}")
    return "\n".join(lines).rstrip() + "\n"
