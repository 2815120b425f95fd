# SPDX-License-Identifier: GPL-2.0-or-later
"""A WARN that did not end the guest is told; what a busy host does to an emulated one is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.guest.complaints import MOST, complaints

# Formats of 6.12 and, for the second warning, 6.19 (kernel/panic.c, __warn)
CONSOLE = b"""[    0.016000] tsc: Unable to calibrate against PIT
[    3.100000] ------------[ cut here ]------------
[    3.100001] WARNING: CPU: 0 PID: 77 at fs/pipe.c:123 pipe_write+0x1f/0x670
[    3.100002] Modules linked in:
[    3.100003] CPU: 0 UID: 0 PID: 77 Comm: kdelta-guest Not tainted 6.12.0 #1
[    3.100004] RIP: 0010:pipe_write+0x1f/0x670
[    4.200000][   T77] WARNING: CPU: 1 PID: 78 at fs/pipe.c:123 pipe_write+0x1f/0x670
[    5.000000] WARNING: mm/vma.c:50 at vma_merge+0x20/0x90, CPU#0: kdelta/80
[    5.100000] WARNING: mm/vma.c:50 at vma_merge+0x20/0x90, CPU#1: kdelta/81
[    6.000000] BUG: KASAN: slab-use-after-free in pidfd_poll+0x10/0x20
[    6.500000] BUG: soft lockup - CPU#0 stuck for 22s! [kdelta-guest:77]
[    6.600000] rcu: INFO: rcu_preempt self-detected stall on CPU
[    7.000000] reboot: Restarting system
"""


def test_reports_are_told_once_each_in_their_order() -> None:
    assert complaints(CONSOLE) == (
        "WARNING: CPU: 0 PID: 77 at fs/pipe.c:123 pipe_write+0x1f/0x670",
        "WARNING: mm/vma.c:50 at vma_merge+0x20/0x90, CPU#0: kdelta/80",
        "BUG: KASAN: slab-use-after-free in pidfd_poll+0x10/0x20",
    )


@pytest.mark.parametrize(
    "line",
    [
        "BUG kmalloc-64 (Not tainted): Right Redzone overwritten",
        "BUG kmalloc-rnd-01-8 (Tainted: G    B   W         ): Poison overwritten",
        "pagealloc: memory corruption",
        "INFO: trying to register non-static key.",
    ],
)
def test_checks_of_slabs_pages_and_locks_are_reports(line: str) -> None:
    """mm/slub.c, mm/page_poison.c and kernel/locking/lockdep.c of 6.12: no line of these begins as others' do."""
    assert complaints(b"[    4.2] =====\n[    4.2] " + line.encode() + b"\n") == (line,)


def test_a_good_boot_has_none() -> None:
    assert complaints(CONSOLE.splitlines(keepends=True)[0] + b"amd_pstate: the _CPC object is not present\n") == ()


def test_a_guest_that_floods_its_console_is_bounded() -> None:
    flood = b"".join(b"BUG: number %d\n" % index for index in range(1000)) + b"WARNING: " + b"x" * 100_000
    found = complaints(flood)
    assert len(found) == MOST and max(map(len, found)) <= 160


@given(st.binary(max_size=300))
def test_any_bytes_are_read(noise: bytes) -> None:
    assert all("\n" not in line for line in complaints(noise + b"\nWARNING: x"))
