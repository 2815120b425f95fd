# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures that a mail gives itself, quoted whole."""

from __future__ import annotations

import re
import time

import pytest

from kdelta.kernel import figure_words, figures


@pytest.mark.parametrize("example", [example for example, _ in figure_words.WAYS])
def test_each_way_takes_its_example_and_no_other_does(example: str) -> None:
    taking = [one for one, expression in figure_words.WAYS if re.search(expression, example, re.IGNORECASE)]
    assert taking == [example]


@pytest.mark.parametrize(
    "line",
    [
        "uname(2) of 64 threads: 9.1M calls/s",
        "lat_pipe: 4.21 microseconds -> 3.98 microseconds",
        "We see 1.5 million more allocations a second.",
        "an improvement of 5 percent",
        "1.5 times as fast",
        "a 2.5x speedup",
        "goes down by a factor of 3",
        "a twofold speedup, and a 2.3-fold one of vfork()",
        "netperf TCP_RR: 41023.11 -> 43310.55 Trans/sec",
        "fio 4k randread: 512k IOPS",
        "hackbench took 12.34s",
        "boots 300 msec earlier",
        "saves 15 nsec",
        "300k cycles fewer",
        "1.9 GiB/s",
        "9.41 Gbit/s",
        "1,234,567 context-switches",
        "0.5 pct of a call",
        "timer_create improves by about 2x",
        "tgkill(2) is twice as fast, and close(2) takes half the time",
        "it is two times faster",
        "a drop of 15 percentage points",
        "a 23-percent win",
        "real 0m12.345s",
        "a build goes from 5m12s to 5m02s",
        "IPC improves from 0.82 to 0.91",
        "Throughput went from 1.2M to 1.5M op/s.",
        "fio --rw=randread: IOPS=512k, was 480k",
        "cuts the time by half",
        "halves the number of atomics",
        "about ten times quicker",
        "vmlinux shrinks by 12 kB",
        "lookups become nearly a third faster",
        "pread() needs a quarter fewer instructions",
        "the time drops to a tenth",
        "it cuts the cycles by 1/3",
        "throughput went up 2.5 times",
        "geomean speedup: 1.03",
        "a speedup of 1.3 with eight threads",
        "executes 12 fewer instructions",
        "the image is 4 KiB smaller",
        "a build ends 12 seconds sooner, which is 1.5× faster",
        "it is x1.5 faster",
        "twice the number of requests",
        "doubles throughput, halves latency",
        "about three percent in our benchmark of a database",
        "A kernel build is a second faster.",
        "Throughput nearly doubles with 128 threads.",
        "sysbench tps: 12033 vs. 12455.",
        "Geometric mean over 12 workloads: 1.023 (higher is better)",
        "This cuts latency in half.",
        "The number of IPIs is halved.",
        "Boot time on a box of 4 sockets: 92s before, 61s after.",
        "kernel build: 245 seconds vs 239 seconds",
        "Slab: 412032 kB -> 389120 kB",
        "about 4 times as many lookups",
        "Ratio 0.93 (lower is better)",
        "It saves 1.6 GB on a machine with 1 TB.",
        "99.0th: 15 (321 samples)",
        "There is significant 600+% improvement for TCP_RR.",
        "bloat-o-meter shows an 80KB code size improvement",
        "hackbench has no noticeable regression.",
        "There is no performance impact.",
        "What it does to hackbench is within the noise.",
    ],
)
def test_figures_are_known_by_many_units(line: str) -> None:
    assert list(figures.told(line)) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "It was moved from 6.12 to 7.0.",
        "There are 3 patches, for 6.12 and later.",
        "Changes in v3: rebased on v6.12-rc1",
        "Fixes 2 of 3 hangs that were reported on 2026-11-02.",
        "CPU: 0 PID: 12 Comm: swapper",
        "RIP: 0010:pipe_write+0x1a/0x300",
        "Link: https://lore.kernel.org/r/20261102100000.1-1-a@example.org",
        "> it was 50% faster",
        "a matrix of 64x64 on a machine with 8x NVMe",
        'Fixes: 123456789abc ("pipe: make writes 5% faster")',
        "It doubles the pointer, and is used by 4 bytes.",
        "It moves half the file, and checks twice the same name.",
        "Before: 6.12.3",
        "before: nothing\n\nafter: 3",
        "Changes in v2: what was said to 1/3 and 2/3 is done.",
        "It waits 3 more times, and at most 30 seconds less the delay.",
        "The hang is 100% reproducible, and the fix is 100 percent safe.",
        "The bit doubles as a lock, and a second earlier patch does the same.",
        "The loop reads 4 bytes instead of 8.",
        "It waits for 3 s before it tries again, and the number of the path is not halved.",
        "There is no significant change of what is locked, and no visible effect.",
        "The third path is not halved where time is short; x86 is one half.",
    ],
)
def test_other_numbers_are_no_figures(line: str) -> None:
    assert not list(figures.told(line))


