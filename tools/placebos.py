# SPDX-License-Identifier: GPL-2.0-or-later
"""make placebos: exact comparisons of a kernel with itself, changed by something that no case executes.

One image under two labels with the same seeds repeats itself and proves nothing. A longer command line, or less memory,
moves what the kernel allocates; a built kernel whose padding moves the text moves its code as well. Every verdict
but "same" and "inconclusive" is a false alarm. Prints a Markdown table; docs/methodology.md holds the one measured.
"""

from __future__ import annotations

import argparse
import difflib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

KERNELS = ("debian:6.1/cloud", "debian:6.12/cloud", "debian:7.0/cloud")
LENGTHS = (1, 7, 16, 33, 64, 100, 230, 400)
MEMORIES = ("700M", "1000M")
CASES = (
    "pidfd_open", "path_lookup", "pipe", "fork_vmas", "thread_spawn",
    "path_lookup:paths=misses", "pipe:pattern=mix", "pipe:writers=2", "fork_vmas:vmas=64", "thread_spawn:instead=fork",
)  # fmt: skip
# Where padding goes in a built kernel: early text, a driver, memory management, and ends of paths.
PADDED = (
    "init/main.c", "kernel/panic.c", "drivers/tty/sysrq.c", "mm/oom_kill.c", "kernel/reboot.c",
    "fs/coredump.c", "drivers/char/mem.c", "lib/crc32.c", "kernel/kexec_core.c", "net/core/scm.c",
)  # fmt: skip


def command_lines() -> Iterator[tuple[str, str]]:
    """(baseline, placebo) kernels: Debian's, under command lines that only move memory."""
    for kernel in KERNELS:
        for line in (*(f"placebo={'x' * n}" for n in LENGTHS), *(f"mem={size}" for size in MEMORIES)):
            yield f"a={kernel}", f'b={kernel},cmdline="{line}"'


def padding(tree: Path, name: str, number: int) -> str:
    """A patch of ``tree`` that adds functions to the end of a file; nothing calls them."""
    before = (tree / name).read_text().splitlines(keepends=True)
    body = "".join(f'\tasm volatile("nop" : : "r"({i}));\n' for i in range(7 + 13 * number))
    added = (
        f"\nnoinline void kdelta_placebo_{number}(void);\nnoinline void kdelta_placebo_{number}(void)\n{{\n{body}}}\n"
    )
    after = [*before, *added.splitlines(keepends=True)]
    return "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"))


def built(tree: Path, folder: Path, count: int) -> Iterator[tuple[str, str]]:
    """(baseline, placebo) kernels of a source tree, the second with padding in one file."""
    for number, name in enumerate(PADDED[:count]):
        patch = folder / f"placebo-{number}.patch"
        patch.write_text(padding(tree, name, number))
        yield f"a=src:{tree}", f"b=src:{tree}+{patch}"


def calls(pair: tuple[str, str], seed: int) -> Counter[str]:
    """The verdicts of one comparison, by word; without one, by state."""
    cases = [word for case in CASES for word in ("--case", case)]
    program = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
    command = [*program, "compare", *pair, "--exact", *cases, "--seed", str(seed), "--json", "-q"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows = [row for row in json.loads(done.stdout)["results"] if row["primary"]]
    for row in rows:
        if row["verdict"] in ("improved", "regressed"):
            print(f"{pair[1]}: {row['case']} {row['verdict']} {row['effect_percent']:+.2f} %", file=sys.stderr)
    return Counter(row["verdict"] or row["state"] for row in rows)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, help="also build kernels of this source tree, with padding")
    parser.add_argument("--built", type=int, default=10, help="how many of them (default: 10)")
    parser.add_argument("--lines", type=int, default=30, help="how many command lines (default: 30)")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where patches are written")
    asked = parser.parse_args()
    pairs = list(command_lines())[: asked.lines]
    if asked.tree is not None:
        asked.folder.mkdir(parents=True, exist_ok=True)
        pairs += built(asked.tree.resolve(), asked.folder.resolve(), asked.built)
    print("| placebo | cells | same | inconclusive | false alarms |\n|---|---|---|---|---|", flush=True)
    total: Counter[str] = Counter()
    for seed, pair in enumerate(pairs):
        found = calls(pair, seed)
        total += found
        print(_row(pair[1].removeprefix("b="), found), flush=True)
    print(_row("all", total))


def _row(name: str, found: Counter[str]) -> str:
    alarms = found["improved"] + found["regressed"]
    return f"| {name} | {found.total()} | {found['same']} | {found['inconclusive']} | {alarms} |"


if __name__ == "__main__":
    main()
