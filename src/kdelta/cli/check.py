# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta check: does a published claim reproduce here?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _answers, _output, common
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.cli.progress import Reporter
    from kdelta.model import Case, Experiment, Kernel, Mode
    from kdelta.results.claims import Measured
    from kdelta.spec.kernels import KernelSpec
    from kdelta.spec.recipes import Claim, Recipe, Setting
    from kdelta.store.store import Store

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
class Args(common.MachineArgs):
    """The options of ``kdelta check``."""

    patches: tuple[str, ...]
    tree: str | None
    baseline: str | None
    patched: str | None
    timed: bool
    exact: bool
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
        raise UserError("name one recipe, or use --list")
    args = Args(**options)
    if listing:
        common.write(_listing(args.as_json), args.output)
        return 0
    return run(load(recipe or ""), args)


def load(name: str) -> Recipe:
    """A recipe by its shipped name or by its file.

    Raises:
        UserError: there is none, or it is damaged.
    """
    from kdelta import paths
    from kdelta.spec import recipes

    path = Path(name).expanduser()
    if path.suffix != ".toml" and "/" not in name:
        folder = paths.shipped("recipes")
        names = sorted(found.stem for found in folder.glob("*.toml"))
        if name not in names:
            raise UserError(f"recipe {name!r}: not one of {', '.join(names)}, nor a file ending in .toml")
        path = folder / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"recipe {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return recipes.parse(text, str(path))


def _listing(as_json: bool) -> str:
    import msgspec

    from kdelta import paths

    recipes = [load(path.stem) for path in sorted(paths.shipped("recipes").glob("*.toml"))]
    if as_json:
        rows = [{"name": r.name, "title": r.title, "claims": len(r.claims), "patch": r.kernels.patch} for r in recipes]
        return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n"
    lines = []
    for recipe in recipes:
        count = f"{len(recipe.claims)} claim{'s' * (len(recipe.claims) > 1)}"
        lines.append(f"{recipe.name:15}{recipe.title} ({count}{', needs a patch' if recipe.kernels.patch else ''})")
    return "\n".join(lines) + "\n"


def run(recipe: Recipe, args: Args) -> int:
    """The command on typed arguments."""
    from kdelta.cli.progress import Reporter
    from kdelta.kernel.resolve import check
    from kdelta.results import claims
    from kdelta.spec import recipes
    from kdelta.store.store import Store

    if args.timed and args.exact:
        raise UserError("--timed and --exact cannot be combined")
    common.seconds(args.limit, "--limit")  # refused before any kernel is fetched
    specs = _specs(recipe, args)
    check(list(specs.values()))
    obstacles = _hopeless(recipe, args, specs)
    experiment, measured = None, dict[int, "Measured"]()
    if any(not why for why in obstacles):
        with Store() as store, Reporter(args.quiet) as reporter:
            kernels = _resolved(specs, reporter)
            setting = _setting(args, specs, kernels)
            obstacles = [recipes.obstacle(claim, recipe, setting) for claim in recipe.claims]
            open_ = [index for index, why in enumerate(obstacles) if not why]
            if open_:
                experiment, measured = _measure(recipe, args, setting, kernels, open_, store, reporter)
    answers = tuple(
        claims.Answer(claim=claim, call="not measurable here", why=why)
        if why
        else claims.judge(claim, recipe, measured[index])
        for index, (claim, why) in enumerate(zip(recipe.claims, obstacles, strict=True))
    )
    own = bool(args.baseline or args.patched or args.tree)
    if args.as_json:
        common.write(_answers.json(recipe, answers, experiment), args.output)
    else:
        common.write(_answers.text(recipe, answers, experiment, own), args.output)
    return 0


def _specs(recipe: Recipe, args: Args) -> dict[str, KernelSpec]:
    """The kernels at hand by side: ``baseline``, ``patched``; a side that only a patch could make is missing."""
    from kdelta.kernel.sources import parse_kernel

    kernels = recipe.kernels
    if not kernels.patch and (args.patches or args.tree):
        raise UserError(f"recipe {recipe.name} takes no patch: name its kernels with --baseline and --patched")
    tree = args.tree or kernels.tree
    if tree and not tree.startswith("src:"):
        raise UserError(f"--tree {tree!r}: a source is written src:TREE or src:debian:VERSION")
    found: dict[str, str] = {}
    baseline = args.baseline or kernels.baseline or (tree if args.patches or args.patched else "")
    patched = args.patched or kernels.patched or (f"{tree}+{'+'.join(args.patches)}" if args.patches else "")
    if baseline:
        found["baseline"] = baseline
    if patched:
        found["patched"] = patched
    return {side: parse_kernel(text) for side, text in found.items()}


def _modes(args: Args) -> tuple[Mode, ...]:
    """The modes that may come out of ``_setting``."""
    if args.timed or args.exact:
        return ("timed",) if args.timed else ("exact",)
    return ("exact",) if args.kvm == "off" or not os.access("/dev/kvm", os.R_OK | os.W_OK) else ("timed", "exact")