def test_a_sentence_is_told_whole_and_its_neighbours_are_not() -> None:
    """Of the first two lines "... and up to 12% fewer" was quoted, of which nobody knew what there are fewer of."""
    said = (
        "This makes reads ~3x faster on my box, and takes up to 12% fewer\n"
        "instructions in anon_pipe_write(). Writers do not change, as was to be\n"
        "expected.  With this series the throughput of hackbench on an Intel\n"
        "Xeon goes up by 7%.\nReviewed-by: B <b@example.org>\n"
    )
    assert list(figures.told(said)) == [
        "This makes reads ~3x faster on my box, and takes up to 12% fewer instructions in anon_pipe_write().",
        "With this series the throughput of hackbench on an Intel Xeon goes up by 7%.",
    ]


def test_rows_of_a_table_are_told_below_its_columns() -> None:
    said = (
        "Higher is better:\n\n"
        "              base     patched     delta\n"
        "------------  -------  ----------  -----\n"
        "usecs/op      5.12     3.41        -33.4%\n"
        "loops         195312   293255\n\n"
        "| tasks | 6.12    | +patch  |\n|-------|---------|---------|\n|    64 | 1234567 | 2345678 |\n\n"
        "| said somebody, with 5 % more\n"
        "crypto   12   13\n"
    )
    assert list(figures.told(said)) == [
        "Higher is better:",
        "base patched delta",
        "usecs/op 5.12 3.41 -33.4%",
        "loops 195312 293255",
        "| tasks | 6.12 | +patch |",
        "| 64 | 1234567 | 2345678 |",
    ]


def test_a_side_holds_until_text_goes_on_below_its_figures() -> None:
    said = "Before:\n\n  real 12.3s\n\nAfter the patch:\n  real 10.1s\n\n  sys 2.1s\n\nIt is 9 % less.\n"
    assert list(figures.told(said)) == [
        "Before: real 12.3s",
        "After the patch: real 10.1s",
        "After the patch: sys 2.1s",
        "It is 9 % less.",
    ]


def test_one_index_without_a_unit_is_a_figure_of_a_side() -> None:
    """What hackbench prints, with the patch and without it, was not quoted at all."""
    said = (
        "Before:\n  # hackbench -pipe 20 process 1000\n  Time: 12.412\nAfter:\n  Time: 10.933\n\n"
        "Section: 4.5 says so.\n"
    )
    assert list(figures.told(said)) == ["Before: Time: 12.412", "After: Time: 10.933"]


def test_the_numbers_of_two_sides_are_told_both() -> None:
    """A line "After: 123.482 (~1% faster)" was quoted without the one before it, numbers without a unit not at all."""
    assert list(figures.told("baseline 1843.2\npatched 1899.7\n")) == ["baseline 1843.2", "patched 1899.7"]
    assert not list(figures.told("new in 6.12\nold 3 of them\n"))
    said = "Before: 125.317\nAfter: 123.482 (~1% faster)\n\nMTU : 1500\nbefore: 412.3 +- 1.2\nafter:  399.8 +- 1.1\n"
    assert list(figures.told(said)) == [
        "Before: 125.317",
        "After: 123.482 (~1% faster)",
        "before: 412.3 +- 1.2",
        "after: 399.8 +- 1.1",
    ]


def test_a_table_of_two_kernels_may_round_its_numbers() -> None:
    """Of numbers such as 5.2M neither the row nor its columns were quoted."""
    said = (
        "Opens a second:\n\n             vanilla   patched\n4 threads    5.2M      5.6M\n8 threads    9.4M      10.1M\n"
    )
    rows = ["vanilla patched", "4 threads 5.2M 5.6M", "8 threads 9.4M 10.1M"]
    assert list(figures.told(said)) == ["Opens a second:", *rows]


