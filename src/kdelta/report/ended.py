# SPDX-License-Identifier: GPL-2.0-or-later
"""What is told where two kernels cannot be compared: the figure of the one that ran, how the other ended, and why.

Of the answer, what it says of kernels that came to no figure, or not always.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kdelta.model import GRAVEST_FIRST, UNBOOTED, CellResult, Warn
from kdelta.report.figures import absolute
from kdelta.report.tallies import Tally
from kdelta.results.warnings import KernelComplained
from kdelta.units import finite
from kdelta.verdict import ENDED, at_boot, ended_alone

_PLACES = re.compile(r"\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b")  # where code is, and who executed it
_PANIC = "Kernel panic"  # kernel/panic.c


def word(cell: CellResult) -> str:
    """The verdict, the state where there is none, or "descriptive"."""
    return cell.verdict or ("descriptive" if cell.state == "ok" else UNBOOTED if cell.unbooted else cell.state)


def before(cells: Sequence[CellResult]) -> str:
    """What stands below the baseline: its figure, or how it ended; "-" where that is not known."""
    value = next((cell.baseline for cell in cells if finite(cell.baseline) is not None), None)
    if value is None:
        booted = [cell for cell in cells if cell.patched_label and not cell.unbooted]
        ended = next((cell.sides[0] for cell in booted), "ok")
        if ended != "ok":
            return ended
    return absolute(value, cells[0].unit, cells[0].metric)


def after(cell: CellResult) -> str:
    """What stands below the patched kernel of a cell without effect."""
    if cell.patched_label and finite(cell.patched) is not None:
        return absolute(cell.patched, cell.unit, cell.metric)
    if cell.unbooted:
        return "not yet"
    return cell.state if cell.sides[1] == "ok" else cell.sides[1]


def why(cell: CellResult) -> str:
    """State and reason of a cell without a figure, the state once: a verdict's reason begins with label and state."""
    if f": {cell.state}" in cell.why:
        return cell.why.removeprefix(f"{cell.patched_label}: ").removeprefix(f"{cell.baseline_label}: ")
    return ": ".join(filter(None, (cell.state, cell.why)))


def panics(cells: Sequence[CellResult]) -> dict[str, str]:
    """What patched kernels said when they panicked, by label."""
    found: dict[str, str] = {}
    for cell in cells:
        _, begin, said = cell.why.partition(_PANIC)
        if cell.state == "panicked" and said:
            found.setdefault(cell.patched_label, begin + said)
    return found


def why_none(rows: Sequence[tuple[str, CellResult]]) -> str:
    """Why not one of the rows has a figure on both sides: the gravest reason, and in which case; "" where one has.

    Nor where a kernel does not boot: then its console is told.
    """
    cells = [cell for _, cell in rows]
    if not cells or any(cell.state == "ok" or cell.unbooted or at_boot(cell) for cell in cells):
        return ""
    title, first = min(rows, key=lambda row: GRAVEST_FIRST.index(row[1].state))
    if not first.patched_label:  # the sentence names the kernel, and goes on
        return f"in {title} {why(first)}" if len({cell.why for cell in cells}) > 1 else why(first)
    return why_all(cells) or (first.why and f"In {title}: {first.why}")


def why_all(cells: Sequence[CellResult]) -> str:
    """The reason that all cells share, behind all of their kernels; "" where they have several."""
    parts = [cell.why.partition(": ") for cell in cells]
    labels = dict.fromkeys(label for some, _, _ in parts for label in some.split(", "))
    reasons = {reason for _, _, reason in parts}
    return f"{', '.join(labels)}: {parts[0][2]}" if len(reasons) == 1 and all(reasons) else ""


def nothing_on(label: str, rows: Sequence[tuple[str, CellResult]], unfinished: bool) -> str:
    """A single kernel without a figure: of nothing yet, or never, and why."""
    if unfinished and any(cell.unbooted for _, cell in rows):
        return f"nothing is measured yet on {label}"
    return ": ".join(filter(None, (f"nothing could be measured on {label}", why_none(rows))))


def complaints(warnings: Iterable[Warn]) -> dict[str, str]:
    """The first that each kernel complained of on its console, by label."""
    return {w.kernel: w.lines[0] for w in warnings if isinstance(w, KernelComplained) and w.lines}


def complained(baseline: str, others: Iterable[str], said: Mapping[str, str]) -> str:
    """What the first of ``others`` complained of that went on, where the baseline did not complain of the same.

    A WARN costs as much as it executes, so the figures may be its own.
    """
    known = _PLACES.sub("#", said.get(baseline, ""))
    told = ((label, said.get(label, "")) for label in dict.fromkeys(others))
    found = [(label, text) for label, text in told if text and _PLACES.sub("#", text) != known]
    if not found:
        return ""
    (label, text), more = found[0], len(found) - 1
    who = f"The kernels of {label} and {more} more complain on their consoles" if more else ""
    return f"{who or f'The kernel of {label} complains on its console'}, {baseline} does not: {text}"


def console(tallies: Sequence[Tally], consoles: Mapping[str, str]) -> str:
    """What the first kernel said that failed and said something; of several, which one that was."""
    several = len({tally.patched for tally in tallies}) > 1
    said = ((tally.patched, text) for tally in tallies if tally.ended and (text := consoles.get(tally.patched)))
    return next((f"On {f'the console of {label}' if several else 'its console'}: {text}" for label, text in said), "")


def sometimes(rows: Sequence[tuple[str, CellResult]]) -> str:
    """``7.0 hung in some boots of pipe, 6.12 in none``, the gravest first; "" where none did."""
    found = [(title, cell, state) for title, cell in rows if cell.state == "ok" and (state := ended_alone(cell))]
    if not found:
        return ""
    title, cell, state = min(found, key=lambda one: ENDED.index(one[2]))
    others = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{cell.patched_label} {state} in some boots of {title}{others}, {cell.baseline_label} in none"
