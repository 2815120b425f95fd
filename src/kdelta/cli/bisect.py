# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta bisect: the commit that made a case slower, or faster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _program, common
from kdelta.cli._say import say
from kdelta.errors import HostError, UserError

if TYPE_CHECKING:
    from kdelta.experiment.bisect import Answer
    from kdelta.model import Case, Experiment, Mode, Progress
    from kdelta.spec.kernels import KernelSpec
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta bisect src:./linux@v6.8 src:./linux@v6.9 --case pidfd_open
  kdelta bisect src:./linux@good src:./linux@bad --case pipe --timed
  kdelta bisect src:.@v6.12 src:. --case path_lookup --metric locked
  kdelta bisect src:./linux@v6.8 src:./linux@v6.9 --tree . -- git status
  kdelta bisect --resume 20261121-1530

GOOD and BAD are commits of one tree; the search follows first parents, so a merge counts as one change. Both ends are
measured first: if they do not differ, there is nothing to bisect. Commits that do not build or boot are skipped. The
commit found is then compared with its parent, and the functions that changed are named.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, _program.ProgramArgs):
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
@common.case_options
@_program.tree_option
@_program.options
@common.machine_options
def command(good: str | None, bad: str | None, **options: Any) -> int:
    """Find the commit between GOOD and BAD (src:TREE@REF) that changed a case."""
    return run(good, bad, Args(**options))


def run(good: str | None, bad: str | None, args: Args) -> int:
    """The command on typed arguments."""
    from kdelta.cli.progress import Reporter
    from kdelta.store.store import Store

    if args.resume and (good or args.cases or args.program):
        raise UserError(
            "--resume takes everything from the stored bisection: leave out GOOD, BAD, --case and the program"
        )
    if not args.resume and not (good and bad):
        raise UserError("bisect takes GOOD and BAD, as in: kdelta bisect src:./linux@v6.8 src:./linux@v6.9 --case pipe")
    with Store() as store, Reporter(args.quiet) as reporter:
        experiment = store.experiment(args.resume) if args.resume else _create(store, good or "", bad or "", args)
        answer = _search(store, experiment, reporter, args)
        _show(store, answer, args.as_json)
    return 0


def _search(store: Store, experiment: Experiment, progress: Progress, args: Args) -> Answer:
    from kdelta.experiment import bisect, imported

    imported.refuse(experiment)  # before its tree is asked for commits
    workloads = common.load_workloads(tuple(map(Path, experiment.folders)))
    lab = bisect.Laboratory(store, experiment.id, workloads, progress)
    workload = workloads.get(experiment.cases[0].workload)
    if workload is None:
        raise UserError(f"the workload {experiment.cases[0].workload!r} of bisection {experiment.id} was not found")
    again = f"kdelta bisect --resume {experiment.id}"
    try:
        return bisect.bisect(lab, bisect.metric_of(experiment.mode, workload, lab.plan.metric), common.now)
    except KeyboardInterrupt:
        progress.note(f"interrupted: all finished boots are kept; continue with: {again}")
        raise
    except HostError as error:
        raise HostError(f"{error}; finished boots are kept, go on with: {again}") from None


def _base(good: str, bad: str) -> tuple[KernelSpec, KernelSpec]:
    """GOOD and BAD as kernels of one tree that differ in nothing but the ref; the tree's path is whole.

    Raises:
        UserError: they are no such kernels.
    """
    import msgspec

    from kdelta.kernel.sources import parse_kernel

    ends = []
    for text in (good, bad):
        spec = parse_kernel(text)
        if spec.kind != "src":
            raise UserError(f"bisect needs commits of a git tree, as src:TREE@REF; {text!r} is not one")
        target = str(Path(spec.target).expanduser().resolve())
        ends.append(msgspec.structs.replace(spec, target=target, ref=spec.ref or "HEAD", label=""))
    plain = [msgspec.structs.replace(spec, text="", ref="") for spec in ends]
    if plain[0] != plain[1]:
        raise UserError(f"{good!r} and {bad!r} must name one tree, with the same patches and options")
    return ends[0], ends[1]