def test_what_stands_above_a_table_is_told_where_it_says_of_what_its_figures_are() -> None:
    """Of "before after" and "14.71 12.38" nobody could tell what got better."""
    said = "hackbench -g 16 (seconds, average of 5):\n\n   before   after\n   14.71    12.38\n"
    rows = ["before after", "14.71 12.38"]
    assert list(figures.told(said)) == ["hackbench -g 16 (seconds, average of 5):", *rows]
    assert list(figures.told(said.replace("seconds, ", ""))) == rows
    heading, sides = "readlink(2), ops/s:", ["before: 3740045", "after: 3796320 (+1.5%)"]
    assert list(figures.told("\n".join((heading, *sides)))) == [heading, *sides]
    heading, said = "will-it-scale, before after:", "\n\neventfd1   71231109  71234402\nmalloc1    3819022   3790134\n"
    assert list(figures.told(heading + said)) == [heading, "eventfd1 71231109 71234402", "malloc1 3819022 3790134"]


def test_items_of_a_list_are_told_one_by_one_however_long() -> None:
    rows = [
        "will-it-scale pipe1_processes: 1,823,392 -> 2,004,111 (+9.9%)",
        "perf bench sched pipe: 9.8 usecs/op -> 9.1 usecs/op",
        "hackbench -P: 2.31s -> 2.33s (noise)",
    ]
    assert list(figures.told("\n".join(rows))) == rows
    aligned = (
        "perf bench futex wait-parallel:    avg 412 usecs -> 371 usecs\nperf bench futex wake:   no change (0.02 ms)"
    )
    assert list(figures.told(aligned)) == [" ".join(row.split()) for row in aligned.split("\n")]
    assert list(figures.told(f"{rows[0]}\nperf bench syscall basic is the same.")) == rows[:1]


def test_a_sentence_that_begins_as_a_side_does_is_none() -> None:
    """Figures below "Without it waits get cheaper:" were those of the kernel without the patch."""
    said = "perf bench futex:    412 usecs -> 371 usecs"
    row = " ".join(said.split())
    assert list(figures.told(f"Without it waits get cheaper:\n\n{said}\n")) == [row]
    assert list(figures.told(f"Without the patch:\n\n{said}\n")) == [f"Without the patch: {row}"]


def test_a_unit_alone_above_the_columns_is_told_with_them() -> None:
    said = "Faults are faster.\n\n                ns/op\n            before   after\n  SIGSEGV     1240    1151\n"
    assert list(figures.told(said)) == ["ns/op", "before after", "SIGSEGV 1240 1151"]


def test_the_mark_of_a_list_is_not_quoted() -> None:
    assert list(figures.told("Changes:\n - measured again: 2.1% (was 3.4%)\n")) == ["measured again: 2.1% (was 3.4%)"]


def test_the_first_row_of_a_table_names_its_columns_whatever_they_are() -> None:
    """Percentages were quoted below no sizes, and sums of zram below no names."""
    said = (
        "Page processing is quicker:\n\n"
        "+---------+-----------+--------+\n| entropy | orig_size |  time  |\n+---------+-----------+--------+\n"
        "|    Y    | 407003136 | 0.572s |\n+---------+-----------+--------+\n|    N    | 407003136 | 2.098s |\n\n"
        "              |   512 |   833 |\n--------------+-------+-------+\nIntel Haswell | 35.0% | 20.7% |\n"
    )
    assert list(figures.told(said)) == [
        "| entropy | orig_size | time |",
        "| Y | 407003136 | 0.572s |",
        "| N | 407003136 | 2.098s |",
        "| 512 | 833 |",
        "Intel Haswell | 35.0% | 20.7% |",
    ]


