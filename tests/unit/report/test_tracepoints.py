# SPDX-License-Identifier: GPL-2.0-or-later
"""What a tracepoint is made of is told as one thing."""

from __future__ import annotations

from kdelta.model import Looked, Unreached
from kdelta.report import looked as looked_at
from kdelta.report import tracepoints

MADE = (
    "perf_trace_eventfd_read (new, used by pointer alone)",
    "trace_event_raw_event_eventfd_read (new, used by pointer alone)",
    "__bpf_trace_tp_map_eventfd_read (data, used by pointer alone)",
    "event_class_eventfd_read (data, used by pointer)",
    "str__eventfd__trace_system_name (data, used by pointer alone)",
)


def test_what_is_made_for_a_tracepoint_is_one_thing_and_all_else_is_not() -> None:
    others = ("event_init (nearest: a -> event_init)", "perf_trace_other", "str__x")
    assert tracepoints.folded((*MADE, *others), MADE) == ["what is made for tracepoint eventfd_read", *others]
    assert tracepoints.folded(MADE[:3], MADE[:3]) == list(MADE[:3])  # nothing says that there is one


def test_a_patch_that_adds_one_is_told_in_two_names_not_in_eighteen() -> None:
    """The first sentence named three of 14 that "were not looked at", all of them of a tracepoint that is off."""
    looked = Looked(
        functions=9,
        differ=8,
        candidates=5,
        cases=("eventfd",),
        measured=("eventfd_read", "__tracepoint_eventfd_read (data, used by pointer)"),
        unreached=tuple(Unreached(name=name) for name in MADE),
        untouched=("__traceiter_eventfd_read (new)",),
    )
    assert looked_at.unseen(looked) == (
        "6 of 8 functions or variables that differ were not looked at: what is made for tracepoint eventfd_read"
    )
    told = looked_at.sentences(looked)
    assert "NOT LOOKED AT, not called in the cases measured: what is made for tracepoint eventfd_read." in told
    assert any(line.endswith("(5 of 8): what is made for tracepoint eventfd_read.") for line in told)
    assert any(line.startswith("Looked at: eventfd_read, what is made for tracepoint eventfd_read; ") for line in told)
    assert len(looked_at.document(looked)["unreached"]) == 5


def test_what_is_made_for_a_static_call_is_one_thing() -> None:
    """Of four that differed "2 were not looked at": the key, and a trampoline that nothing calls."""
    made = ("__SCT__eventfd_hook (new)", "__SCK__eventfd_hook (data, used by pointer alone)")
    told = tracepoints.folded((*made, "eventfd_touch (new)"), made)
    assert told == ["what is made for static call eventfd_hook", "eventfd_touch (new)"]
    assert tracepoints.alone(told[:1])
