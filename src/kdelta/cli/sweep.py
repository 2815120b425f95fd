# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta sweep: many versions in a row, the steps between them, and the functions behind each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from kdelta.cli import _program, common
from kdelta.errors import HostError, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdelta.model import Experiment
    from kdelta.model.progress import Progress
    from kdelta.results.versions import Version
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta sweep 'debian:6.1..7.3'
  kdelta sweep 'debian:6.1..7.3' --case pidfd_open --format html -o sweep.html
  kdelta sweep debian:6.12 debian:6.18 ./bzImage --timed --blocks 12
  kdelta sweep --refs v6.8..v6.12 --tree ./linux --case pipe
  kdelta sweep --add last debian:7.4             only the new version is measured
  kdelta sweep --add last                        retries what the last sweep could not get

Exact by default: instructions that the kernel executes; every change between adjacent versions beyond the noise
floor is a step, with the functions that changed. Identical boots that were measured before are reused from the store, and
the report says from which experiment; --fresh measures all of them again. --timed boots every version in every block and finds steps in times.
A version that does not build, or cannot be fetched, is a gap with its reason, and a later run tries it again. The exit
code is 2 where this machine could not get one; one that does not build is an answer.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.MeasureArgs, common.OutputArgs, _program.ProgramArgs):
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
    "--time-budget", metavar="TIME", help="Timed: time limit; no block starts that would exceed it, as in 2h."
)
@click.option("--refs", metavar="FIRST..LAST", help="The release tags of a git tree between these two, both included.")
@click.option("--tree", default=".", show_default=True, metavar="TREE", help="The git tree of --refs.")
@click.option("--add", metavar="EXPERIMENT", help="The kernels, cases and plan of this exact sweep, with KERNEL... added.")  # fmt: skip
@click.option("--fresh", is_flag=True, help="Exact: measure every boot again, also those in the store.")
@_program.options
@common.machine_options
@common.output_options
def command(kernels: tuple[str, ...], **options: Any) -> int:
    """Measure many kernels in a row: where are the steps, and which functions made them?"""
    return run(kernels, Args(**options))


def run(kernels: tuple[str, ...], args: Args) -> int:
    """The command on typed arguments."""
    from kdelta.cli.progress import Reporter
    from kdelta.store.store import Store

    args.format  # noqa: B018 - an unknown format is refused here
    _program.refuse_bare(kernels)
    budget_s = common.seconds(args.time_budget, "--time-budget")
    with Store() as store:
        template = _older(store, args) if args.add else _template(args)
        specs = [*kernels, *_refs(args)]
        with Reporter(args.quiet) as reporter:
            experiment = _create(store, template, _line_up(template, specs, reporter), args)
            common.run_experiment(store, experiment, reporter, budget_s)
        result = common.show(store, experiment.id, args)
    common.raise_if_lost(result)
    _raise_if_missing(experiment)
    return 0


def _raise_if_missing(experiment: Experiment) -> None:
    """Exit code 2 where this machine could not get a kernel; one that does not build is an answer like any other."""
    missing = [gap for gap in experiment.annotations.gaps if gap.by_host]
    if missing:
        names = ", ".join(one.label for one in missing)
        raise HostError(f"left out: {names}: {missing[0].why}; the same command tries again, the others are measured")


def _refs(args: Args) -> list[str]:
    if args.refs is None:
        return []
    from kdelta.kernel import history

    first, dots, last = args.refs.partition("..")
    if not (first and dots and last):
        raise UserError(f"--refs {args.refs!r} is not a range of tags such as v6.8..v6.12")
    return [f"{tag}=src:{args.tree}@{tag}" for tag in history.tags(args.tree, first, last)]


def _template(args: Args) -> Experiment:
    """Everything of the experiment but its kernels."""
    from kdelta.experiment import templates

    cases = args.cases_or(args.chosen, args.named)
    effort = args.effort(seeds=args.seeds, repetitions=args.repetitions)
    asked = args.asked(cases, effort, mitigations=args.mitigations)
    return templates.sweep(asked, "timed" if args.timed else "exact", args.blocks if args.timed else args.seeds)


