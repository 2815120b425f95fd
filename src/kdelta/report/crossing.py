# SPDX-License-Identifier: GPL-2.0-or-later
"""What crosses between CPUs over their number, as text: the curves, the lines that grow, what turns disagree on."""

from __future__ import annotations

from collections.abc import Sequence

from kdelta.attribution.exact import TRANSFERS, WAITS
from kdelta.attribution.serial import TRANSFER_INSTRUCTIONS
from kdelta.report.moved import serial_text
from kdelta.results.crossing import Growing, Step, curves

_LINE_WIDTH = 40
_WIDTH = 14


def _figure(step: Step, metric: str, digits: int) -> str:
    value = step.figures.get(metric)
    return f"{'-' if value is None else f'{value:.{digits}f}':>{_WIDTH}}"


def _verdicts(step: Step) -> str:
    """What was judged against the first kernel."""
    told = []
    for metric in ("instructions", TRANSFERS):
        if (word := step.verdicts.get(metric)) is not None:
            effect = step.effects_percent.get(metric)
            told.append(f"{metric} {word}" + (f" ({effect:+.1f} %)" if effect is not None else ""))
    return ", ".join(told)


def _row(step: Step, turns: bool) -> str:
    if not step.figures:
        return f"  {step.cpus:>4}  {step.why or 'not measured'}"
    head = f"  {step.cpus:>4}" + (f"{step.turn_ns:>8}" if turns else "")
    columns = _figure(step, TRANSFERS, 2) + _figure(step, WAITS, 3) + _figure(step, "instructions", 0)
    return f"{head}{columns}{step.waiting:>10.0f}  {_verdicts(step)}".rstrip()


def _serial(curve: Sequence[Step]) -> list[str]:
    """The bound that the most CPUs show; [] where no single line moves."""
    last = curve[-1]
    if last.serial is None:
        return []
    return [f"  serial part on {last.cpus} CPUs: {serial_text(last.serial)}"]


def text(found: Sequence[Step], grows: Sequence[Growing], disagreeing: Sequence[str]) -> list[str]:
    """The lines of the whole answer."""
    turns = len({step.turn_ns for step in found}) > 1
    lines: list[str] = []
    for (case, kernel), curve in curves(found).items():
        head = f"  {'CPUs':>4}" + (f"{'turn ns':>8}" if turns else "")
        lines += ["", f"{case}: {kernel}, per operation"]
        titles = "".join(f"{title:>{_WIDTH}}" for title in ("transfers", "waits", "instructions"))
        lines.append(f"{head}{titles}{'waiting':>10}")
        lines += (_row(step, turns) for step in curve)
        lines += _serial(curve)
        mine = [one for one in grows if (one.case, one.kernel) == (case, kernel)]
        if mine and not turns:
            lines += ["", "  lines that grow with the CPUs, transfers"]
            for one in mine:
                figures = "".join(f"{value:9.2f}" for value in one.transfers)
                lines.append(f"  {one.line[: _LINE_WIDTH - 1]:{_LINE_WIDTH}}{figures}")
    if disagreeing:
        lines += ["", *disagreeing]
    elif turns:
        lines += ["", "All lengths of turns agree on the transfers."]
    lines += [
        "",
        "waits: times that a lock was found taken. waiting: instructions in the slow paths of locks, which are",
    ]
    lines.append("part of all; how long a CPU waits is not counted. Idle CPUs count as nothing. A model of coherence")
    lines.append("alone: no capacity, no latencies; see docs/how-to/contention.md.")
    if any(step.serial is not None for step in found):
        lines.append(
            f"A serial part is a bound on scaling, no forecast: a transfer is taken as {TRANSFER_INSTRUCTIONS}"
        )
        lines.append("instructions long, which is no measurement.")
    return lines
