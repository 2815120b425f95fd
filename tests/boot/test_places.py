# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel has made before a case begins decides where the case's objects lie: it is no change of the kernel.

One kernel, with more serial ports in /dev or not: some inodes and names more. Of 6.12 (cloud) path_lookup was regressed
by 0.75 % then (a slab more of dentries), and timer_many by 1.19 % (a collision), under every seed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

PLAIN = "plain=debian:6.12/cloud"
PORTS = 'ports=debian:6.12/cloud,cmdline="8250.nr_uarts=7"'
HASHED = "syscalls/timer_many"  # by the address of a process
RESTED = "path_lookup"  # the names that it misses were a slab too many, 0.8 % of it
STAMPED = "syscalls/fsync"  # the first write after a tick sets times of an inode, 0.19 % of it


def test_a_kernel_with_other_objects_at_boot_is_the_same_kernel(
    kdelta: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    cases = (HASHED, RESTED, STAMPED)
    chosen = [word for case in cases for word in ("--case", case)]
    said = kdelta("compare", PLAIN, PORTS, "--exact", "--seeds", "8", *chosen, "--json", "-q").stdout
    rows = {row["case"]: row for row in json.loads(said)["results"] if row["metric"] == "instructions"}
    called = {
        name: row["interval_percent"] for name, row in rows.items() if row["verdict"] in ("improved", "regressed")
    }
    assert set(rows) == set(cases) and not called
    spreads = {name: row["extra"]["spread_percent"] for name, row in rows.items()}
    assert spreads[HASHED] > 0.3, "some seeds meet collisions, and others none"
    assert spreads[RESTED] < 0.1, "each seed finds its slabs"
    assert spreads[STAMPED] < 0.1, "each seed has one tick's times to set"


def test_seeds_find_other_gaps_in_the_memory_of_cpus_and_other_places_of_their_sheaves(
    answer: Callable[..., dict[str, Any]],
) -> None:
    """mmap of 7.3 handed 32 nodes back in an interval or did not, under all seeds: 4 % of its lines of code."""
    cases = ("--case", "syscalls/mount", "--case", "syscalls/mmap-1")
    got = answer("run", "debian:7.3/cloud", "--exact", "--boots", "5", *cases)
    spreads = {(row["case"], row["metric"]): row["extra"]["spread_percent"] for row in got["results"]}
    assert spreads["syscalls/mount", "instructions"] > 1.0
    assert spreads["syscalls/mmap-1", "code_lines"] > 1.0
