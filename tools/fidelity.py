# SPDX-License-Identifier: GPL-2.0-or-later
"""make fidelity: what instructions tell of time on this machine.

Operations of one task are timed on the running kernel, natively, and counted in guests of the nearest kernel of
Debian. Prints a Markdown table; with --write it replaces the one in docs/methodology.md. Kernels and configurations
differ: what the comparison says is how far an instruction is worth the same, not which kernel is faster.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from kdelta.errors import KdeltaError
from kdelta.kernel import debian
from kdelta.model import Arch
from kdelta.stats.fidelity import Fidelity, fidelity
from marked import written

# Each does its work itself: no second task that another CPU could run, no disk, no rights that a user lacks.
OPERATIONS = tuple(
    f"syscalls/{name}"
    for name in (
        "getpid", "getrandom-16", "getrandom-4096", "sched_yield", "prctl", "sigaltstack", "uname", "getrusage",
        "prlimit", "read-1", "read-4096", "read-40960", "write-1", "write-4096", "read_zero", "write_null",
        "readv", "lseek", "dup_close", "copy_file_range-4096", "splice", "tee", "mmap-10", "mmap-1000",
        "munmap-10", "munmap-1000", "file_fault-10", "file_fault-1000", "anon_fault-1", "anon_fault-16",
        "anon_fault-512", "mmap_munmap", "mprotect", "madvise", "brk", "memfd", "stat", "fstat", "statx",
        "access", "open_close", "create_unlink-0", "rename", "mkdir", "getdents-10", "getdents-1000", "flock",
        "proc_self_stat", "fork_exit", "vfork_exit", "thread_create", "fork_execve", "sigaction", "sigprocmask",
        "kill_self", "signal_catch", "socketpair", "socket_udp", "scm_rights", "udp_send-1", "poll-10",
        "poll-100", "select-100", "epoll-100", "epoll_ctl", "eventfd", "timerfd", "futex_wake",
    )
)  # fmt: skip
WORD_BYTES = 8.0


class Operation(Struct, frozen=True, kw_only=True):
    """One operation: nanoseconds natively, and what one executes in kernel and user space."""

    name: str
    time_ns: float
    instructions: float
    rep_executions: float
    rep_bytes: float
    locked: float

    @property
    def per_word(self) -> float:
        """Instructions, with a string instruction counted once for each 8 bytes that it moves."""
        return self.instructions - self.rep_executions + self.rep_bytes / WORD_BYTES


def nearest(release: str, versions: Sequence[str]) -> str:
    """The version or series (``6.18``) that is nearest to a ``release`` (``6.18.44-amd64``).

    Raises:
        ValueError: a release that does not begin with two numbers, or no versions.
    """

    def numbers(text: str) -> tuple[int, ...]:
        found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
        if found is None:
            raise ValueError(f"{text!r} is no release of a kernel")
        return tuple(int(part or 0) for part in found.groups())

    wanted = numbers(release)

    def apart(version: str) -> tuple[int, ...]:
        return tuple(abs(a - b) for a, b in zip(numbers(version), wanted, strict=True))

    return min(versions, key=apart)


def kdelta(words: Sequence[str]) -> dict[str, Any]:
    """The JSON of a command; its progress stands on standard error."""
    command = [sys.executable, "-c", "from kdelta.cli.main import main; main()", *words, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 3) or not done.stdout:
        raise SystemExit(f"failed: kdelta {' '.join(words)}")
    return dict(json.loads(done.stdout))


def figures(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    """By case and metric: what was measured of the only kernel."""
    found: dict[str, dict[str, float]] = {}
    for row in document["results"]:
        if row["state"] == "ok" and row["baseline"] is not None:
            found.setdefault(row["case"], {})[row["metric"]] = float(row["baseline"])
        elif row["primary"]:
            print(f"{row['case']} is left out: {row['state']}: {row['why']}", file=sys.stderr)
    return found


def quiet_ns(times: dict[str, float]) -> float:
    """Nanoseconds of an operation: of all in a row, or of the median one alone, whichever is less.

    What else runs on the machine is in the former; two looks at the clock are in the latter.
    """
    return min((times[name] for name in ("ns_per_op", "p50") if times.get(name)), default=0.0)


def operations(native: dict[str, Any], exact: dict[str, Any]) -> list[Operation]:
    """Those that were measured both ways, quickest first."""
    times, counts = figures(native), figures(exact)
    found = [
        Operation(
            name=name.removeprefix("syscalls/"),
            time_ns=quiet_ns(times[name]),
            instructions=counts[name]["instructions"] + counts[name]["user_instructions"],
            rep_executions=counts[name]["rep_executions"],
            rep_bytes=counts[name]["rep_bytes"],
            locked=counts[name]["locked"],
        )
        for name in times
        if name in counts and quiet_ns(times[name]) > 0
    ]
    return sorted(found, key=lambda one: (one.time_ns, one.name))


def _summary(title: str, found: Fidelity) -> str:
    low, high = found.rank_interval
    return f"| {title} | {found.rank:.3f} [{low:.3f}, {high:.3f}] | {found.spread:.2f} | {found.ns_per_count:.3f} |"


def table(found: Sequence[Operation], where: str) -> str:
    """The Markdown."""
    times = np.array([one.time_ns for one in found])
    once, words = (np.array([getattr(one, name) for one in found]) for name in ("instructions", "per_word"))
    middle = fidelity(times, words).ns_per_count
    lines = [
        where,
        "",
        f"| {len(found)} operations, counts of | rank correlation | spread of ns per count | ns per count |",
        "|---|---|---|---|",
        _summary("instructions, REP once", fidelity(times, once)),
        _summary("instructions, REP per 8 bytes", fidelity(times, words)),
        "",
        "| operation | native, ns | instructions | REP bytes | locked | ns per count (REP per 8 bytes), to its mean |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.time_ns:,.0f} | {one.instructions:,.0f} | {one.rep_bytes:,.0f} | {one.locked:.1f} "
        f"| {one.time_ns / one.per_word / middle:.2f} |"
        for one in found
    ]
    return "\n".join(lines)


def kernel_here() -> str:
    """The nearest kernel of Debian to the running one, as kdelta names it."""
    arch: Arch = "arm64" if platform.machine() == "aarch64" else "x86_64"
    series = {one.series for one in debian.available(arch) if not one.flavour}
    return f"debian:{nearest(platform.release(), sorted(series))}" + (f",arch={arch}" if arch != "x86_64" else "")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="", help="count this kernel (default: Debian's nearest to the running one)")
    parser.add_argument("--boots", type=int, default=3, help="starts of the harness, natively (default: %(default)s)")
    parser.add_argument("--write", type=Path, help="replace the table between the marks in this file")
    parser.add_argument("--case", action="append", help="operations instead of the usual ones")
    asked = parser.parse_args()
    cases = [word for name in asked.case or OPERATIONS for word in ("--case", name)]
    try:
        kernel = asked.kernel or kernel_here()
    except (KdeltaError, ValueError) as error:
        raise SystemExit(f"fidelity: {error}") from None
    native = kdelta(["run", *cases, "--boots", str(asked.boots)])
    exact = kdelta(["run", "--kernel", kernel, "--exact", "--boots", "1", *cases])
    found = operations(native, exact)
    counted = exact["kernels"][0]["release"]
    where = f"Timed on {native['host']['kernel']} ({native['host']['cpu']}), counted on {counted}."
    made = table(found, where)
    print(made)
    if asked.write is not None:
        asked.write.write_text(written(asked.write.read_text(), made, "fidelity"))


if __name__ == "__main__":
    main()
