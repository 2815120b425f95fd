# SPDX-License-Identifier: GPL-2.0-or-later
"""What the macros of a tracepoint or of a static call make, told as one thing. Pure.

TRACE_EVENT() makes some seventeen functions and variables (include/trace/trace_events.h, include/trace/perf.h,
include/trace/bpf_probe.h), of which none runs before somebody switches the tracepoint on. DEFINE_STATIC_CALL() makes
a key and a trampoline (include/linux/static_call.h), and calls go past both where the architecture patches them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MADE = re.compile(
    r"(?:__traceiter_|__SC[TK]__tp_func_|__probestub_|__tracepoint_|__tpstrtab_|(?:do_)?perf_trace_"
    r"|(?:do_)?trace_event_raw_event_|trace_event_get_offsets_|trace_raw_output_|__bpf_trace_(?:tp_map_)?"
    r"|event_(?:class_)?|__event_|print_fmt_|trace_event_(?:fields|type_funcs)_)(\w+)"
)
_KNOWN_BY = re.compile(r"(?:__traceiter_|__tracepoint_|event_class_)(\w+)")  # a class of events has no point of its own
_STATIC_CALL = re.compile(r"__SC[TK]__(\w+)")
_WHAT = "what is made for "
_SYSTEM = re.compile(r"str__\w+__trace_system_name")


def _bare(title: str) -> str:
    return title.partition(" (")[0]


def folded(titles: Sequence[str], among: Iterable[str]) -> list[str]:
    """``titles`` of what differs, those of a tracepoint or static call as one.

    ``among``: all that differs, by which a tracepoint is known.
    """
    points = {match[1] for title in among if (match := _KNOWN_BY.fullmatch(_bare(title)))}
    told: dict[str, None] = {}
    for title in titles:
        made = _MADE.fullmatch(_bare(title))
        if made and made[1] in points:
            told[f"{_WHAT}tracepoint {made[1]}"] = None
        elif call := _STATIC_CALL.fullmatch(_bare(title)):
            told[f"{_WHAT}static call {call[1]}"] = None
        elif points and _SYSTEM.fullmatch(_bare(title)):
            told[f"{_WHAT}tracepoint {min(points)}"] = None
        else:
            told[title] = None
    return [*told]


def alone(told: Sequence[str]) -> bool:
    """Whether all that ``folded`` told is made of tracepoints and static calls."""
    return all(one.startswith(_WHAT) for one in told)
