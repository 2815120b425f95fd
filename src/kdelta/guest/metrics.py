# SPDX-License-Identifier: GPL-2.0-or-later
"""Records -> runs with series. Pure: the one place where windows and histograms become metrics."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from kdelta.errors import GuestError
from kdelta.guest.protocol import Done, Hello, Hist, Record, Repetition, Task, Value, Window
from kdelta.model import Metric, RunResult, Series, State

_NS_PER_S = 1e9
_V2_PAYLOAD = 0x1C849313
# The header behind cookie and length: no offset, 3 digits, 1 ns to 60 s, ratio 1 (guest/hdr.c); and counts that fit.
_V2_RANGE = struct.pack(">IIQQd", 0, 3, 1, 60_000_000_000, 1.0)
_V2_LIMIT = 40 + 9 * (27 << 10)
_DAMAGED = (  # the last two where counts overflow or end too early (hdrhistogram 0.10)
    HdrCookieException, HdrLengthException, HdrHistogramSettingsException, ValueError, IndexError, OverflowError,
    AssertionError,
)  # fmt: skip
_COARSE = 0.01  # of a window: the largest step of a clock that may time it

# By source: the figure of one window, given how many parts one operation has (205 lookups in a sweep).
_WINDOW: dict[str, Callable[[Window, int], float]] = {
    "ns_per_op": lambda w, parts: w.ns / (w.ops * parts),
    "ops_per_s": lambda w, parts: w.ops * parts * _NS_PER_S / w.ns,
    "mb_per_s": lambda w, parts: w.bytes * 1e3 / w.ns,
}


def histogram(payload: bytes) -> HdrHistogram:
    """An HdrHistogram from the V2 payload that the guest wrote, uncompressed.

    The library reads only the compressed form, so the payload is packed again. It believes the header, from which it
    takes how much memory it needs: only the range and precision that guest/hdr.h writes are let in.
    Source: HdrHistogram's V2 encoding (AbstractHistogram.java).

    Raises:
        GuestError: the payload is no histogram of the guest's.
    """
    if payload[8:40] != _V2_RANGE or len(payload) > _V2_LIMIT:
        raise GuestError("a latency histogram from the guest is damaged: its range is not the guest's own")
    packed = zlib.compress(struct.pack(">I", _V2_PAYLOAD) + payload[4:], 1)
    try:
        return HdrHistogram.decode(packed, b64_wrap=False)
    except _DAMAGED as error:
        raise GuestError(f"a latency histogram from the guest is damaged: {error}") from None


def _of_histogram(payload: bytes, what: str) -> float:
    hist = histogram(payload)
    if what == "mean":
        return float(hist.get_mean_value())
    if what == "max":
        return float(hist.get_max_value())
    return float(hist.get_value_at_percentile(float(what.removeprefix("p"))))


def _series(
    metric: Metric, windows: Sequence[Window], hists: Mapping[str, Hist], values: Mapping[str, float]
) -> Series:
    kind, _, rest = metric.source.partition(":")
    rest, _, parts = rest.partition("/")
    numbers: list[float] = []
    warm: list[bool] = []
    if kind == "window":
        usable = [w for w in windows if w.ops > 0 and w.ns > 0]
        numbers = [_WINDOW[rest](w, int(parts or 1)) for w in usable]
        warm = [bool(w.warm) for w in usable]
    elif kind == "hist":
        name, _, what = rest.partition(":")
        if name in hists and hists[name].count:
            numbers = [_of_histogram(hists[name].payload(), what)]
    elif kind == "value" and rest in values and np.isfinite(values[rest]):
        numbers = [values[rest] / int(parts or 1)]
    return Series(
        metric=metric.name, unit=metric.unit, better=metric.better, values=tuple(numbers), warm=tuple(warm) or ()
    )


def _too_coarse(hello: Hello | None, windows: Sequence[Window], hists: Mapping[str, Hist]) -> str:
    """Why no time of this run means anything: a clock that moves with the timer tick (clocksource=jiffies), say."""
    step = None if hello is None else hello.clock_step_ns
    spans = [w.ns for w in windows if w.ns > 0]
    if hello is None or step is None or not (windows or hists):
        return ""
    name = f"the guest's clock ({hello.clock or 'unknown'}) is too coarse to time this"
    if step == 0:
        return f"{name}: it did not advance while it was read repeatedly; try another clocksource="
    if spans and step > _COARSE * float(np.median(spans)):
        return f"{name}: its smallest step is {step:g} ns, above 1 % of a window"
    return ""


def _readable(hello: Hello | None, hists: Mapping[str, Hist]) -> dict[str, Hist]:
    """The latencies that the guest's clock can tell apart: their median is at least one step of it."""
    step = (hello.clock_step_ns if hello is not None else None) or 0.0
    return {name: h for name, h in hists.items() if not h.count or _of_histogram(h.payload(), "p50") >= step}


def _timed_run(
    index: int, done: Done, mine: Sequence[Record], metrics: Sequence[Metric], hello: Hello | None
) -> RunResult:
    windows = [r for r in mine if isinstance(r, Window)]
    hists = {r.name: r for r in mine if isinstance(r, Hist)}
    values = {r.name: r.v for r in mine if isinstance(r, Value)}
    facts = dict(values) | {f"{name}_count": float(hist.count) for name, hist in hists.items()}
    for task in (r for r in mine if isinstance(r, Task) and r.ns > 0):
        facts[f"task{task.k}_ops_per_s"] = task.ops * _NS_PER_S / task.ns
    state: State = done.state
    why = done.why
    if state == "ok" and (coarse := _too_coarse(hello, windows, hists)):
        return RunResult(case=index, state="failed", why=coarse, facts=facts)
    try:
        readable = _readable(hello, hists)
        series = tuple(s for s in (_series(m, windows, readable, values) for m in metrics) if s.values)
    except GuestError as error:
        return RunResult(case=index, state="failed", why=str(error))
    if state == "ok" and not any(s.metric == m.name for m in metrics if m.primary for s in series):
        state, why = "failed", "the run ended without a sample of its primary metric"
    return RunResult(
        case=index,
        state=state,
        why=why,
        series=series if state == "ok" else (),
        histograms={name: hist.payload() for name, hist in hists.items()},
        facts=facts,
    )


def _of_job(records: Sequence[Record], job: int) -> list[Record]:
    return [r for r in records if getattr(r, "j", None) == job]


def timed_runs(
    records: Sequence[Record], cases: Sequence[int], metrics: Mapping[int, Sequence[Metric]], boot: tuple[State, str]
) -> tuple[RunResult, ...]:
    """One RunResult per case; a case without its done record takes the boot's state, never a number."""
    runs = []
    hello = next((r for r in records if isinstance(r, Hello)), None)
    for case in cases:
        mine = _of_job(records, case)
        done = next((r for r in mine if isinstance(r, Done)), None)
        if done is None:
            state, why = boot if boot[0] != "ok" else ("lost", "the guest never finished this run")
            runs.append(RunResult(case=case, state=state, why=why))
        else:
            runs.append(_timed_run(case, done, mine, metrics[case], hello))
    return tuple(runs)


def repetitions(records: Sequence[Record], job: int) -> list[Repetition]:
    """The exact intervals that the guest says it marked for ``job``, in order."""
    return [r for r in records if isinstance(r, Repetition) and r.j == job]
