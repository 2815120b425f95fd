# SPDX-License-Identifier: GPL-2.0-or-later
"""make trial: real boots, known truths, five rules judged from the same samples.

A/A: one image under two labels; every call is a false alarm. Besides the experiment itself, the labels are exchanged at
random within blocks many times, which is as good a truth. Planted: the same image under a command line that costs
something real. How much is counted first, exactly: a cell that executes at least 5 % more instructions is a planted
cost, and a rule finds it when it calls the right direction. Our own engine stops at its looks.

Writes docs/trial.md. Experiments are kept in the store and reused when the trial is run again: a trial that was
interrupted goes on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from msgspec import Struct

from kdelta.results import answer
from kdelta.results.definitions import metrics_of
from kdelta.stats import estimators, paired, sequential
from kdelta.store.store import Store
from kdelta.units import percent

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ("debian:6.12/cloud", "debian:7.0/cloud")
CASES = ("getppid", "pidfd_open", "path_lookup", "thread_spawn")
PLANTED = ("slab_debug=FZP", "slab_debug=F", "init_on_free=1")
LEAST_TRUTH_PERCENT = 5.0
RELABELLINGS = 4000
TAG = "trial"
Boots = list[np.ndarray]


class Calls(Struct):
    """How often a rule called a difference, of how many times."""

    called: int = 0
    of: int = 0
    blocks: float = 0.0

    def add(self, called: bool, blocks: int) -> None:
        self.called += called
        self.of += 1
        self.blocks += blocks

    def text(self) -> str:
        return f"{self.called}/{self.of} ({100 * self.called / self.of:.1f} %)" if self.of else "-"


def kdelta(*args: str) -> None:
    """Run the program, its progress passed on."""
    print("$ kdelta", *args, flush=True)
    program = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]
    subprocess.run([*program, *args], check=True, stdout=subprocess.DEVNULL)


def experiment(store: Store, note: str, kernels: tuple[str, ...], *plan: str) -> str:
    """The id of the trial's experiment ``note``: finished now if it was not."""
    known = {row.note: row for row in store.experiments(tag=TAG)}
    if note not in known:
        cases = [word for case in CASES for word in ("--case", case)]
        kdelta("compare", *kernels, *plan, *cases)
        newest = store.experiments(limit=1)[0].id
        store.tag(newest, TAG)
        store.note(newest, note)
        return newest
    if known[note].status != "complete":
        kdelta("resume", known[note].id)
    return known[note].id


