# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles in the formats of other tools. Pure: name of case -> Profile in, text or bytes out.

Where calls were followed (attribution/stacks.py), kernel instructions lie under their call stacks; else, and for other
counters, stacks are flat: the case, and the function. Counts are of all operations; equal profiles give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from kdelta.attribution import serial, stacks
from kdelta.attribution.pprof import pprof
from kdelta.attribution.profiles import USER
from kdelta.model import EXACT_COUNTERS, Profile

__all__ = ["collapsed", "perf_script", "pprof", "speedscope", "vectors_json"]

_SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_FRAME_BREAKERS = str.maketrans({";": ":", "\n": " ", "\r": " "})


def _column(counter: str) -> int:
    return EXACT_COUNTERS.index(counter)


def _by_weight(profile: Profile, column: int) -> list[tuple[str, int]]:
    """Functions with a count, the heaviest first."""
    counted = [(name, counts[column]) for name, counts in profile.functions.items() if counts[column]]
    return sorted(counted, key=lambda item: (-item[1], item[0]))


def stacks_of(profile: Profile, counter: str = "instructions") -> list[tuple[tuple[str, ...], int]]:
    """Call stacks with what their last function counted itself, callers first; flat where calls were not followed."""
    if counter != "instructions" or not profile.stacks:
        return [((function,), count) for function, count in _by_weight(profile, _column(counter))]
    user = [((USER,), profile.functions[USER][0])] if USER in profile.functions else []
    return [*user, *stacks.stacks_of(stacks.parse(profile.stacks))]


def collapsed(profiles: Mapping[str, Profile], counter: str = "instructions") -> str:
    """Collapsed ("folded") stacks, a line each: ``case;caller;function count``, as flamegraph.pl and inferno read."""
    return "".join(
        ";".join(frame.translate(_FRAME_BREAKERS) for frame in (case, *path)) + f" {count}\n"
        for case, profile in sorted(profiles.items())
        for path, count in stacks_of(profile, counter)
    )


def _dso(frame: str) -> str:
    return "[unknown]" if frame == USER else "[kernel.kallsyms]"


def perf_script(profiles: Mapping[str, Profile]) -> str:
    """As ``perf script`` prints samples: a head with the count as period, then the stack, its last function first.

    The readers of it (stackcollapse-perf.pl, Firefox Profiler, speedscope) take an event for a sample of that period.
    """
    lines: list[str] = []
    for case, profile in sorted(profiles.items()):
        name = "".join(c if c.isprintable() and not c.isspace() else "_" for c in case)
        for number, (path, count) in enumerate(stacks_of(profile), 1):
            lines.append(f"{name} 1 [000] {number / 1e6:.6f}: {count:>10} instructions:")
            lines += [f"\t{0:>16x} {frame.translate(_FRAME_BREAKERS)} ({_dso(frame)})" for frame in reversed(path)]
            lines.append("")
    return "\n".join([*lines, ""]) if lines else ""


def speedscope(profiles: Mapping[str, Profile], counter: str = "instructions") -> str:
    """speedscope's JSON: one sampled profile per case, each call stack one sample weighted by its count."""
    frames: dict[str, int] = {}
    shown: list[dict[str, Any]] = []
    for case, profile in sorted(profiles.items()):
        weighted = stacks_of(profile, counter)
        shown.append(
            {
                "type": "sampled",
                "name": f"{case}: {counter.replace('_', ' ')}",
                "unit": "bytes" if counter == "rep_bytes" else "none",
                "startValue": 0,
                "endValue": sum(count for _, count in weighted),
                "samples": [[frames.setdefault(frame, len(frames)) for frame in path] for path, _ in weighted],
                "weights": [count for _, count in weighted],
            }
        )
    document = {
        "$schema": _SPEEDSCOPE_SCHEMA,
        "exporter": "kdelta",
        "name": "kdelta",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": shown,
    }
    return json.dumps(document, indent=1) + "\n"


def _crossing(profile: Profile) -> dict[str, object]:
    if not (profile.moved or profile.waits):
        return {}
    return {
        "lines": msgspec.to_builtins(profile.moved),
        "waits": msgspec.to_builtins(profile.waits),
        "serial": msgspec.to_builtins(serial.bound(profile)),
    }


def vectors_json(profiles: Mapping[str, Profile]) -> str:
    """Every function's full vector, by case: ``{"counters": [...], "cases": {case: {ops, total, functions}}}``.

    Of several CPUs also what moved between them (``lines``), the locks found taken (``waits``) and the bound on scaling
    (``serial``), all but the last of ``ops`` operations.
    """
    cases = {
        case: {"ops": profile.ops, "total": list(profile.total), "functions": dict(sorted(profile.functions.items()))}
        | _crossing(profile)
        for case, profile in sorted(profiles.items())
    }
    return json.dumps({"counters": list(EXACT_COUNTERS), "cases": cases}, indent=1) + "\n"
