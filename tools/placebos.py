# SPDX-License-Identifier: GPL-2.0-or-later
"""make placebos: exact comparisons of a kernel with itself, changed by something that no case executes.

One image under two labels with the same seeds repeats itself and proves nothing. A longer command line, less memory or
a larger initramfs moves what the kernel allocates; a built kernel whose padding moves the text moves its code as well.
Every verdict but "same" and "inconclusive" is a false alarm.

Each base kernel is measured once, with all its placebos, and every placebo is judged against it alone, as if the two
had been compared. A run that was killed goes on. Prints a Markdown table; docs/methodology.md holds the one measured.

``--programs`` does so with the programs of suites, each suite by itself, and has a row for each program instead.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta import verdict
from kdelta.kernel import products, wanted
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.worktree import Worktree
from kdelta.model import CellResult, Experiment, Progress, Quiet
from kdelta.results import cells, definitions, explain
from kdelta.store.store import Store

KERNELS = ("debian:6.12/cloud", "debian:7.0/cloud", "debian:6.1/cloud")
LINES = (*(f"placebo={'x' * n}" for n in (1, 7, 16, 64, 230, 1500)), "mem=600M", "mem=700M", "mem=1000M")
# Linux sizes the batches of a CPU's page lists by memory: 31 pages with 700 MiB, 63 with 800 MiB to 1 GiB. That is no
# layout, and a Python that faults 3,000 pages in has 2.3 % more instructions with 700 (6.12).
PROGRAM_LINES = (
    f"placebo={'x' * 7}", "mem=900M", f"placebo={'x' * 64}", f"placebo={'x' * 30} mem=1000M", "placebo=x", "mem=800M",
)  # fmt: skip
PROGRAM_SEEDS = 20  # what a user gets
SUITES = ("stress-ng/*", "fio/*", "unixbench/*", "hackbench/*", "perf/*")  # schbench is in no Debian package
PAD_BYTES = 5_000_001
CASES = (
    "pidfd_open", "path_lookup", "pipe", "fork_vmas", "thread_spawn",
    "path_lookup:paths=misses", "pipe:pattern=mix", "pipe:writers=2", "fork_vmas:vmas=64", "thread_spawn:instead=fork",
)  # fmt: skip
TEXT, INIT = "noinline void", "__init void"
# Where padding goes in a built kernel: early text, memory management, ends of paths, init-only code, another driver.
PADDED = (
    ("init/main.c", TEXT), ("kernel/panic.c", TEXT), ("mm/oom_kill.c", TEXT), ("kernel/reboot.c", TEXT),
    ("fs/coredump.c", TEXT), ("init/do_mounts.c", INIT), ("drivers/tty/serial/8250/8250_pci.c", TEXT),
    ("arch/x86/kernel/e820.c", INIT), ("lib/crc32.c", TEXT), ("net/core/scm.c", TEXT),
)  # fmt: skip
ALARMS = ("improved", "regressed")
_UNUSED = '#include "workload.h"\nstatic void op(struct wl_task *t)\n{\n\tt->bytes++;\n}\nWORKLOAD_BATCH(batch, op)\n'


class Group(Struct, frozen=True):
    """A base kernel with its placebos, as kernels on the command line."""

    base: str
    placebos: tuple[str, ...]


def command_lines(kernel: str, lines: Sequence[str] = LINES) -> Group:
    """Debian's kernel under command lines that only move memory."""
    return Group(kernel, tuple(f'{kernel},cmdline="{line}"' for line in lines))


def labelled(group: Group) -> list[str]:
    """A group as the kernels of a command line: the base first."""
    return [f"base={group.base}", *(f"p{n}={placebo}" for n, placebo in enumerate(group.placebos))]


def padding(text: str, name: str, kind: str, number: int) -> str:
    """A patch that adds a function to the end of the file ``name``, which reads ``text``; nothing calls it."""
    before = text.splitlines(keepends=True)
    body = "".join(f'\tasm volatile("nop" : : "r"({i}));\n' for i in range(7 + 13 * number))
    named = f"{kind} kdelta_placebo_{number}(void)"
    after = [*before, *f"\n{named};\n{named}\n{{\n{body}}}\n".splitlines(keepends=True)]
    return "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"))


