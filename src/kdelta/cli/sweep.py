# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta sweep: many versions in a row, the steps between them, and the functions behind each step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click

from kdelta.cli import _earlier, _fleet, _follow, _given, _output, _program, _session, _versions, common
from kdelta.cli._say import say

if TYPE_CHECKING:
    from kdelta.model import Experiment, Mode

# What may be said beside --add: which versions, and how the report is shown.
_BESIDE_ADD = frozenset(
    (
        "add",
        "refs",
        "tree",
        "fresh",
        "timed",
        "cases",
        "seed",
        "as_json",
        "fmt",
        "output",
        "all_metrics",
        "view",
        "quiet",
        "fleet",
        "detach",
    )
)
EPILOG = """\b
Examples:
  kdelta sweep 'debian:6.1..7.3'
  kdelta sweep 'debian:6.1..7.3' --case pidfd_open --format html -o sweep.html
  kdelta sweep debian:6.12 debian:6.18 ./bzImage --timed --blocks 12
  kdelta sweep --refs v6.8..v6.12 --tree ./linux --case pipe
  kdelta sweep --add last debian:7.4             only the new version is measured
  kdelta sweep --add last                        retries what the last sweep could not get
  kdelta sweep --follow 'debian:6.12..'          each night: only new versions, each step announced once

Exact by default: instructions that the kernel executes; every change between adjacent versions beyond the noise
floor is a step, with the functions that changed. Identical boots that were measured before are reused from the store, and
the report says from which experiment; --fresh measures all of them again. --timed boots every version in every block and finds steps in times.
A version that does not build, or cannot be fetched, is a gap with its reason, and a later run tries it again. The exit
code is 2 where this machine could not get one; one that does not build is an answer.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, _output.OutputArgs, _program.ProgramArgs, _fleet.FleetArgs):
    """The options of ``kdelta sweep``."""

    timed: bool
    mitigations: Literal["default", "off", "both"]
    blocks: int
    seeds: int
    repetitions: int
    time_budget: str | None
    refs: str | None
    tree: str
    add: str | None
    fresh: bool


@click.command(cls=_program.Command, epilog=EPILOG)
@click.argument("kernels", nargs=-1, metavar="[KERNEL...]")
@common.case_options
@click.option("--timed", is_flag=True, help="Measure wall time in the guests.")
@click.option("--mitigations", type=click.Choice(["default", "off", "both"]), default="default", show_default=True,
              help="CPU mitigations as booted by default, off, or both as separate sweeps.")  # fmt: skip
@click.option("--blocks", type=click.IntRange(2, 1000), default=8, show_default=True, help="Timed: boots per version; steps need 8.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(5, 99), default=12, show_default=True, help="Exact: maximum number of seeds (perturbed guests) per version.")  # fmt: skip
@click.option("--repetitions", type=click.IntRange(1, 255), default=3, show_default=True, help="Exact: maximum number of repetitions per seed; one that agrees with the round before it is enough.")  # fmt: skip
@click.option(
    "--time-budget",
    metavar="TIME",
    help="Time limit, as in 2h; no block starts that would exceed it, and of counts no seed after the first five.",
)
@click.option("--refs", metavar="FIRST..LAST", help="The release tags of a git tree between these two, both included.")
@click.option("--tree", default=".", show_default=True, metavar="TREE", help="The git tree of --refs.")
@click.option("--add", metavar="EXPERIMENT", help="The kernels, cases and plan of this exact sweep, with KERNEL... added.")  # fmt: skip
@click.option("--fresh", is_flag=True, help="Exact: measure every boot again, also those in the store.")
@_program.options
@_fleet.options
@common.machine_options
@_output.output_options
def command(kernels: tuple[str, ...], **options: Any) -> int:
    """Measure many kernels in a row: where are the steps, and which functions made them?"""
    return run(kernels, Args(**options))


def run(kernels: tuple[str, ...], args: Args) -> int:
    """The command on typed arguments."""
    args.format  # noqa: B018 - an unknown format is refused here
    _refuse_idle(args)
    _program.refuse_bare(kernels)
    budget_s = common.seconds(args.time_budget, "--time-budget")
    args.refuse(budget=budget_s is not None, others={"--follow": args.follow and not args.program})
    if args.follow and not args.program:
        return _followed(kernels, replace(args, follow=False), budget_s)
    with _session.opened(args.quiet, stored=bool(args.add)) as session:
        template = (
            _earlier.sweep(session.store, args.add, timed=args.timed, named=bool(args.cases))
            if args.add
            else _template(args)
        )
        names = [*kernels, *_versions.tags(args.refs, args.tree)]
        with session.progress() as progress:
            line = _versions.line_up(template, names, progress, _builder(args))
            reuse = template.mode == "exact" and not args.fresh
            whole = _versions.placed(template, line, common.command_line(), reuse=reuse)
            experiment = session.begin(whole, template.seed if args.add and args.seed is None else args.seed)
            if not _fleet.run(session, experiment, args, progress, budget_s):
                return _fleet.detached(experiment)
        session.conclude(experiment, args)
    _versions.refuse_missing(experiment)
    return 0


def _followed(kernels: tuple[str, ...], args: Args, budget_s: float | None) -> int:
    """A night of a sweep that is followed: what is new is measured, and the steps that nobody was told of are told."""
    from kdelta.report import steps as layout

    _follow.refuse(timed=args.timed, add=args.add, fresh=args.fresh)
    template = _template(args)
    names = [*kernels, *([args.refs, args.tree] if args.refs else ())]
    with _session.opened(args.quiet) as session:
        with session.progress() as progress:
            texts = [*kernels, *_versions.tags(args.refs, args.tree)]
            tag = _follow.tag_of(names, template.cases)
            experiment = _follow.experiment(session, template, texts, tag, progress, args.seed, _builder(args))
            _fleet.run(session, experiment, args, progress, budget_s)
        if args.format != "terminal" or args.output is not None:
            session.conclude(experiment, args)
        new, explained = _follow.announce(session.store, experiment, lambda: _session.now().isoformat("T", "seconds"))
        said = layout.announced(new, explained, len(session.store.steps()))
        say(said, nl=False, err=args.format != "terminal")
    _versions.refuse_missing(experiment)
    return 0


def _builder(args: Args) -> _versions.Build:
    """Who builds the versions: this machine, or the fleet."""
    return lambda specs, progress: _fleet.built(args, specs, progress, first=False)


def _refuse_idle(args: Args) -> None:
    """Refuse options that would do nothing here."""
    mode: Mode = "timed" if args.timed else "exact"
    hint = "add --timed, or leave it out" if mode == "exact" else "leave out one of the two"
    _given.refuse_other_mode(mode, hint)
    if not args.add:
        _given.refuse_idle_machine(mode, args.smp)
    if not args.refs:
        _given.refuse(["tree"], "is the tree of --refs: give that too, as in --refs v6.8..v6.12")
    if args.add:
        plan = [name for name in _given.given() if name not in _BESIDE_ADD]
        _given.refuse(plan, "does nothing beside --add, which keeps the cases and plan of the earlier sweep")


def _template(args: Args) -> Experiment:
    """Everything of the experiment but its kernels."""
    from kdelta.experiment import templates

    cases = args.cases_or(args.chosen, args.named, surrounded=args.surrounded)
    effort = args.effort(seeds=args.seeds, repetitions=args.repetitions)
    asked = args.asked(cases, effort, mitigations=args.mitigations)
    if args.fleet:
        _fleet.refuse(asked)
    return templates.sweep(asked, "timed" if args.timed else "exact", args.blocks if args.timed else args.seeds)


for _parameter in command.params:  # the same word with and without a program
    if isinstance(_parameter, click.Option) and _parameter.name == "follow":
        _parameter.help = (
            "Exact: go on with the last sweep of these kernels; only new versions are measured, and each step is announced "
            f"once. {_parameter.help}"
        )
