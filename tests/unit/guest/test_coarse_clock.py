# SPDX-License-Identifier: GPL-2.0-or-later
"""A clock that moves with the timer tick times nothing: the cell is refused, never shown as 1 ns."""

from __future__ import annotations

import base64
import zlib

import pytest
from hdrh.histogram import HdrHistogram

from kdelta.guest.metrics import timed_runs
from kdelta.guest.protocol import Done, Hello, Hist, Record, Window
from kdelta.model import Metric, RunResult

METRICS = (
    Metric(name="ns_per_op", unit="ns", better="lower", source="window:ns_per_op", primary=True),
    Metric(name="latency_p50", unit="ns", better="lower", source="hist:latency:p50"),
)


def hist(*values: int) -> Hist:
    made = HdrHistogram(1, 60_000_000_000, 3)
    for value in values:
        made.record_value(value)
    return Hist(j=0, name="latency", count=len(values), b64=base64.b64encode(_plain(made.encode())).decode())


def _plain(packed: bytes) -> bytes:
    return zlib.decompress(base64.b64decode(packed)[8:])


def run(step_ns: float | None, *more: Record, window_ns: int = 5_000_000) -> RunResult:
    hello = Hello(proto=1, release="r", machine="x86_64", clock="jiffies", clock_step_ns=step_ns)
    windows = [Window(j=0, i=i, ops=50, ns=window_ns) for i in range(8)]
    (found,) = timed_runs([hello, *windows, *more, Done(j=0, state="ok")], (0,), {0: METRICS}, ("ok", ""))
    return found


def test_a_clock_that_stands_still_is_refused_with_its_name() -> None:
    found = run(0.0)
    assert found.state == "failed" and not found.series
    assert "clock (jiffies) is too coarse" in found.why


@pytest.mark.parametrize(("step_ns", "state"), [(40.0, "ok"), (838.0, "ok"), (60_000.0, "failed"), (None, "ok")])
def test_a_window_holds_a_hundred_steps(step_ns: float | None, state: str) -> None:
    assert run(step_ns).state == state


def test_latencies_below_the_clocks_step_are_no_figures() -> None:
    below, above = run(838.0, hist(300, 310, 838)), run(838.0, hist(8000, 9000, 10_000))
    assert [series.metric for series in below.series] == ["ns_per_op"]
    assert [series.metric for series in above.series] == ["ns_per_op", "latency_p50"]
