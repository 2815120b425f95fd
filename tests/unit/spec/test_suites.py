# SPDX-License-Identifier: GPL-2.0-or-later
"""Suites as shipped: each is one file, and what it lists is there."""

from __future__ import annotations

from kdelta.paths import shipped
from kdelta.spec import cases, suites
from kdelta.spec.workloads import catalogue


def test_every_suite_lists_cases_that_are_there_or_says_what_it_needs() -> None:
    known = catalogue()
    found = suites.suites()
    assert next(iter(found)) == suites.DEFAULT
    for suite in found.values():
        assert suite.needs or cases.of_suite(suite, known)


def test_every_folder_of_cases_is_a_suite() -> None:
    folders = {path.parent.name for path in (shipped("guest") / "suites").glob("*/*.c")}
    assert folders <= set(suites.suites())


def test_unixbench_has_its_loops_and_its_script() -> None:
    names = {case.name.removeprefix("unixbench/") for case in cases.of_suite(suites.suites()["unixbench"], catalogue())}
    assert names == {"syscall", "pipe", "context1", "spawn", "shell", *(f"file_copy-{n}" for n in (256, 1024, 4096))}


def test_the_syscalls_suite_has_what_lebench_and_lmbench_have() -> None:
    names = {case.name.removeprefix("syscalls/") for case in cases.of_suite(suites.suites()["syscalls"], catalogue())}
    lebench = {"getpid", "context_switch-2", "send-1", "recv-96000", "fork_exit", "thread_create", "fork_mappings-6000"}
    lebench |= {f"{call}-{pages}" for call in ("mmap", "munmap", "file_fault") for pages in (1, 10, 1000, 10000)}
    lebench |= {f"{call}-{size}" for call in ("read", "write") for size in (4096, 40960, 4096000)}
    lebench |= {f"{call}-{number}" for call in ("select", "poll", "epoll") for number in (10, 1000)}
    lmbench = {
        "read_zero",
        "write_null",
        "stat",
        "fstat",
        "open_close",
        "sigaction",
        "signal_catch",
        "protection_fault",
    }
    lmbench |= {"signal_catch", "fifo_pingpong", "unix_pingpong", "udp_pingpong", "tcp_pingpong", "tcp_connect"}
    lmbench |= {"fork_execve", "fork_sh", "fcntl_lock", "create_unlink-0", "create_unlink-10240", "sem_pingpong"}
    lmbench |= {"unix_connect"}
    assert lebench | lmbench <= names
    assert len(names) >= 80


def test_cases_have_the_floor_that_identical_kernels_showed() -> None:
    assert {w.floor_percent for name, w in catalogue().items() if name.startswith("syscalls/")} == {0.5}
