# SPDX-License-Identifier: GPL-2.0-or-later
"""The map case x function as text and as JSON (schema kdelta-reach/1)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kdelta.attribution.reach import Near, Part, Reach, Row, of_memcgs
from kdelta.report.scrub import clean
from kdelta.report.text import wrap

_BEYOND = 12  # names that are shown
_GROUPED = "mapped in the root cgroup, where nothing is charged: kdelta compare --memcg counts in a memory cgroup"
_NEVER = "no case executes it in its operations"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _near(found: Near) -> str:
    return f"nearest: {' -> '.join(found.path)} ({found.function}: {found.cases} cases)"


def _rows(function: str, rows: Sequence[Row], limit: int) -> list[str]:
    lines = [f"  {'case':<36} {'calls/op':>9} {'instructions/op':>16} {'share':>9}"]
    for row in rows[:limit]:
        spent = row.functions[function].instructions / row.ops
        lines.append(
            f"  {row.case:<36} {_figure(row.calls_per_op(function)):>9} {_figure(spent):>16}"
            f" {_percent(row.share((function,))):>9}"
        )
    return [*lines, f"  ... and {len(rows) - limit} more"] if len(rows) > limit else lines


def functions_text(reach: Reach, asked: Mapping[str, Sequence[Near]], limit: int) -> str:
    """For each function asked for the cases that execute it, else the nearest callers that one executes."""
    lines: list[str] = []
    for function, near in asked.items():
        rows = reach.executing(function)
        many = f"{len(rows)} of {len(reach.rows)} cases execute it" if rows else _NEVER
        lines.append(f"{function} in {reach.kernel}: {many}")
        if rows:
            lines += _rows(function, rows, limit)
        else:
            none = ["nearest: no direct call leads to it from what cases execute (called through a pointer, or unused)"]
            grouped = [_GROUPED] if of_memcgs([function, *(name for one in near for name in one.path)]) else []
            lines += [f"  {line}" for text in [*([*map(_near, near)] or none), *grouped] for line in wrap(text, 96)]
        lines.append("")
    return "\n".join([*lines, *_elsewhere(reach), *_not_mapped(reach)]).rstrip() + "\n"


def _elsewhere(reach: Reach) -> list[str]:
    """The cases that were mapped on another kernel, and what differs from that one."""
    taken = reach.taken_over
    if not taken:
        return []
    beyond = sorted({name for row in taken for name in row.beyond})
    some = ", ".join(beyond[:_BEYOND]) + (f" and {len(beyond) - _BEYOND} more" if len(beyond) > _BEYOND else "")
    what = f"{len(taken)} of {len(reach.rows)} cases were mapped on another kernel, which differs in {some}: their"
    return wrap(f"{what} operations execute none of it, their set-up may; --anew counts them on this one.", 96)


def _not_mapped(reach: Reach) -> list[str]:
    if not reach.not_mapped:
        return []
    lines = [f"{len(reach.not_mapped)} of {len(reach.rows)} cases say nothing:"]
    return lines + [f"  {row.case}: {row.state}: {clean(row.why)}".rstrip(": ") for row in reach.not_mapped]


def coverage_text(reach: Reach, parts: Sequence[Part], about: str) -> str:
    """How many functions of the kernel the cases execute, by directory where ``parts`` know them."""
    total, hit = sum(part.functions for part in parts), sum(part.executed for part in parts)
    share = _percent(hit / total if total else 0.0)
    lines = [f"{reach.kernel}: {hit} of {total} functions are executed by {len(reach.rows)} cases ({share})"]
    if any(part.name for part in parts):
        lines += ["", f"  {'directory':<28} {'functions':>9} {'executed':>9} {'share':>9}"]
        lines += [
            f"  {part.name or 'not known':<28} {part.functions:>9} {part.executed:>9}"
            f" {_percent(part.executed / part.functions):>9}"
            for part in parts
        ]
    lines += ["", *wrap(about, 96), "", *_elsewhere(reach), *_not_mapped(reach)]
    return "\n".join(lines).rstrip() + "\n"


def document(reach: Reach, asked: Mapping[str, Sequence[Near]], parts: Sequence[Part]) -> str:
    """Both as JSON: the functions asked for, and the coverage."""
    found: dict[str, Any] = {
        "schema": "kdelta-reach/1",
        "kernel": reach.kernel,
        "cases": [
            {"case": row.case, "state": row.state, "why": clean(row.why), "beyond": list(row.beyond)}
            for row in reach.rows
        ],
        "functions": [
            {
                "function": function,
                "cases": [
                    {
                        "case": row.case,
                        "calls_per_op": row.calls_per_op(function),
                        "instructions_per_op": row.functions[function].instructions / row.ops,
                        "share": row.share((function,)),
                    }
                    for row in reach.executing(function)
                ],
                "nearest": [{"function": one.function, "path": one.path, "cases": one.cases} for one in near],
            }
            for function, near in asked.items()
        ],
        "coverage": [{"directory": p.name, "functions": p.functions, "executed": p.executed} for p in parts],
    }
    return json.dumps(found, indent=2) + "\n"