@pytest.mark.parametrize("piece", ["1,", "1 % of x, ", "a" * 60 + "\n", "a  1  2\n", "x: 1.5 "])
def test_text_without_end_is_read_at_once(piece: str) -> None:
    began = time.process_time()
    list(figures.told(piece * 50_000))
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "said",
    [
        "               read   write\nbase         412     123\npatched      401     125\n",
        "| kernel   | read | write |\n| base     | 412  | 123   |\n| patched  | 401  | 125   |\n",
        "kernel        time\nmainline      412.3\npatched       388.1\n",
        "| 6.12-rc1 | 6.12-rc1 + series | change\nhackbench-16 | 12.123 | 11.876 | -2.0 %\n",
        "              6.12.0      6.12.0+\nread          412         401\nwrite         123         125\n",
        "Clients:    [tip]   [eevdf]\n1           1.00    1.01 (1.2)\n128         1.00    0.97 (0.4)\n",
    ],
)
def test_a_table_may_have_a_row_for_each_kernel_or_ratios_alone(said: str) -> None:
    """The row of the baseline was taken for the line of the columns; ratios and sums without a unit were not quoted."""
    assert list(figures.told(said)) == [" ".join(line.split()) for line in said.splitlines()]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("*** before it, 1000 files ***\n\nsync took 84 ms\n\n*** after it, 1000 files ***\n\nsync took 75 ms\n",
         ["before it, 1000 files: sync took 84 ms", "after it, 1000 files: sync took 75 ms"]),
        ("8 jobs, before patchset:\n\n Op     Count  AvgLat   MaxLat\n Close  3021   0.001    0.590\n",
         ["8 jobs, before patchset: Op Count AvgLat MaxLat", "8 jobs, before patchset: Close 3021 0.001 0.590"]),
        ("After this patch:\n the waker puts the task onto the wakelist of the wakee,\n and sends an IPI.\n\n"
         "   Unixbench      before      after\n   Execl         27667.3    27627.3\n",
         ["Unixbench before after", "Execl 27667.3 27627.3"]),
        ("With the patch:\n             vanilla    patched\n   read      412        401\n",
         ["vanilla patched", "read 412 401"]),
        ("BEFORE:\n  write: IOPS=512k, BW=2001MiB/s (2098MB/s)(58.6GiB/30001msec)\n"
         "AFTER:\n  write: IOPS=561k, BW=2191MiB/s (2298MB/s)(64.2GiB/30001msec)\n",
         ["BEFORE: write: IOPS=512k, BW=2001MiB/s (2098MB/s)(58.6GiB/30001msec)",
          "AFTER: write: IOPS=561k, BW=2191MiB/s (2298MB/s)(64.2GiB/30001msec)"]),
        ("The cost of a lock that nobody else has goes from 12 to 9 cycles.\nBefore this patch:\nreal    0m12.345s\n",
         ["The cost of a lock that nobody else has goes from 12 to 9 cycles.", "Before this patch: real 0m12.345s"]),
        ("It makes pipes 12 % faster where many tasks read from them\nwith the following options:\n",
         ["It makes pipes 12 % faster where many tasks read from them with the following options:"]),
    ],
)  # fmt: skip
def test_figures_belong_to_the_side_above_them_and_a_table_of_two_kernels_to_none(said: str, told: list[str]) -> None:
    """Rows of "*** before ***" and "8 jobs, after:" had no side; "After this patch:" was said of a table of both."""
    assert list(figures.told(said)) == told


def test_rows_of_tabs_and_blanks_are_rows_and_those_of_a_histogram_are_none() -> None:
    said = (
        "case\t  load\t   baseline(std%)\t compare%\nTCP_RR          \t336-threads\t 1.00 ( 21.27)\t +0.08 ( 15.32)\n\n"
        "   nsecs   : count     distribution\n  256 -> 511 : 10356    |****       |\n    0 -> 1   : 0     |        |\n"
    )
    assert list(figures.told(said)) == [
        "case load baseline(std%) compare%",
        "TCP_RR 336-threads 1.00 ( 21.27) +0.08 ( 15.32)",
    ]


def test_neither_logs_of_the_kernel_nor_programs_are_quoted() -> None:
    said = (
        "[   12.345678][ T1234] BUG: KASAN: 3.5 ms in x\n<4>[   12.345679] Read of 5% of it\n\n"
        "\tint main(void)\n\t{\n\t\tusleep(100);\n\t\tx = 12;\t/* 100 us are enough */\n\t}\n\n"
        "It is cheap. read(2) takes 4 ns more.\n"
    )
    assert list(figures.told(said)) == ["read(2) takes 4 ns more."]


def test_a_state_that_becomes_another_is_no_figure() -> None:
    """``order 0 -> 1`` of an allocation was quoted as a figure."""
    for text in ("order 0 -> 1 fails", "the refcount 0 -> 1 transition", "level 3 -> 2", "state 2 => 3"):
        assert list(figures.told(text)) == [], text
    assert list(figures.told("atomics per call: 3 -> 1")) == ["atomics per call: 3 -> 1"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("threads,before,after\n1,100,101\n8,200,350", ["threads before after", "1 100 101", "8 200 350"]),
        ("cpus, a, b\n1, 10.2, 11.3\n2, 10.2, 14.1", ["cpus a b", "1 10.2 11.3", "2 10.2 14.1"]),
        ("a, b, c\n1, 2, 3", []),  # of nobody knows what
        ("It moves foo, bar, and baz.\nThen a, b, c.", []),
        ("Tested on x86, arm64, riscv\nand s390, alpha, mips", []),
    ],
)
def test_a_table_whose_columns_are_parted_by_commas_is_a_table(text: str, found: list[str]) -> None:
    assert list(figures.told(f"Results:\n\n{text}\n")) == found


def test_sides_may_be_in_thousands_and_millions() -> None:
    assert list(figures.told("socket1:\n\n  before: 9.1M\n  after:  412k\n")) == ["before: 9.1M", "after: 412k"]