def _create(store: Store, good: str, bad: str, args: Args) -> Experiment:

    from kdelta.experiment import bisect, templates
    from kdelta.kernel import history
    from kdelta.kernel.resolve import check
    from kdelta.model import plans

    first, last = _base(good, bad)
    workloads = common.load_workloads(args.folders)
    case = _one(args)
    mode: Mode = "timed" if args.timed else "exact"
    metric = bisect.metric_of(mode, workloads[case.workload], args.metric)
    line = history.line(first.target, first.ref, last.ref)
    check([first, last])  # before any commit is built
    plan = plans.Bisect(
        tree=first.target,
        good=line[0],
        bad=line[-1],
        metric=metric.name,
        max_boots=args.max_boots,
        patches=first.patches,
        cmdline=first.cmdline,
        config=first.config,
        arch=first.arch,
    )
    asked = args.asked([case], args.effort(seeds=args.seeds, repetitions=args.repetitions))
    experiment = templates.created(templates.bisect(asked, mode, plan), args.seed, common.now)
    store.create(experiment)
    return experiment


def _one(args: Args) -> Case:
    """The program, or else the only case that was asked for.

    Raises:
        UserError: none, several, or both.
    """
    if args.program and args.named:
        raise UserError("bisecting takes one case: leave out --case, --suite and --workloads, or the program")
    return args.cases_or(lambda: (one_case(args),), named=False)[0]


def one_case(args: common.CaseArgs) -> Case:
    """The only case that was asked for; ``--memcg`` puts it into a child memcg.

    Raises:
        UserError: none, or several.
    """
    import dataclasses

    import msgspec

    if not args.cases:
        raise UserError(
            "bisecting needs one case, as in --case pidfd_open (kdelta cases lists them), or a program behind --"
        )
    cases = dataclasses.replace(args, memcg=False).chosen()
    if len(cases) != 1:
        raise UserError(f"bisecting takes one case, not {len(cases)}: {', '.join(case.name for case in cases)}")
    return msgspec.structs.replace(cases[0], cgroup="child" if args.memcg else cases[0].cgroup)


def _show(store: Store, answer: Answer, as_json: bool) -> None:
    import json

    import msgspec

    from kdelta.report.json_ import cell_document
    from kdelta.report.sentences import because
    from kdelta.results.answer import result

    confirmed = result(store, answer.confirmation)[0].results if answer.confirmation else ()
    row = next((r for r in confirmed if r.metric == answer.metric), None)
    if as_json:
        document = {"schema": "kdelta-bisect/1"} | msgspec.to_builtins(answer)
        document["confirmed"] = None if row is None else cell_document(row)
        say(json.dumps(document, indent=2))
        return
    change = f"{answer.good_value:g} -> {answer.bad_value:g} {answer.unit}"
    if answer.same_why:
        say(f"GOOD and BAD do not differ in {answer.case}, {answer.metric} ({change}): {answer.same_why}.")
        say(f"There is nothing to bisect; experiment {answer.experiment}.")
        return
    for commit in answer.suspects:
        say(f"{commit.hash} {commit.subject}\n    {commit.author}, {commit.date}")
    say(_verdict(answer))
    if row is not None:
        effect = "" if row.effect_percent is None else f"{row.effect_percent:+.2f} %, "
        say(f"Against its parent {answer.parent[:12]}: {effect}{row.verdict or row.state}"
                   f" ({_figure(row.baseline)} -> {_figure(row.patched)} {row.unit}; GOOD to BAD: {change})")  # fmt: skip
        if row.because_line:
            say(f"  because {because(row.because_line, row.effect_percent)}")
        if row.verdict not in ("improved", "regressed"):
            say("  NOT CONFIRMED: the commit and its parent do not differ beyond the noise")
        say(f"  kdelta report {answer.confirmation}; kdelta why {answer.confirmation}")
    for name in answer.refuted:
        say(f"Refuted {name[:12]}: was found first, but does not differ from its parent")
    for name, why in answer.skipped:
        say(f"Skipped {name[:12]}: {why}")
    if len(answer.suspects) == 1 and len(answer.suspects[0].parents) > 1:
        merge = answer.suspects[0]
        say(f"It is a merge: to look into its branch, bisect from a commit that {merge.parents[1][:12]} descends from.")


def _figure(value: float | None) -> str:
    return "not measured" if value is None else f"{value:g}"


def _verdict(answer: Answer) -> str:
    sure = "" if answer.probability == 1.0 else f", probability {100 * answer.probability:.0f} %"
    kernels = f"{len(answer.tested)} of {answer.commits} commits tested in {answer.boots} boots{sure}"
    if len(answer.suspects) == 1:
        return f"is the first commit with the change in {answer.case}, {answer.metric} ({kernels}; {answer.experiment})"
    return (
        f"One of these {len(answer.suspects)} commits changed {answer.case}, {answer.metric}; which one cannot be "
        f"decided, because those between cannot be measured or the boots are used up ({kernels}; {answer.experiment})"
    )
