# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles in the formats of other tools. Pure: name of case -> Profile in, text or bytes out.

Exact counting knows functions, not call stacks, so the stacks are flat: the case, and the function. Counts are of all
operations of a profile; equal profiles give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from kdelta.attribution import serial
from kdelta.attribution.pprof import pprof
from kdelta.model import EXACT_COUNTERS, Profile

__all__ = ["collapsed", "pprof", "speedscope", "vectors_json"]

_SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_FRAME_BREAKERS = str.maketrans({";": ":", "\n": " ", "\r": " "})


def _column(counter: str) -> int:
    return EXACT_COUNTERS.index(counter)


def _by_weight(profile: Profile, column: int) -> list[tuple[str, int]]:
    """Functions with a count, the heaviest first."""
    counted = [(name, counts[column]) for name, counts in profile.functions.items() if counts[column]]
    return sorted(counted, key=lambda item: (-item[1], item[0]))


def collapsed(profiles: Mapping[str, Profile], counter: str = "instructions") -> str:
    """Collapsed ("folded") stacks, one ``case;function count`` a line, as flamegraph.pl and inferno read them."""
    column = _column(counter)
    return "".join(
        f"{case.translate(_FRAME_BREAKERS)};{function.translate(_FRAME_BREAKERS)} {count}\n"
        for case, profile in sorted(profiles.items())
        for function, count in _by_weight(profile, column)
    )


def speedscope(profiles: Mapping[str, Profile], counter: str = "instructions") -> str:
    """speedscope's JSON: one sampled profile per case, each function one sample weighted by its count."""
    column = _column(counter)
    frames: dict[str, int] = {}
    shown: list[dict[str, Any]] = []
    for case, profile in sorted(profiles.items()):
        weighted = _by_weight(profile, column)
        shown.append(
            {
                "type": "sampled",
                "name": f"{case}: {counter.replace('_', ' ')}",
                "unit": "bytes" if counter == "rep_bytes" else "none",
                "startValue": 0,
                "endValue": sum(count for _, count in weighted),
                "samples": [[frames.setdefault(function, len(frames))] for function, _ in weighted],
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
