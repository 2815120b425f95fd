# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta check: does a published claim reproduce here?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _answers, _claims, _given, _mode, _output, _session, _setting, _terminal, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.model import Case, Experiment, Kernel
    from kdelta.results.claims import Measured
    from kdelta.spec.recipes import Recipe, Setting

EPILOG = """\b
Examples:
  kdelta check --list
  kdelta check pidfs
  kdelta check path-walk --baseline debian:6.17 --patched debian:7.1
  kdelta check pipe-prealloc --patch bulk.mbox --tree src:./linux@v6.12
  kdelta check ./my-claim.toml --timed --json

Each claim is answered: reproduced, not reproduced, opposite, or not measurable here (and why). Reproduced means the same
sign and a similar size; the recipe sets the allowed factor. docs/reference/recipes.md describes the file.
"""


@dataclass(frozen=True, kw_only=True)
class Args(_setting.SettingArgs):
    """The options of ``kdelta check``."""

    blocks: int
    seeds: int
    repetitions: int
    limit: str
    fresh: bool
    as_json: bool
    output: Path | None
    quiet: bool


@click.command(epilog=EPILOG)
@click.argument("recipe", required=False)
@click.option("--list", "listing", is_flag=True, help="List the shipped recipes.")
@click.option("--patch", "patches", multiple=True, metavar="FILE", help="A patch, mail or mbox that the recipe needs; repeatable.")  # fmt: skip
@click.option("--tree", metavar="KERNEL", help="The source that --patch applies to, as in src:./linux@v6.12.")
@click.option("--baseline", metavar="KERNEL", help="Use this baseline instead of the recipe's.")
@click.option("--patched", metavar="KERNEL", help="Use this patched kernel instead of the recipe's.")
@click.option("--timed", is_flag=True, help="Measure wall time in the guests.")
@click.option("--exact", is_flag=True, help="Count executed instructions (default without KVM).")
@click.option("--blocks", type=click.IntRange(8, 1000), default=12, show_default=True, help="Timed: boots per kernel.")
@click.option("--seeds", type=click.IntRange(5, 99), default=20, show_default=True, help="Exact: maximum number of seeds (perturbed guests) per kernel.")  # fmt: skip
@click.option("--repetitions", type=click.IntRange(1, 255), default=3, show_default=True, help="Exact: maximum number of repetitions per seed; one that agrees with the round before it is enough.")  # fmt: skip
@click.option("--limit", metavar="TIME", default="5m", show_default=True, help="Time limit of one run of a case.")
@click.option("--fresh", is_flag=True, help="Exact: measure again, even what the store already has.")
@common.machine_options
@click.option("--json", "as_json", is_flag=True, help="Print the answers as JSON (schema kdelta-check/1).")
@_output.output_option("Write the answers to a file.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
def command(recipe: str | None, listing: bool, **options: Any) -> int:
    """Check the claims of a publication: RECIPE is a shipped name or a TOML file."""
    if listing == (recipe is not None):
        raise UserError("check takes one recipe, as in kdelta check pidfs; kdelta check --list has them")
    if listing:
        rest = [name for name in _given.given() if name not in ("listing", "as_json", "output", "quiet")]
        _given.refuse(rest, "does nothing beside --list")
    from kdelta.spec import recipes

    args = Args(**options)
    if listing:
        shipped = [recipes.load(name) for name in recipes.shipped()]
        _output.write(
            _answers.listing(shipped, args.as_json, _terminal.seen() if args.output is None else None), args.output
        )
        return 0
    return run(recipes.load(recipe or ""), args)


def run(recipe: Recipe, args: Args) -> int:
    """The command on typed arguments."""
    _mode.refuse_both(timed=args.timed, exact=args.exact)
    if mode := _mode.wanted(timed=args.timed, exact=args.exact, kvm=args.kvm):
        _given.refuse_other_mode(mode, "leave it out")
        _given.refuse_idle_machine(mode, args.smp)
    common.seconds(args.limit, "--limit")  # refused before any kernel is fetched
    _refuse_unknown_cases(recipe)
    specs = _setting.sides(recipe, args)
    obstacles = _setting.hopeless(recipe, args, specs)
    experiment, measured = None, list["Measured"]()
    if any(not why for why in obstacles):
        with _session.opened(args.quiet) as session:
            obstacles, experiment, measured = _measure(recipe, args, specs, session)
    answers = _claims.answers(recipe, obstacles, measured)
    own = bool(args.baseline or args.patched or args.tree)
    if args.as_json:
        _output.write(_answers.json(recipe, answers, experiment), args.output)
    else:
        _output.write(_answers.text(recipe, answers, experiment, own), args.output)
    return 0


def _refuse_unknown_cases(recipe: Recipe) -> None:
    """Also of claims that cannot be measured here, which would be answered without a word of it."""
    from kdelta.spec import recipes

    for claim in recipe.claims:
        recipes.cases_of(claim)


def _measure(
    recipe: Recipe, args: Args, specs: _setting.Sides, session: Session
) -> tuple[list[str], Experiment | None, list[Measured]]:
    """For each claim what keeps it from being measured; the experiment, and a figure for each of the others."""
    from kdelta.spec import recipes

    with session.progress() as progress:
        kernels = _setting.fetched(specs, progress)
        setting = _setting.of_machine(args, specs, kernels)
        _given.refuse_other_mode(setting.mode, "leave it out")
        obstacles = [recipes.obstacle(claim, recipe, setting) for claim in recipe.claims]
        wanted = [claim for claim, why in zip(recipe.claims, obstacles, strict=True) if not why]

        def begin(cases: tuple[Case, ...]) -> Experiment:
            return session.begin(_template(recipe, args, setting, kernels, cases), args.seed)

        return obstacles, *_claims.measure(wanted, kernels, args.options(), begin, session, progress)


def _template(
    recipe: Recipe, args: Args, setting: Setting, kernels: tuple[Kernel, ...], cases: tuple[Case, ...]
) -> Experiment:
    import msgspec

    from kdelta.experiment import templates
    from kdelta.model import Effort

    exact = setting.mode == "exact"
    limit_s = common.seconds(args.limit, "--limit") or 0.0
    smp = max([args.smp, *(claim.cores for claim in recipe.claims if claim.cores <= setting.cores and not exact)])
    asked = templates.Asked(
        cases=cases,
        machine=msgspec.structs.replace(args.options(), smp=smp),
        effort=Effort(seeds=args.seeds, repetitions=args.repetitions, limit_ms=int(1000 * limit_s), limit_given=True),
        command=common.command_line(),
    )
    blocks = args.seeds if exact else args.blocks
    return templates.check(asked, kernels, setting.mode, blocks, recipe.name, reuse=exact and not args.fresh)