def blocks_of(store: Store, name: str, case: int, metric: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per complete block the samples of both kernels after warm-up, a rate turned into time: lower is better."""
    by_block: dict[int, dict[int, np.ndarray]] = defaultdict(dict)
    for row in store.samples(name, case, metric):
        kept = np.array([v for v, w in zip(row.values, row.warm, strict=True) if not w])
        by_block[row.block][row.kernel] = kept if row.better == "lower" else 1.0 / kept
    return [(cells[0], cells[1]) for _, cells in sorted(by_block.items()) if cells.keys() >= {0, 1}]


def truths(store: Store, kernel: str) -> dict[tuple[str, str], float]:
    """By command line and case: by how many percent the planted cost adds instructions, counted exactly."""
    variants = tuple(f'v{i}={kernel},cmdline="{cmdline}"' for i, cmdline in enumerate(PLANTED))
    name = experiment(store, f"truth {kernel} {PLANTED}", (f"plain={kernel}", *variants), "--exact")
    rows = answer.result(store, name)[0].results
    return {
        (PLANTED[int(row.patched_label[1:])], row.case): row.effect_percent or 0.0
        for row in rows
        if row.metric == "instructions"
    }


def cells(store: Store, name: str) -> Iterator[tuple[str, list[tuple[np.ndarray, np.ndarray]]]]:
    """(case, blocks) of the primary metric of each case."""
    found = store.experiment(name)
    metrics = metrics_of(found)
    for index, case in enumerate(found.cases):
        primary = next(m.name for m in metrics[case.workload] if m.primary)
        yield case.name, blocks_of(store, name, index, primary)


def ours(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[int, int]:
    """(direction called by our engine, blocks used): the group-sequential plan of up to 20 blocks."""
    plan = sequential.plan((8, 12, 16, 20))
    d = np.array([np.log(np.median(b)) - np.log(np.median(a)) for a, b in pairs])
    for index, look in enumerate(plan.looks):
        if look > d.size:
            break
        got = paired.look(d[None, :look], plan.two_sided[index], plan.one_sided[index], np.log1p(0.01))
        call = int(np.asarray(got.call).ravel()[0])
        if call == paired.LOWER:
            return -1, look
        if call == paired.HIGHER:
            return 1, look
        if call == paired.SAME:
            return 0, look
    return 0, int(d.size)


RULES = ("kbest", "lkp", "fastpath", "benchstat")
_DIRECTION = {"improved": -1, "regressed": 1, "none": 0}


def judge(pairs: list[tuple[np.ndarray, np.ndarray]], truth: int, table: dict[str, Calls]) -> None:
    """All rules on the same samples; with ``truth`` 0 any call counts, else a call in that direction."""
    direction, used = ours(pairs)
    table["kdelta"].add(direction == truth if truth else direction != 0, used)
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    for rule in RULES:
        call = _DIRECTION[estimators.estimate(rule, a, b).call]
        table[rule].add(call == truth if truth else call != 0, len(pairs))


def relabelled(
    pairs: list[tuple[np.ndarray, np.ndarray]], rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The two labels exchanged at random in each block: still identical kernels."""
    return [(b, a) if rng.random() < 0.5 else (a, b) for a, b in pairs]


def render(
    false_alarms: dict[str, Calls], shuffled: dict[str, Calls], power: dict[str, Calls], lines: list[str]
) -> str:
    """The table as Markdown."""
    names = {"kdelta": "kdelta (this tool)", "kbest": "K-best beyond the RSD", "lkp": "lkp-tests"}
    names |= {"fastpath": "intervals of pooled samples (Fastpath)", "benchstat": "benchstat on pooled samples"}
    text = [
        "# The trial",
        "",
        "Made by `make trial`: real boots, the same samples judged by five rules. A planted cost is a cell that",
        f"executes at least {LEAST_TRUTH_PERCENT:g} % more instructions, counted exactly beforehand.",
        "",
        "| rule | false alarms, A/A as booted | A/A, labels exchanged | planted costs found | blocks used (planted) |",
        "|---|---|---|---|---|",
    ]
    for key, name in names.items():
        used = power[key].blocks / power[key].of if power[key].of else 0.0
        text.append(
            f"| {name} | {false_alarms[key].text()} | {shuffled[key].text()} | {power[key].text()} | {used:.1f} |"
        )
    return "\n".join([*text, "", *lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=20, help="blocks per experiment")
    parser.add_argument("--kernels", nargs="*", default=list(KERNELS))
    args = parser.parse_args()
    rng = np.random.default_rng(2026)
    tables: list[dict[str, Calls]] = [defaultdict(Calls) for _ in range(3)]
    plan = ("--timed", "--blocks", str(args.blocks))
    lines = [
        "| planted | case | instructions, counted exactly | timed, our engine | after blocks |",
        "|---|---|---|---|---|",
    ]
    with Store() as store:
        for kernel in args.kernels:
            name = experiment(store, f"A/A {kernel}", (f"a={kernel}", f"b={kernel}"), *plan)
            for _, pairs in cells(store, name):
                judge(pairs, 0, tables[0])
                for _ in range(RELABELLINGS):
                    judge(relabelled(pairs, rng), 0, tables[1])
        kernel = args.kernels[0]
        truth = truths(store, kernel)
        for cmdline in PLANTED:
            planted = f'slower={kernel},cmdline="{cmdline}"'
            name = experiment(store, f"planted {kernel} {cmdline}", (f"plain={kernel}", planted), *plan)
            for case, pairs in cells(store, name):
                direction, used = ours(pairs)
                word = {1: "slower", -1: "faster", 0: "no difference called"}[direction]
                lines.append(f"| `{cmdline}` | {case} | {percent(truth[cmdline, case])} | {word} | {used} |")
                if truth[cmdline, case] >= LEAST_TRUTH_PERCENT:
                    judge(pairs, 1, tables[2])
        machine = store.boots(name)[0].machine
        lines += ["", f"{args.blocks} blocks per experiment; guests: {machine['accel']}, {machine['qemu']}."]
    (ROOT / "docs" / "trial.md").write_text(render(tables[0], tables[1], tables[2], lines), encoding="utf-8")
    print((ROOT / "docs" / "trial.md").read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