def _hopeless(recipe: Recipe, args: Args, specs: Mapping[str, KernelSpec]) -> list[str]:
    """For each claim why no kernel need be fetched for it, "" where one must."""
    from kdelta.spec import recipes

    found = []
    for claim in recipe.claims:
        whys = []
        for mode in _modes(args):
            arch = next((spec.arch for spec in specs.values()), "x86_64")
            possible = recipes.Setting(
                mode=mode,
                cores=os.cpu_count() or 1,
                accel="kvm" if "timed" in _modes(args) and args.kvm != "off" else "tcg",
                arch=arch,  # type: ignore[arg-type]
                baseline="baseline" in specs,
                patched="patched" in specs,
                built=_built(specs),
            )
            whys.append(recipes.obstacle(claim, recipe, possible))
        found.append("" if not all(whys) else whys[0])
    return found


def _built(specs: Mapping[str, KernelSpec]) -> bool:
    return len(specs) == 2 and all(spec.kind in ("src", "src-debian") for spec in specs.values())


def _resolved(specs: Mapping[str, KernelSpec], reporter: Reporter) -> tuple[Kernel, ...]:
    from kdelta.kernel.resolve import resolve_all

    kernels = resolve_all(list(specs.values()), reporter)
    if len(kernels) != len(specs) or any(not kernel.image_path for kernel in kernels):
        raise UserError("a recipe compares two kernels with images: no range, and not the running one")
    return kernels


def _setting(args: Args, specs: Mapping[str, KernelSpec], kernels: tuple[Kernel, ...]) -> Setting:
    from kdelta.experiment.survey import programs_for, survey
    from kdelta.spec import recipes

    modes, accel = _modes(args), "tcg"
    if "timed" in modes:
        accel = survey(kernels, args.kvm, args.qemu, programs_for(kernels, ())).accel
    mode: Mode = modes[0] if len(modes) == 1 else ("timed" if accel == "kvm" else "exact")
    return recipes.Setting(
        mode=mode,
        cores=os.cpu_count() or 1,
        accel=accel,  # type: ignore[arg-type]
        arch=kernels[0].arch,
        baseline="baseline" in specs,
        patched="patched" in specs,
        built=_built(specs),
    )


def _case(text: str, claim: Claim) -> Case:
    import msgspec

    from kdelta.spec.cases import parse_case
    from kdelta.spec.workloads import catalogue

    cases = parse_case(text, catalogue())
    if len(cases) != 1:
        raise UserError(f"claim {claim.text!r}: case {text!r} is a grid; a claim is about one case")
    return msgspec.structs.replace(cases[0], pressure=claim.pressure)


def _measure(
    recipe: Recipe,
    args: Args,
    setting: Setting,
    kernels: tuple[Kernel, ...],
    wanted: Sequence[int],
    store: Store,
    reporter: Reporter,
) -> tuple[Experiment | None, dict[int, Measured]]:
    """Run the cases that the claims ``wanted`` need, and read their figures."""
    from kdelta.results import answer, claim_figures, claims

    found: dict[int, claims.Measured] = {}
    chosen = {index: recipe.claims[index] for index in wanted}
    for index, claim in chosen.items():
        if claim.selftests:
            found[index] = _selftests(claim, kernels, args, reporter)
    cases = {c: _case(c, claim) for claim in chosen.values() for c in (claim.from_case, claim.case) if c}
    unique = {case.name: case for claim in chosen.values() for case in _cases_of(claim)}
    if not cases:
        return None, found
    experiment = _create(recipe, args, setting, kernels, tuple(unique.values()), store)
    common.run_experiment(store, experiment, reporter)
    result = answer.result(store, experiment.id)[0]
    for index, claim in chosen.items():
        if claim.case:
            found[index] = claim_figures.measured(claim, _cases_of(claim), result, store)
    return experiment, found


def _cases_of(claim: Claim) -> list[Case]:
    return [_case(text, claim) for text in (claim.from_case, claim.case) if text]


def _create(
    recipe: Recipe, args: Args, setting: Setting, kernels: tuple[Kernel, ...], cases: tuple[Case, ...], store: Store
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
        effort=Effort(seeds=args.seeds, repetitions=args.repetitions, limit_ms=int(1000 * limit_s)),
        command=common.command_line(),
    )
    blocks = args.seeds if exact else args.blocks
    template = templates.check(asked, kernels, setting.mode, blocks, recipe.name, reuse=exact and not args.fresh)
    experiment = templates.created(template, args.seed, common.now)
    store.create(experiment)
    return experiment


def _selftests(claim: Claim, kernels: tuple[Kernel, ...], args: Args, reporter: Reporter) -> Measured:
    """Whether the suites are worse on the patched kernel: 1, else 0."""
    from kdelta.experiment import selftests
    from kdelta.results.claims import Measured

    gate = selftests.gate(kernels, selftests.suites(claim.selftests), args.options(), reporter)
    for note in gate.notes:
        reporter.note(note)
    return Measured(before=0.0, after=float(bool(gate.failed)), unit="gates failed", why=gate.failed)
