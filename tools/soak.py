# SPDX-License-Identifier: GPL-2.0-or-later
"""make soak: a kernel against itself over all cases, five seeds against five others, for hours.

Each comparison is one case of one kernel: ten seeds that no other comparison has, judged by the engine that judges
users' comparisons, alone and so without a correction for others. Every verdict that is "improved" or "regressed" is
a false call. Counts that five seeds do not settle get further ones in a user's comparison; here they are told apart.

A piece is ten seeds of one suite, or with several CPUs (--smp), which take long, of some of its cases. It is kept in
the store; one that was cut short goes on where it was, and a whole one is made again only for another guest program,
plugin or QEMU. Whatever is stored is counted at the end of each piece.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shlex
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from scipy import stats

from kdelta import digests, paths, verdict
from kdelta.cli import main as cli
from kdelta.guest import binary
from kdelta.machine import plugin, probe
from kdelta.machine.qemu import binary_name
from kdelta.model import Arch, CellResult, Experiment, plans
from kdelta.results import cells, definitions, line_verdicts
from kdelta.spec.cases import of_suite
from kdelta.spec.suites import Suite, suites
from kdelta.spec.workloads import catalogue
from kdelta.store.rows import ProfileRow
from kdelta.store.store import Store
from marked import written

SEEDS = 5  # a side
CONFIDENCE = 0.95
CALLED = ("improved", "regressed")


SEVERAL = "contention"  # the suite of guests with several CPUs
TOGETHER = 6  # of its cases in a piece: what is read of a kernel once for each piece takes as long as one of them


class Piece(Struct, frozen=True):
    """Ten seeds of a suite on a kernel, or of some of its cases; those of each round are others."""

    kernel: str
    suite: str
    round: int  # from 1
    folder: str = ""  # of testcases, where the suite needs one
    smp: int = 1
    cases: tuple[str, ...] = ()  # on several CPUs

    @property
    def command(self) -> list[str]:
        """What kdelta is called with. ``--seed N`` stands for the seeds from 1000 N + 1 on (experiment/measure.py)."""
        folder = ["--workloads", self.folder] if self.folder else []
        cpus = ["--smp", str(self.smp)] if self.smp > 1 else []
        what = [word for case in self.cases for word in ("--case", case)] or ["--suite", self.suite]
        words = ["run", self.kernel, "--exact", *cpus, *what, *folder]
        return [*words, "--boots", str(2 * SEEDS), "--seed", str(self.round)]


class Row(Struct, frozen=True, kw_only=True):
    """What became of the pieces of a suite on a kernel."""

    kernel: str
    suite: str
    cases: int
    words: Counter[str]

    @property
    def compared(self) -> int:
        """Comparisons: cases that had a figure under all ten seeds."""
        return self.words.total() - self.words["no figure"]

    @property
    def false(self) -> int:
        """Comparisons that called a difference."""
        return sum(self.words[word] for word in CALLED)


def at_hand(known: dict[str, Suite], folder: str, smp: int = 1) -> list[str]:
    """The suites that this machine can run on one CPU; on several the one that is about them."""
    if smp > 1:
        return [SEVERAL]
    return [
        name
        for name, suite in known.items()
        if (not suite.needs or folder)
        and all(shutil.which(shlex.split(one.run)[0]) for one in suite.programs.values())
        and name != "contention"  # its cases on one CPU are those of other suites
    ]


def pieces(kernel: str, name: str, number: int, folder: str, smp: int) -> list[Piece]:
    """What round ``number`` of the suite ``name`` consists of."""
    suite = suites()[name]
    if smp == 1:
        return [Piece(kernel, name, number, folder if suite.needs else "")]
    labels = tuple(dict.fromkeys(case.label for case in of_suite(suite, catalogue())))
    groups = (labels[first : first + TOGETHER] for first in range(0, len(labels), TOGETHER))
    return [Piece(kernel, name, number, smp=smp, cases=some) for some in groups]


def made_by() -> str:
    """What all counts depend on beside kernel, case and seed: the guest's program, the plugin, QEMU."""
    arch: Arch = "x86_64"
    cache = paths.cache_dir()
    files = [digests.of_file(one) for one in (binary.build(arch, cache=cache), plugin.build(cache))]
    text = "\0".join([*files, probe.find_qemu(binary_name(arch), arch).text])
    return "soak " + hashlib.sha256(text.encode()).hexdigest()[:16]


