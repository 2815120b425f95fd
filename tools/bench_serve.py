# SPDX-License-Identifier: GPL-2.0-or-later
"""Fill a store with many boots and time every page: ``tools/bench_serve.py [--boots 10000] [--store URL]``.

Bounds (issue 6): any page within 2 s, a history chart within 1 s. Each page is timed on its first answer, as a reader
meets it. Exits 1 where a bound is missed. ``--keep URL`` times the pages of a store that was filled before.
"""

from __future__ import annotations

import argparse
import base64
import random
import sys
import tempfile
import time
import zlib
from pathlib import Path

from hdrh.histogram import HdrHistogram
from msgspec.structs import replace
from starlette.testclient import TestClient

import bench_store
from kdelta.experiment.schedule import blocks
from kdelta.model import Experiment, Metric, Profile, RunResult, Series
from kdelta.results.definitions import metrics_of
from kdelta.serve.app import create_app, load_ahead
from kdelta.serve.guard import Access
from kdelta.store.store import Store

PAGE_LIMIT_S, HISTORY_LIMIT_S = 2.0, 1.0
TIMED_BLOCKS, EXACT_SEEDS, FUNCTIONS = 20, 3, 300
PAGES = (
    *("/experiments", "/experiments?text=exact1", "/compare?a=6.12&b=7.0&bx=exact1", "/history?by=kernel&case=pipe"),
    *("/experiments/timed0", "/experiments/timed1/report", "/experiments/timed2.json", "/experiments/timed0/boots"),
    *("/experiments/exact0", "/experiments/exact1/report", "/experiments/exact2.json"),
    *("/experiments/exact0/functions?case=1&all=1", "/experiments/timed0/boots/3.1"),
)


def payload(dice: random.Random) -> bytes:
    """A latency histogram as a guest sends it."""
    found = HdrHistogram(1, 60_000_000_000, 3)  # the range of guest/hdr.h
    for _ in range(400):
        found.record_value(int(dice.lognormvariate(6.2, 0.3)))
    return zlib.decompress(base64.b64decode(found.encode())[8:])


def timed_run(case: int, metrics: tuple[Metric, ...], dice: random.Random, histogram: bytes) -> RunResult:
    """Twelve samples of every metric that the workload declares."""
    series = tuple(
        Series(metric=m.name, unit=m.unit, better=m.better, values=tuple(dice.gauss(500, 5) for _ in range(12)))
        for m in metrics
    )
    facts = {"latency_count": 4000.0}
    return RunResult(case=case, state="ok", series=series, histograms={"latency": histogram}, facts=facts)


def exact_run(case: int, dice: random.Random) -> RunResult:
    """Counts of 300 functions."""
    functions: dict[str, tuple[int, ...]] = {
        f"function_{n}": (16 * dice.randrange(5, 200), 1, 1, 0, 1, 0, 0) for n in range(FUNCTIONS)
    }
    total = tuple(map(sum, zip(*functions.values(), strict=True)))
    value = total[0] / 16
    series = Series(metric="instructions", unit="instructions/op", better="lower", values=(value,) * 7)
    return RunResult(case=case, state="ok", series=(series,), profile=Profile(ops=16, functions=functions, total=total))


def experiments(boots: int) -> list[Experiment]:
    """Four fifths of the boots in timed experiments, one fifth in exact ones; two kernels and five cases each."""
    base = bench_store.experiment(2)
    timed = max(3, round(boots * 0.8) // (2 * TIMED_BLOCKS))
    exact = max(3, (boots - timed * 2 * TIMED_BLOCKS) // (2 * EXACT_SEEDS))
    dates = (f"2026-{1 + n // 672:02}-{1 + n // 24 % 28:02}T{n % 24:02}:00:00" for n in range(timed + exact))
    plans = [("timed", n, TIMED_BLOCKS) for n in range(timed)] + [("exact", n, EXACT_SEEDS) for n in range(exact)]
    return [replace(base, id=f"{mode}{n}", mode=mode, blocks=count, created_at=next(dates)) for mode, n, count in plans]


def fill(store: Store, boots: int) -> int:
    """Save every boot as a runner does; returns how many."""
    dice = random.Random(1)
    histograms = [payload(dice) for _ in range(8)]
    saved = 0
    for experiment in experiments(boots):
        store.create(experiment)
        metrics = metrics_of(experiment)
        for plan in (plan for block in blocks(experiment) for plan in block):
            one = bench_store.boot(plan, dice)
            if experiment.mode == "exact":
                runs = tuple(exact_run(case, dice) for case in range(len(experiment.cases)))
            else:
                runs = tuple(
                    timed_run(index, metrics[case.workload], dice, dice.choice(histograms))
                    for index, case in enumerate(experiment.cases)
                )
            store.save_boot(experiment.id, replace(one, runs=runs))
            saved += 1
    return saved


def measure(store: Store) -> bool:
    """Print the time of each page; true if all bounds hold."""

    def complain(text: str) -> None:
        raise AssertionError(text)

    client = TestClient(create_app(store, Access(), complain), base_url="http://localhost")
    client.get("/")  # templates are compiled once
    start = time.perf_counter()
    load_ahead().join()
    print(f"loaded beside the first page in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    rows = [(page, PAGE_LIMIT_S) for page in PAGES] + [("/history?case=pidfd_open", HISTORY_LIMIT_S)]
    good = True
    for page, limit_s in rows:
        start = time.perf_counter()
        answer = client.get(page)
        taken_s = time.perf_counter() - start
        assert answer.status_code == 200, f"{page}: {answer.status_code}"
        good = good and taken_s <= limit_s
        verdict = "" if taken_s <= limit_s else "  MISSED"
        print(f"{page:44} {taken_s:7.3f} s {len(answer.content) // 1024:5} KiB  (at most {limit_s} s){verdict}")
    return good


def main() -> int:
    """Parse the command line; measure in a temporary store unless one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--boots", type=int, default=10_000)
    parser.add_argument("--store", help="URL of an empty database; a temporary SQLite file by default")
    parser.add_argument("--keep", metavar="URL", help="time the pages of this store, filled by an earlier --store")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdelta-bench-") as folder:
        url = options.keep or options.store or f"sqlite:///{Path(folder) / 'bench.sqlite'}"
        with Store(url) as store:
            if not options.keep:
                start = time.perf_counter()
                print(f"filled with {fill(store, options.boots)} boots in {time.perf_counter() - start:.0f} s")
            return 0 if measure(store) else 1


if __name__ == "__main__":
    sys.exit(main())
