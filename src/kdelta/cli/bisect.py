# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta bisect: the commit that made a case slower, or faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _bisection, _fleet, _given, _kernels, _one_case, _program, _session, common
from kdelta.errors import HostError, UserError

if TYPE_CHECKING:
    from kdelta.experiment.bisect import Answer
    from kdelta.model import Case, Experiment, Mode, Progress, plans

EPILOG = """\b
Examples:
  kdelta bisect src:./linux@v6.8 src:./linux@v6.9 --case pidfd_open
  kdelta bisect src:./linux@good src:./linux@bad --case pipe --timed
  kdelta bisect src:.@v6.12 src:. --case path_lookup --metric locked
  kdelta bisect src:./linux@v6.8 src:./linux@v6.9 -- git status
  kdelta bisect src:./linux@v6.8 src:./linux@v6.9 --case pipe --fleet
  kdelta bisect --resume 20261121-1530

GOOD and BAD are commits of one tree; the search follows first parents, so a merge counts as one change. Both ends are
measured first: if they do not differ, there is nothing to bisect. Commits that do not build or boot are skipped. The
commit found is then compared with its parent, and the functions that changed are named.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, _program.ProgramArgs, _fleet.FleetArgs):
    """The options of ``kdelta bisect``."""

    timed: bool
    metric: str | None
    seeds: int
    repetitions: int
    max_boots: int
    resume: str | None
    as_json: bool
    quiet: bool


@click.command(cls=_program.Command, epilog=EPILOG)
@click.argument("good", required=False)
@click.argument("bad", required=False)
@click.option("--timed", is_flag=True, help="Bisect by wall time in the guests, with a posterior over the commits.")
@click.option("--metric", metavar="METRIC", help="Bisect by this metric of the case instead of its primary one.")
@click.option("--seeds", type=click.IntRange(5, 99), default=8, show_default=True, help="Exact: seeds (perturbed guests) per commit.")  # fmt: skip
@click.option("--repetitions", type=click.IntRange(1, 255), default=3, show_default=True, help="Exact: maximum number of repetitions per seed; one that agrees with the round before it is enough.")  # fmt: skip
@click.option("--max-boots", type=click.IntRange(20, 10_000), default=200, show_default=True, help="Timed: maximum number of boots; then the likely commits are listed.")  # fmt: skip
@click.option("--resume", metavar="EXPERIMENT", help="Continue an interrupted bisection.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@common.case_options_by("")
@_program.tree_option
@_program.options
@_fleet.options
@common.machine_options
def command(good: str | None, bad: str | None, **options: Any) -> int:
    """Find the commit between GOOD and BAD (src:TREE@REF) that changed a case."""
    return run(good, bad, Args(**options))


def run(good: str | None, bad: str | None, args: Args) -> int:
    """The command on typed arguments."""
    if args.resume and (good or args.cases or args.program):
        raise UserError(
            "--resume takes everything from the stored bisection: leave out GOOD, BAD, --case and the program"
        )
    if not args.resume and not (good and bad):
        raise UserError(_ends_missing(good or ""))
    args.refuse(budget=False, others={"kdelta bisect": True})
    if args.resume:
        rest = [name for name in _given.given() if name not in ("resume", "as_json", "quiet", "fleet")]
        _given.refuse(rest, "does nothing beside --resume, which takes everything from the stored bisection")
    else:
        mode: Mode = "timed" if args.timed else "exact"
        _given.refuse_other_mode(mode, "leave it out, or " + ("leave out --timed" if args.timed else "add --timed"))
        _given.refuse_idle_machine(mode, args.smp)
    with _session.opened(args.quiet, stored=bool(args.resume)) as session, session.progress() as progress:
        stored = session.store.experiment(args.resume) if args.resume else _begun(session, good or "", bad or "", args)
        answer = _search(session, stored, args, progress)
        _bisection.show(session.store, answer, args.as_json)
    return 0


def _ends_missing(good: str) -> str:
    """What to write where there is no BAD: a range may have been meant, of commits or of releases."""
    tree, at, refs = good.rpartition("@")
    first, dots, last = refs.partition("..")
    if dots and not at and ":" in first:
        sweep = f"; steps between releases: kdelta sweep '{good}'" if first.startswith("debian:") else ""
        return f"bisect needs commits of a git tree, as in src:.@v6.8 src:.@v6.9; {good!r} is none{sweep}"
    if dots:
        ends = [f"{tree or 'src:.'}@{ref or 'HEAD'}" for ref in (first, last.strip("."))]
        return f"bisect takes GOOD and BAD apart: kdelta bisect {' '.join(ends)}"
    return "bisect takes GOOD and BAD, as in: kdelta bisect src:./linux@v6.8 src:./linux@v6.9 --case pipe"


def _search(session: _session.Session, experiment: Experiment, args: Args, progress: Progress) -> Answer:
    from kdelta.experiment import bisect

    lab = bisect.laboratory(session.store, experiment, progress, _fleet.hands(session, args, experiment, progress))
    again = f"kdelta bisect --resume {experiment.id}{' --fleet' if args.fleet else ''}"
    try:
        return bisect.bisect(lab, _session.now)
    except KeyboardInterrupt as ending:
        ending.add_note(f"all finished boots are kept; continue with: {again}")
        raise
    except HostError as error:
        raise HostError(f"{error}; finished boots are kept, go on with: {again}") from None


def _begun(session: _session.Session, good: str, bad: str, args: Args) -> Experiment:
    from kdelta.experiment import commits, templates

    first, last = _kernels.of_one_tree(good, bad)
    case = _one(args)
    mode: Mode = "timed" if args.timed else "exact"
    metric = _one_case.metric_of(args, mode, case, args.metric)
    plan = commits.plan(first, last, metric.name, args.max_boots)
    _kernels.look([first, last])  # before any commit is built
    asked = args.asked([case], args.effort(seeds=args.seeds, repetitions=args.repetitions))
    template = templates.bisect(asked, mode, plan)
    if args.fleet:
        _fleet.refuse_planned(template)
    found = session.begin(template, args.seed)
    _tell(session, good, bad, plan)
    return found


def _tell(session: _session.Session, good: str, bad: str, plan: plans.Bisect) -> None:
    """What begins now, and what of the tree is no part of it."""
    from pathlib import Path

    from kdelta.experiment import commits
    from kdelta.kernel import origin
    from kdelta.kernel.sources import parse_kernel

    session.note(commits.beforehand(plan))
    heads = any(not parse_kernel(text).ref for text in (good, bad))
    if heads and (count := origin.uncommitted(Path(plan.tree))):
        files = "1 file" if count == 1 else f"{count} files"
        session.note(f"uncommitted changes of {files} are left out: a bisection is of commits")


def _one(args: Args) -> Case:
    """The program, or else the only case that was asked for.

    Raises:
        UserError: none, several, or both.
    """
    if args.program and args.named:
        raise UserError("bisecting takes one case: leave out --case, --suite and --workloads, or the program")
    cases = args.cases_or(lambda: (_one_case.one_case(args),), named=False, surrounded=args.surrounded)
    return cases[-1]  # with --memcg the one in the child