def measured(store: Store, piece: Piece, made: str) -> None:
    """The piece is in the store, whole: found, gone on with or made now.

    Raises:
        SystemExit: kdelta ended with an error, or was told to end; what it finished is kept.
    """
    line = shlex.join(["kdelta", *piece.command])
    same = [row for row in store.experiments() if row.command == line]
    if any(row.status == "complete" and row.note == made for row in same):
        return
    begun = next((row for row in same if row.status != "complete"), None)
    sys.argv = ["kdelta", *(["resume", begun.id] if begun else piece.command)]
    with redirect_stdout(io.StringIO()):
        code = cli.run(sys.argv[1:])
    if code not in (0, 3):
        raise SystemExit(code)
    row = next(row for row in store.experiments() if row.command == line)  # the newest
    store.note(row.id, made)


def _alone(
    experiment: Experiment, data: Sequence[verdict.CellData], case: int
) -> tuple[Experiment, list[verdict.CellData]]:
    """One case as a comparison: the first five blocks against the next five."""
    kernel = experiment.kernels[0]
    two = replace(
        experiment,
        kernels=(kernel, kernel),
        cases=(experiment.cases[case],),
        blocks=SEEDS,
        looks=(SEEDS,),
        plan=plans.Compare(),
    )
    sides = [
        replace(
            cell,
            case=0,
            kernel=side,
            boots=tuple(replace(b, block=b.block % SEEDS) for b in cell.boots if b.block // SEEDS == side),
        )
        for cell in data
        if cell.case == case
        for side in (0, 1)
    ]
    return two, sides


def comparisons(store: Store, experiment: Experiment) -> Iterator[CellResult]:
    """The verdict of each case of a piece, and on several CPUs on each of its hottest lines."""
    data = cells.of_numbers(experiment, store, store.numbers(experiment.id))
    floors, metrics = cells.floors_of(experiment, store), definitions.metrics_of(experiment)
    for case in range(len(experiment.cases)):
        two, sides = _alone(experiment, data, case)
        yield from (row for row in verdict.judge(two, sides, floors, metrics) if row.primary)
        if experiment.machine.smp > 1:
            rows = [
                ProfileRow(row.block % SEEDS, row.slot, row.block // SEEDS, row.mitigations, row.profile)
                for row in store.profiles(experiment.id, case)
            ]
            yield from line_verdicts.judged(two, {0: rows})


def suite_of(words: Sequence[str], row: CellResult) -> str:
    """What a row of the table is about, of a piece made by the command ``words``."""
    if "--smp" not in words:
        return words[words.index("--suite") + 1]
    cpus = f"{SEVERAL}, {words[words.index('--smp') + 1]} CPUs"
    return cpus if row.primary else f"{cpus}, single lines"


def word_of(row: CellResult) -> str:
    """A comparison in one of five words."""
    if row.verdict in (*CALLED, "same"):
        return str(row.verdict)
    return "more seeds" if row.state == "ok" and row.baseline is not None else "no figure"


Judged = dict[str, tuple[CellResult, ...]]  # by experiment


def gathered(store: Store, made: str, judged: Judged) -> tuple[list[Row], list[str]]:
    """What all whole pieces of this guest say, and a line for each false call; each is judged once."""
    words_of: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    cases: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    called = []
    for listed in reversed(store.experiments()):  # oldest first
        if listed.note != made or listed.status != "complete":
            continue
        if listed.id not in judged:
            judged[listed.id] = tuple(comparisons(store, store.experiment(listed.id)))
        words = shlex.split(listed.command)
        for row in judged[listed.id]:
            release = row.baseline_label
            if row.verdict in CALLED:
                effect = "from 0" if row.effect_percent is None else f"{row.effect_percent:+.3f} %"
                called.append(f"{release} {row.case}, {row.metric}: {row.verdict} {effect} ({listed.id})")
            key = release, suite_of(words, row)
            words_of[key][word_of(row)] += 1
            cases[key].add(row.case)
    rows = [Row(kernel=key[0], suite=key[1], cases=len(cases[key]), words=counts) for key, counts in words_of.items()]
    return rows, called


def at_most_percent(false: int, compared: int) -> float:
    """The upper limit of the share of false calls at 95 %, one-sided; of none, 3 / n (the rule of three).

    Clopper & Pearson 1934; Hanley & Lippman-Hand, JAMA 249, 1983.
    """
    if not compared:
        return 100.0
    if not false:
        return min(100.0, 300.0 / compared)
    return 100.0 * float(stats.beta.ppf(CONFIDENCE, false + 1, compared - false)) if false < compared else 100.0


def table(rows: Sequence[Row], called: Sequence[str]) -> str:
    """Markdown: a line for each kernel and suite, the sum and its bound."""
    lines = [
        "| kernel | suite | cases | comparisons | same | more seeds wanted | false calls |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {r.kernel} | `{r.suite}` | {r.cases} | {r.compared} | {r.words['same']} | {r.words['more seeds']} "
            f"| {r.false} |"
            for r in rows
        ),
    ]
    compared, false = sum(r.compared for r in rows), sum(r.false for r in rows)
    said = f"{compared:,} comparisons, {false} false calls: at most {at_most_percent(false, compared):.2g} % (95 %)"
    missing = sum(r.words["no figure"] for r in rows)
    left = f"; {missing} had no figure" if missing else ""
    return "\n".join([*lines, "", f"{said}{left}.", *(f"- {line}" for line in called)])


def marks_of(smp: int) -> str:
    """Between which marks the table stands: those of several CPUs are kept apart."""
    return "soak" if smp == 1 else "soak --smp"


def main() -> None:
    """Run pieces, and count after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", action="append", help="kernels, one after the other (default: debian:6.12)")
    parser.add_argument("--suite", action="append", help="suites (default: all whose programs are here)")
    parser.add_argument("--workloads", default="", metavar="DIR", help="testcases of will-it-scale, for the suite wis")
    parser.add_argument("--smp", type=int, default=1, help="CPUs of each guest (default: 1)")
    parser.add_argument("--rounds", type=int, default=5, help="comparisons of each case (default: %(default)s)")
    parser.add_argument("--minutes", type=float, help="begin no piece after this time")
    parser.add_argument("--markdown", action="store_true", help="measure nothing: print the table of what is stored")
    parser.add_argument("--write", type=Path, help="and put it between the marks in this file")
    parser.add_argument("--folder", type=Path, default=Path("build/soak"), help="of the store (default: %(default)s)")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    os.environ["KDELTA_STATE"] = str(asked.folder.resolve())
    folder = str(Path(asked.workloads).resolve()) if asked.workloads else ""
    names = asked.suite or at_hand(suites(), folder, asked.smp)
    made, start = made_by(), time.monotonic()
    judged: Judged = {}
    with Store() as store:
        for number in range(1, 1 if asked.markdown else asked.rounds + 1):
            for kernel in asked.kernel or ["debian:6.12"]:
                for piece in (one for name in names for one in pieces(kernel, name, number, folder, asked.smp)):
                    if asked.minutes is not None and time.monotonic() - start > 60 * asked.minutes:
                        break
                    measured(store, piece, made)
                    print(table(*gathered(store, made, judged)).partition("\n\n")[2], file=sys.stderr, flush=True)
        text = table(*gathered(store, made, judged))
    print(text)
    if asked.write is not None:
        asked.write.write_text(written(asked.write.read_text(), text, marks_of(asked.smp)))


if __name__ == "__main__":
    main()