def built(base: str, folder: Path, count: int, progress: Progress) -> Group:
    """Kernels of a source, each with padding in one file."""
    origin = wanted.origin_of(parse_kernel(base), progress)
    tree = Worktree(products.root() / origin.key)
    found = []
    with tree.locked(progress):
        if tree.base_id != origin.base:
            origin.fill(tree, progress)
        for number, (name, kind) in enumerate(PADDED[:count]):
            patch = folder / f"placebo-{number}.patch"
            patch.write_text(padding(tree.read_base(name) or "", name, kind, number))
            found.append(f"{base}+{patch}")
    return Group(base, tuple(found))


def padded_initramfs(folder: Path) -> Path:
    """A folder of workloads whose data file, which no case reads, makes every initramfs larger."""
    unused = folder / "unused"
    unused.mkdir(exist_ok=True)
    (unused / "unused.data").write_bytes(bytes(range(256)) * (PAD_BYTES // 256))
    (unused / "unused.c").write_text(
        _UNUSED + 'static const struct workload unused = { .name = "unused", .op = op, .batch = batch };\n'
        "WORKLOAD(unused);\n"
    )
    (unused / "unused.toml").write_text(
        'name = "unused"\ntitle = "makes the initramfs larger"\nhelp = "Runs nothing."\nexact_ops = 16\n'
        'data = ["unused.data"]\n'
    )
    return unused


def measured(store: Store, words: Sequence[str], seeds: int, cases: Sequence[str] = CASES) -> Experiment:
    """The finished experiment of a command line: found, gone on with, or made now."""
    options = [*(word for case in cases for word in ("--case", case)), "--seed", "1"]
    count = ["--boots", str(seeds)] if words[0] == "run" else ["--seeds", str(seeds)]
    command = [*words, "--exact", *options, *count]
    name = "placebos " + hashlib.sha256(" ".join(command).encode()).hexdigest()
    row = next((row for row in store.experiments() if row.note == name), None)
    begun = {row.id for row in store.experiments()}
    kdelta = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
    if row is None or row.status != "complete":
        asked = command if row is None else ["resume", row.id]
        running = subprocess.Popen([*kdelta, *asked, "--json"], stdout=subprocess.DEVNULL)
        while row is None and running.poll() is None:  # so that a killed run is found again
            row = next((one for one in store.experiments() if one.id not in begun), None)
            if row is not None:
                store.note(row.id, name)
            else:
                _wait(running)
        if running.wait() not in (0, 3):
            raise SystemExit(f"failed: kdelta {' '.join(asked)}")
    return store.experiment(row.id if row is not None else "last")


def _wait(running: subprocess.Popen[bytes]) -> None:
    try:
        running.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return


def judged(store: Store, a: Experiment, b: Experiment, kernel: int) -> list[CellResult]:
    """Kernel ``kernel`` of ``b`` against the first one of ``a``, as if just they had been compared."""
    two = replace(a, kernels=(a.kernels[0], b.kernels[kernel]))
    sides = [
        replace(cell, kernel=side)
        for side, (experiment, number) in enumerate(((a, 0), (b, kernel)))
        for cell in cells.of_numbers(experiment, store, store.numbers(experiment.id))
        if cell.kernel == number
    ]
    rows = verdict.judge(two, sides, cells.floors_of(a, store), definitions.metrics_of(a))
    return [row for row in _held(store, two, a, b, kernel, rows) if row.primary]


def _held(
    store: Store, two: Experiment, a: Experiment, b: Experiment, kernel: int, rows: Sequence[CellResult]
) -> tuple[CellResult, ...]:
    """The rows without the verdicts that a report takes back: those of other system calls, or of deferred work."""
    only = {row.case for row in rows if row.verdict in ALARMS}
    before, after = explain.seeds_of(a, store, only), explain.seeds_of(b, store, only)
    seeds = {cell: {0: before[cell].get(0, []), 1: after.get(cell, {}).get(kernel, [])} for cell in before}
    return explain.Explainer(two, seeds).held(rows)


class Table:
    """The table, row by row, with the sum at its end; what is a false alarm is told as it is found."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.rows = 0
        print("| placebo | cells | same | inconclusive | false alarms |\n|---|---|---|---|---|", flush=True)

    def add(self, name: str, rows: Sequence[CellResult]) -> None:
        """One placebo."""
        found: Counter[str] = Counter(row.verdict or f"no verdict ({row.state})" for row in rows)
        for row in rows:
            if row.verdict in ALARMS:
                told = "from 0" if row.effect_percent is None else f"{row.effect_percent:+.2f} %"
                print(f"{name}: {row.case} {row.verdict} {told}", file=sys.stderr)
            elif row.verdict is None:
                print(f"{name}: {row.case}: no verdict: {row.state} {row.why}", file=sys.stderr)
        self.total += found
        self.rows += 1
        self._row(name, found)
        alarms = self.total["improved"] + self.total["regressed"]
        print(f"{self.rows} placebos: {alarms} false alarms in {self.total.total()} cells", file=sys.stderr)

    def _row(self, name: str, found: Counter[str]) -> None:
        alarms = found["improved"] + found["regressed"]
        print(f"| {name} | {found.total()} | {found['same']} | {found['inconclusive']} | {alarms} |", flush=True)

    def end(self) -> None:
        """The sum."""
        self._row("all", self.total)


def programs(store: Store, kernels: Sequence[str], asked: Sequence[Sequence[str]], placebos: int, seeds: int) -> None:
    """A table with a row for each program, under command lines that only move memory; ``asked`` are experiments."""
    rows: dict[str, dict[str, list[CellResult]]] = {}
    for kernel, cases in itertools.product(kernels, asked):
        group = command_lines(kernel, PROGRAM_LINES[:placebos])
        whole = measured(store, ["compare", *labelled(group)], seeds, cases)
        for number, placebo in enumerate(group.placebos, 1):
            for row in judged(store, whole, whole, number):
                rows.setdefault(row.case, {}).setdefault(kernel, []).append(row)
                if row.verdict != "same":
                    print(f"{placebo}: {row.case} {row.verdict} {row.effect_percent} {row.warnings}", file=sys.stderr)
    print(f"| program | {' | '.join(kernels)} |\n|---|{'---|' * len(kernels)}")
    for case, found in rows.items():
        print(f"| `{case}` | {' | '.join(_told(found.get(kernel, [])) for kernel in kernels)} |")


def _told(rows: Sequence[CellResult]) -> str:
    """What became of a program's placebos: verdicts, the farthest effect, and the widest spread between seeds."""
    found = Counter(row.verdict or str(row.state) for row in rows)
    effects = [row.effect_percent for row in rows if row.effect_percent is not None]
    spreads = [row.extra.get("spread_percent", 0.0) for row in rows]
    words = ", ".join(f"{n} {word}" for word, n in sorted(found.items()))
    return f"{words}; {max(effects, key=abs, default=0.0):+.2f} %, spread {max(spreads, default=0.0):.2f} %"


def groups(asked: argparse.Namespace, folder: Path) -> Iterator[Group]:
    """What is compared, built kernels first."""
    if asked.source:
        yield built(asked.source, folder, asked.built, Quiet())
    yield from (command_lines(kernel) for kernel in KERNELS[: asked.kernels])


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="", help="also build kernels of this source with padding: src:debian:6.12")
    parser.add_argument("--built", type=int, default=len(PADDED), help="how many of them (default: %(default)s)")
    parser.add_argument("--kernels", type=int, default=len(KERNELS), help="Debian's kernels (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=8, help="the most per kernel (default: %(default)s)")
    parser.add_argument("--programs", nargs="*", metavar="CASE", help="programs of suites instead (default: all)")
    parser.add_argument(
        "--placebos", type=int, default=len(PROGRAM_LINES), help="of each program (default: %(default)s)"
    )
    parser.add_argument("--folder", type=Path, default=Path("build/placebos"), help="store, patches (default: there)")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["KDELTA_STATE"] = str(folder)
    if asked.programs is not None:
        wanted_cases = [asked.programs] if asked.programs else [[suite] for suite in SUITES]
        with Store() as store:
            programs(store, KERNELS[: asked.kernels], wanted_cases, asked.placebos, PROGRAM_SEEDS)
        return
    pad, table = padded_initramfs(folder), Table()
    with Store() as store:
        for group in groups(asked, folder):
            whole = measured(store, ["compare", *labelled(group)], asked.seeds)
            for number, placebo in enumerate(group.placebos, 1):
                table.add(placebo, judged(store, whole, whole, number))
            if not group.base.startswith("src:"):
                words = ["run", "--kernel", group.base, "--workloads", str(pad)]
                padded = measured(store, words, asked.seeds)
                table.add(f"{group.base}, initramfs + {PAD_BYTES} bytes", judged(store, whole, padded, 0))
    table.end()


if __name__ == "__main__":
    main()
