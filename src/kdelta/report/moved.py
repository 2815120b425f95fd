# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache lines that move between CPUs, before and after: transfers per operation, who reads and who writes."""

from __future__ import annotations

from kdelta.model import MovedLine, Profile

_WHO_SHOWN = 3
_NAME_WIDTH = 44


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
    parts += ["false sharing"] if line.unshared else []
    return f" ({', '.join(parts)})" if parts else ""


def moved_lines(before: Profile, after: Profile, limit: int | None) -> list[str]:
    """The rows of a table, hottest first by the larger side, ``limit`` at most; [] where none moved."""
    old, new = ({line.name: line for line in profile.moved} for profile in (before, after))
    if not old and not new:
        return []

    def per_op(name: str) -> tuple[float, float]:
        sides = ((old, before), (new, after))
        return tuple(side[name].transfers / profile.ops if name in side else 0.0 for side, profile in sides)  # type: ignore[return-value]

    ranked = sorted(old.keys() | new.keys(), key=lambda name: (-max(per_op(name)), name))
    shown = ranked if limit is None else ranked[:limit]
    lines = ["", "cache lines that move between CPUs, transfers per operation", ""]
    lines.append(f"{'line':{_NAME_WIDTH}}{'before':>9}{'after':>9}{'delta':>9}  who, where it moves most")
    for name in shown:
        first, second = per_op(name)
        line = new.get(name) or old[name]
        head = f"{name[: _NAME_WIDTH - 1]:{_NAME_WIDTH}}{first:9.2f}{second:9.2f}{second - first:+9.2f}"
        lines.append(f"{head}  {_who(line)}{_remark(line)}")
    if len(shown) < len(ranked):
        lines.append(f"and {len(ranked) - len(shown)} more (--all)")
    lines.append("A model of coherence alone: no capacity, no latencies; see docs/how-to/contention.md.")
    return lines
