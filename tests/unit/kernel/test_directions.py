# SPDX-License-Identifier: GPL-2.0-or-later
"""Which way figures of mails go: by their units first, then by words; where both are told, nobody knows."""

from __future__ import annotations

import pytest

from kdelta.kernel import directions


@pytest.mark.parametrize(
    ("line", "way"),
    [
        ("eventfd2+close: 1423 ns -> 1390 ns", 1),
        ("10 us -> 12 us", -1),
        ("latency 900 ns -> 1.1 us", -1),
        ("2 ms -> 900 us", 1),
        ("7,000 -> 6,500 cycles", 1),
        ("IOPS: 800K -> 900K", 1),
        ("throughput went from 800 to 750", -1),
        ("latency 45 -> 60", -1),
        ("runtime of 8 to 12 threads", 0),
        ("score: 800 -> 900", 0),
        ("will-it-scale eventfd1_threads -t 32: 11.2M -> 14.9M ops/s", 1),
        ("1.2M -> 900k ops/s", -1),
        ("900 kB/s -> 1.1 MB/s", 1),
        ("8 threads: 3.1 M/s -> 3.4 M/s", 1),
        ("goes from 5 s to 4 s", 1),
        ("3 % faster", 1),
        ("a 12% regression", -1),
        ("p50 3 % faster, p99 2 % slower", 0),
        ("before 4,102,233 ops/s", 0),
        ("5 -> 4", 0),
        ("5 s -> 4 MB/s", 0),
        ("hackbench: 3.412 s -> 3.409 s, in the noise", 0),
        ("no overhead: 1 % slower", 0),
        ("This reduces the cost of close() by about 120 cycles.", 1),
        ("FUTEX_WAKE takes 31% fewer instructions", 1),
        ("1.7% more NOPs/sec in t/nop", 1),
        ("the number of instructions increases by 3 %", -1),
        ("throughput drops by 3 %", -1),
        ("it saves 12 kB at the cost of 3 % of the time", -1),
        ("adds less than 1 % of overhead", -1),
        ("an overhead of 3 %", -1),
        ("The ~7% regression of page_fault1 disappears.", 1),
        ("System Call Overhead 1234.5 1301.2 (+5.4%)", 0),  # a name of UnixBench's
        ("dd | dd gets 18% faster; creating a pipe costs the same.", 1),
        ("It is not slower. Reads take 3 % less time.", 1),
        ("3 % faster. Writes are 2 % slower.", 0),
        ("from 71ns down to 65ns per call", 1),
        ("900 microseconds -> 1.1 milliseconds", -1),
        ("score 812 (higher is better)", 0),
        ("12 s -> 11 s. That is within the noise.", 0),
        ("12 s -> 11 s. It is faster. The difference of 4 us -> 5 us is noise.", 1),
        ("perf bench sched pipe 4.11 usecs/op -> 4.12 usecs/op", 0),
        ("v1 made it 12% slower; that is gone", 0),
        ("page-faults 178 -> 71", 1),
        ("task-clock msec 0.81 -> 0.84", -1),
        ("time in usecs: 12 -> 11", 1),
        ("this decreases page allocs by 60%", 1),
        ("1.5 million more allocations a second", 0),
        ("about 1.5% speed up of readlink", 1),
        ("perf bench sched pipe: 9.8 usecs/op -> 9.1 usecs/op", 1),
        ("12.4 -> 12.9 cycles/byte", -1),
    ],
)
def test_which_way_a_figure_goes(line: str, way: int) -> None:
    assert directions.of(line) == way


def test_several_figures_go_one_way_or_none() -> None:
    assert directions.of_all(["1 us -> 2 us", "x: 5", "3 % slower"]) == -1
    assert directions.of_all(["1 us -> 2 us", "3 % faster"]) == 0 == directions.of_all([])


@pytest.mark.parametrize(
    ("lines", "way"),
    [
        (
            [
                "before: 12.412 +- 0.021 seconds time elapsed ( +- 0.17% )",
                "after: 11.803 +- 0.019 seconds time elapsed ( +- 0.16% )",
            ],
            1,
        ),
        (["Before this patch: 900 kB/s", "After this patch: 1.1 MB/s"], 1),
        (["Before: real 12.3s", "Before: sys 2.1s", "After: real 13.1s", "After: sys 3.1s"], -1),
        (["Before: real 12.3s", "Before: sys 2.1s", "After: real 13.1s", "After: sys 1.1s"], 0),
        (["Before: 12.3s", "After: 10.1 MB/s"], 0),
        (["Before: 12.3s and 4 s", "After: 10.1s and 3 s"], 0),  # of two nobody knows which
        (["After: 3 s", "Before: 4 s"], 0),
        (["Before: 12 tasks", "After: 14 tasks"], 0),
        (["before: 9.1M calls/s", "after: 412M calls/s"], 1),
        (["before after", "close 1812 ns 241 ns (-86.7%)"], 1),
        (["tasks before after", "1 612 ns 635 ns", "2 812 ns 715 ns"], 0),
        (["tasks before after", "1 612 ns 615 ns", "2 812 ns 715 ns"], 1),
        (["after before", "close 1812 ns 241 ns"], 0),
        (["before: 1.31 Mops/s", "after: 2.07 Mops/s (+58%)"], 1),
        (["lat_proc, microseconds:", "6.12 6.12+patch", "fork 61.4 38.9 (-36.6%)", "exec 178.2 150.1"], 1),
        (["lat_proc:", "6.12 6.12+patch", "fork 61.4 38.9"], 0),
        (["open1, 10 seconds each (ops/s):", "tasks before after delta", "96 1823392 1804111 -1.1%"], -1),
        (["ns per call:", "depth before after", "2 214 169", "40 912 941"], 0),
        (["Index (higher is better):", "| | base | patched |", "| syscall | 812.1 | 799.3 |"], -1),
        (["before (us) after (us)", "pipe 4.1 3.9"], 1),
        (["ns/op", "before after", "SIGSEGV 1240 1151"], 1),
        (["netperf (10^6bits/sec):", "before: 61234.12", "after: 74410.51"], 1),
        (["bogo ops/s, before after:", "pipe 412 390"], -1),
        (["ops/s and their latency in us:", "before after", "pipe 4.1 3.9"], 0),
        (["before after (ns)", "pipe 4.1 3.9 3.8"], 0),
    ],
)
def test_lines_before_and_after_tell_it_together(lines: list[str], way: int) -> None:
    """A series that claims less time, and executes more instructions, was not said to."""
    assert directions.of_all(lines) == way


def test_figures_that_hardly_differ_beside_no_cost_say_that_nothing_changes() -> None:
    assert directions.alike(["There is no cost: 24.1 MB/s -> 24.0 MB/s."])
    assert directions.alike(["12 s -> 12.6 s.", "That is within the noise."])
    assert directions.of_all(["12 s -> 11 s.", "That is within the noise."]) == 0
    assert not directions.alike(["There is no cost: 24.1 MB/s -> 23.0 MB/s."])
