# SPDX-License-Identifier: GPL-2.0-or-later
"""make bench: how fast kdelta itself is, each figure beside its bound, all in one run on this machine.

``make bench AGAINST=REVISION`` puts the figures of another revision beside them (tools/bench_against.py).

Exit 1 when a bound is missed. Ratios are taken within the run; absolute times are this machine's.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bench_against

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
KERNEL = "debian:6.12/cloud"
TARGET_CORES = 2
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
missed: list[str] = []
measured: list[tuple[str, float, str]] = []


def row(name: str, value: float, unit: str, bound: float, *, at_least: bool = False, target: float = 0) -> None:
    """Print one figure and remember a missed bound; ``target``: what is still wanted, where that is less."""
    measured.append((name, value, unit))
    good = value >= bound if at_least else value <= bound
    word = "at least" if at_least else "at most"
    wanted = f"; target {target:g}: {'met' if value <= target else 'not met'}" if target else ""
    print(f"{'ok    ' if good else 'MISSED'}  {name:46} {value:8.2f} {unit:3} ({word} {bound:g}{wanted})", flush=True)
    if not good:
        missed.append(name)


def timed(argv: list[str], env: dict[str, str] | None = None, check: bool = True) -> float:
    """Wall seconds of one command."""
    start = time.perf_counter()
    subprocess.run(argv, check=check, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def _adopt() -> None:
    """Become the parent of what our children leave behind: forked QEMUs end with theirs, and nobody counts them."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) is refused: processor time cannot be counted")


def _cores_s() -> float:
    """Processor seconds of all children so far, by core of the two that the targets are for."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (spent.ru_utime + spent.ru_stime) / TARGET_CORES


def worked(argv: list[str], env: dict[str, str]) -> float:
    """Processor seconds of one command over two cores: what it takes on an idle machine that boots two guests at once.

    Unlike wall time, that stays the same while others work on the machine.
    """
    start = _cores_s()
    subprocess.run(argv, check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return _cores_s() - start


def bench_help() -> None:
    """The entry point, as installed where it is installed."""
    script = ROOT / ".venv" / "bin" / "kdelta"
    argv = [str(script)] if script.exists() else PROGRAM
    row("kdelta --help", 1000 * statistics.median(timed([*argv, "--help"]) for _ in range(9)), "ms", 150)


def _without_snapshots(folder: Path) -> dict[str, str]:
    """The environment of a kdelta with a store of its own, and with all of the user's cache but the snapshots."""
    from kdelta import paths

    cache = folder / "cache"
    cache.mkdir()
    for part in paths.cache_dir().iterdir():
        if part.name != "snapshots":
            (cache / part.name).symlink_to(part)
    return {**os.environ, "KDELTA_STATE": str(folder / "state"), "KDELTA_CACHE": str(cache)}


def bench_exact() -> None:
    """Comparisons and a sweep of Debian kernels, attribution and report: cold, then with snapshots warm."""
    with tempfile.TemporaryDirectory() as folder:
        fetch = [*PROGRAM, "kernels", "fetch", "debian:6.12", "debian:7.0"]
        subprocess.run(fetch, check=True, stdout=subprocess.DEVNULL)
        env = _without_snapshots(Path(folder))
        command = [*PROGRAM, "compare", "debian:6.12", "debian:7.0", "-q", "--exact"]
        row("exact: five cases, two kernels, cold", worked(command, env), "s", 24, target=15)
        row("exact: the same, snapshots warm", worked(command, env), "s", 14.5, target=8)
        row("exact: one cheap case, warm", worked([*command, "--case", "getppid"], env), "s", 2.7, target=1.5)
        one_core = TARGET_CORES * worked([*PROGRAM, "report", "last"], env)
        row("report last", one_core, "s", 0.75, target=0.4)


def bench_sweep() -> None:
    """All series of Debian's archive, the five cases, snapshots warm."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "KDELTA_STATE": folder}
        sweep = [*PROGRAM, "sweep", "debian:6.1..7.3", "-q"]
        subprocess.run([*sweep, "--case", "getppid"], check=True, env=env, stdout=subprocess.DEVNULL)
        row("exact: sweep of ten kernels, five cases, warm", worked(sweep, env), "s", 50)


def bench_counting() -> None:
    """A whole exact run with and without the plugin, interleaved, from one snapshot."""
    import benching as bench

    ratios = bench.counting_ratios(KERNEL, rounds=3)
    row("counting over icount alone, whole run", statistics.median(ratios), "x", 1.25)


def bench_first_sample() -> None:
    """Boot to first sample, emulated, against virtme-ng to a command's output on the same kernel."""
    import benching as bench

    release = bench.installed()
    mine = bench.first_sample_s(f"/boot/vmlinuz-{release}" if release else KERNEL, rounds=3)
    theirs = bench.virtme_ng_s(release, rounds=2) if release else None
    if theirs is None:
        print(f"         boot to first sample {mine:.2f} s; virtme-ng could not run beside it: it needs a kernel")
        print("         (installed: apt-get install linux-image-cloud-amd64 busybox-static; pip install virtme-ng)")
        return
    print(f"         boot to first sample {mine:.2f} s, virtme-ng {theirs:.2f} s")
    row("virtme-ng over boot to first sample", theirs / mine, "x", 3, at_least=True)


def bench_harness() -> None:
    """The harness on the cheapest system call against a bare loop, same run (a test marked full holds the bound)."""
    argv = [sys.executable, "-m", "pytest", "-q", "-m", "full", "-k", "two_percent", str(ROOT / "tests/unit/guest")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    good = done.returncode == 0
    print(f"{'ok    ' if good else 'MISSED'}  harness overhead on the cheapest syscall (2 % against a bare loop)")
    if not good:
        missed.append("harness overhead")


def bench_store() -> None:
    """10,000 boots in the store."""
    done = subprocess.run([sys.executable, str(ROOT / "tools/bench_store.py")], check=False)
    if done.returncode:
        missed.append("store")


SECTIONS: dict[str, Callable[[], None]] = {
    "help": bench_help,
    "exact": bench_exact,
    "sweep": bench_sweep,
    "counting": bench_counting,
    "first-sample": bench_first_sample,
    "harness": bench_harness,
    "store": bench_store,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"only these: {chr(44).join(SECTIONS)}")
    parser.add_argument("--against", metavar="REVISION", help="measure that revision's code too, in turn")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="write name, value and unit there, a line each")
    asked = parser.parse_args()
    if unknown := set(asked.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}")
    sections = asked.sections or [*SECTIONS]
    if asked.against:
        bench_against.run(sections, asked.against)
        return 0
    _adopt()
    for name in sections:
        SECTIONS[name]()
        if asked.figures:
            asked.figures.write_text("".join(json.dumps(figure) + "\n" for figure in measured), encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