def _older(store: Store, args: Args) -> Experiment:
    """The plan of an earlier sweep; its boots are found again by what they are.

    Raises:
        UserError: no sweep, or a timed one: its blocks hold every version, so none can come later.
    """
    from kdelta.experiment import imported
    from kdelta.model import plans

    found = store.experiment(args.add or "")
    imported.refuse(found)  # before its kernels are read, and what failed to build is built again
    if not isinstance(found.plan, plans.Sweep):
        raise UserError(f"--add {args.add}: experiment {found.id} is a {found.kind}, not a sweep")
    if found.mode != "exact" or args.timed:
        raise UserError(
            f"--add {args.add}: the blocks of a timed sweep hold every version, so none can be added later: "
            "start a new sweep with all of them"
        )
    if args.cases:
        raise UserError("--add keeps the cases of the earlier sweep: leave out --case")
    return found


def _line_up(template: Experiment, texts: Sequence[str], progress: Progress) -> tuple[Version, ...]:
    """The versions in order: as given; added ones by their release where the earlier ones are in that order.

    Versions that an earlier sweep could not have are tried again.
    """
    from kdelta.kernel.partial import labelled, resolve_each
    from kdelta.kernel.sources import parse_kernel
    from kdelta.model import Gap
    from kdelta.results.versions import oldest_first, versions_of

    specs = [parse_kernel(text) for text in texts]
    if any(spec.kind == "running" for spec in specs):
        raise UserError("the running kernel cannot be booted in a guest without its image: use kdelta run")
    known, earlier = template.kernels, versions_of(template)
    if earlier and not specs and len(earlier) == len(known):
        raise UserError("--add needs a kernel to add, as in: kdelta sweep --add last debian:7.4")
    if not earlier and len(specs) < 2 and not any(spec.is_range for spec in specs):
        raise UserError("a sweep needs a range such as 'debian:6.1..7.3', or two kernels or more")
    new = resolve_each(specs, progress)
    images = {(kernel.image_sha256, kernel.cmdline) for kernel in known}
    line: list[Version] = []
    for one in earlier:
        line += resolve_each([parse_kernel(one.spec)], progress) if isinstance(one, Gap) else (one,)
    line += (one for one in new if isinstance(one, Gap) or (one.image_sha256, one.cmdline) not in images)
    _refuse_too_few(line, texts)
    together = oldest_first(line) if known and oldest_first(known) == known else tuple(line)
    return labelled(together, frozenset(index for index, one in enumerate(together) if one in known))


def _refuse_too_few(line: Sequence[Version], texts: Sequence[str]) -> None:
    from kdelta.model import Gap

    missing = [one for one in line if isinstance(one, Gap)]
    left = len(line) - len(missing)
    if left >= 2:
        return
    if missing:
        raise HostError(
            f"a sweep needs two kernels or more, {left} could be fetched or built; {missing[0].label}: {missing[0].why}"
        )
    raise UserError(f"a sweep needs two kernels or more; {' '.join(texts)} is {left}")


def _create(store: Store, template: Experiment, line: Sequence[Version], args: Args) -> Experiment:
    from kdelta.experiment import templates
    from kdelta.kernel.banner import compiler
    from kdelta.model import Kernel
    from kdelta.results.versions import gaps_in

    kernels = [one for one in line if isinstance(one, Kernel)]
    whole = templates.with_versions(
        template,
        kernels,
        gaps_in(line),
        [compiler(kernel) for kernel in kernels],
        command=common.command_line(),
        reuse=template.mode == "exact" and not args.fresh,
    )
    seed = template.seed if args.add and args.seed is None else args.seed
    experiment = templates.created(whole, seed, common.now)
    store.create(experiment)
    return experiment
