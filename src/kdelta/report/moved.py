# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache lines that move between CPUs, before and after: transfers per operation, who reads and who writes."""

from __future__ import annotations

from kdelta.model import MovedLine, Profile

_WHO_SHOWN = 3
_NAME_WIDTH = 44
_WORTH_A_WORD = 0.2  # of a line's transfers


def _who(line: MovedLine) -> str:
    """The functions to which it moves most, with what they do there."""
    ranked = sorted(line.by, key=lambda name: (name.startswith("["), -sum(line.by[name]), name))
    told = []
    for name in ranked[:_WHO_SHOWN]:
        reads, writes = line.by[name]
        told.append(f"{name} {'reads and writes' if reads and writes else 'reads' if reads else 'writes'}")
    return ", ".join(told)


def _remark(line: MovedLine) -> str:
    parts = [f"{line.lines} lines"] if line.lines > 1 else []
    if line.unshared >= _WORTH_A_WORD * line.transfers > 0:
        share = f"{100 * line.unshared / line.transfers:.0f} % false sharing"
        parts.append(share + (f": {', '.join(line.beside)}" if line.beside else ""))
    return f" ({', '.join(parts)})" if parts else ""


def _per_op(profile: Profile, name: str) -> float:
    return sum(line.transfers for line in profile.moved if line.name == name) / profile.ops


def moved_lines(before: Profile, after: Profile | None, limit: int | None) -> list[str]:
    """The rows of a table, hottest first by the larger side, ``limit`` at most; [] where none moved.

    Without ``after`` it is about one kernel.
    """
    sides = [before] if after is None else [before, after]
    known = {line.name: line for side in sides for line in side.moved}
    if not known:
        return []
    figures = {name: [_per_op(side, name) for side in sides] for name in known}
    ranked = sorted(known, key=lambda name: (-max(figures[name]), name))
    shown = ranked if limit is None else ranked[:limit]
    heads = "".join(f"{head:>9}" for head in (["per op"] if after is None else ["before", "after", "delta"]))
    lines = ["", "cache lines that move between CPUs, transfers per operation", ""]
    lines.append(f"{'line':{_NAME_WIDTH}}{heads}  who, where it moves most")
    for name in shown:
        columns = "".join(f"{value:9.2f}" for value in figures[name])
        if after is not None:
            columns += f"{figures[name][1] - figures[name][0]:+9.2f}"
        head = f"{name[: _NAME_WIDTH - 1]:{_NAME_WIDTH}}{columns}"
        lines.append(f"{head}  {_who(known[name])}{_remark(known[name])}")
    if len(shown) < len(ranked):
        lines.append(f"and {len(ranked) - len(shown)} more (--all)")
    lines.append("A model of coherence alone: no capacity, no latencies; see docs/how-to/contention.md.")
    return lines
