# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta why: the functions behind one row of a result, and exports for flame graphs and profilers."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdelta.cli import _given, _output, _stores, _terminal, common
from kdelta.errors import UserError
from kdelta.model import plans

if TYPE_CHECKING:
    from kdelta.model import CellResult, Experiment, ExperimentResult, Profile
    from kdelta.results.types import Detail
    from kdelta.store.rows import ProfileRow
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta why last path_lookup
  kdelta why path_lookup                 the same, of the last experiment
  kdelta why                             why each case of the last experiment differs
  kdelta why last --stacks               and where the calls of each part: boots what differs once more
  kdelta why last path_lookup --stacks   and for whom: who is called otherwise, who costs otherwise
  kdelta why last pidfd_open --all
  kdelta why last path_lookup --export speedscope -o path_lookup.json
  kdelta why last path_lookup --stacks --export collapsed --side baseline | flamegraph.pl

The figures are kernel instructions per operation, of the median seed; of guests with several CPUs also the cache
lines that move between them, hottest first.
"""
EXPORTS = ("collapsed", "speedscope", "pprof", "perf-script", "json")
_LOOKED_AT = 20  # experiments, newest first
_ONE_KERNEL = ("collapsed", "pprof", "perf-script")


@click.command(epilog=EPILOG)
@click.argument("experiment", default="last", metavar="[EXPERIMENT]")
@click.argument("case", required=False)
@click.option("--patched", metavar="LABEL", help="Which kernel to compare with the baseline.  [default: the last one]")
@click.option(
    "--mitigations", type=click.Choice(["default", "off"]), default=None, help="Which cell, where there are both."
)
@click.option("--all", "everything", is_flag=True, help="Every function, with its whole cost vector.")
@click.option(
    "--stacks",
    is_flag=True,
    help="Follow calls, and say where they part: boots each kernel once more, where its call stacks are not stored "
    "yet.",
)
@click.option("--export", "export_format", type=click.Choice(EXPORTS), help="Write a profile for another tool.")
@click.option(
    "--side",
    type=click.Choice(["baseline", "patched"]),
    default="patched",
    show_default=True,
    help="Which kernel's profile is exported.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@_output.output_option("Write to a file.")
def command(
    experiment: str,
    case: str | None,
    patched: str | None,
    mitigations: str | None,
    everything: bool,
    stacks: bool,
    export_format: str | None,
    side: str,
    as_json: bool,
    output: Path | None,
) -> int:
    """Say which functions account for the difference in CASE of EXPERIMENT; without one, a line for each case."""
    if export_format not in _ONE_KERNEL:
        _given.refuse(["side"], "picks the kernel of --export collapsed, pprof or perf-script; the others hold both")
    if export_format or as_json:
        _given.refuse(["everything"], "is for the table; an export has every function anyway")
    if as_json and export_format not in (None, "json"):
        raise UserError(f"--json and --export {export_format} exclude each other: give one of them")
    from kdelta.report import functions, rows, view
    from kdelta.results import answer, explain, system_calls

    with _stores.reading() as store:
        experiment, case = _meant(store, experiment, case)
        found = store.experiment(experiment)
        if found.mode != "exact":
            if not (counted := plans.counted_by(found.plan)):
                raise UserError(
                    f"experiment {found.id} measured time, and functions come from counts: measure it with --exact"
                )
            found = store.experiment(counted)  # the pass that explains it
        case = _named(found, case) if case else None
        result, detail = answer.result(store, found.id, only=case)
        if case is None:
            rest = [name for name in _given.given() if name not in ("output", "stacks")]
            _given.refuse(rest, "goes with a case, as in kdelta why last path_lookup")
            if stacks:
                result, detail = _all_followed(store, found, result)
            _output.write(functions.causes(view.build(result, detail), _terminal.of(output)), output)
            return 0
        row = _row(found, result.results, case, patched, mitigations)
        stored = explain.rows_of(found, store, row)
        before, after = _followed(store, found, row, stored) if stacks else (one.profile for one in stored)
    if export_format or as_json:
        both = {f"{row.case} {row.baseline_label}": before}
        if row.patched_label:  # a run of one kernel has none
            both[f"{row.case} {row.patched_label}"] = after
        text = _export(export_format or "json", both, side)
    else:
        seen = None if output else _terminal.seen()
        detail = system_calls.of_row(row, before, after, detail) if row.patched_label else detail
        text = functions.render(row, before, after, detail, everything, seen)
        followable = found.kernels[0].arch == "x86_64" and found.machine.smp == 1
        if row.verdict not in ("same", "inconclusive") and row.patched_label and followable and not before.stacks:
            told = "For whom each function costs more or less, and who is called otherwise:"
            offered = f"kdelta why {found.id} {shlex.quote(row.case)} --stacks"
            text += "\n".join(["", *rows.said(told, seen), *rows.said(offered, seen), ""])
    _output.write(text, output)
    return 0


def _meant(store: Store, experiment: str, case: str | None) -> tuple[str, str | None]:
    """Experiment and case; of one word that is no experiment but a case of the last one, both.

    Raises:
        UserError: it is a case of an earlier one.
    """
    newest = store.experiments(limit=1)
    if case is not None or not newest or any(row.id.startswith(experiment) for row in store.experiments()):
        return experiment, case
    if _has(store, newest[0].id, experiment):
        return newest[0].id, experiment
    for row in store.experiments(limit=_LOOKED_AT):
        if _has(store, row.id, experiment):
            raise UserError(
                f"{experiment} is a case, and the last experiment has none: kdelta why {row.id} {experiment}"
            )
    if experiment in common.load_workloads(()):
        raise UserError(
            f"{experiment} is a case, and none of the last {_LOOKED_AT} experiments has it: "
            f"kdelta compare debian:6.12 debian:7.0 --case {experiment}"
        )
    return experiment, case


def _has(store: Store, experiment: str, word: str) -> bool:
    names = (one.name for one in store.experiment(experiment).cases)
    return any(word in (name, name.rpartition("/")[2], name.partition(" ")[0]) for name in names)


def _followed(
    store: Store, experiment: Experiment, row: CellResult, stored: tuple[ProfileRow, ProfileRow]
) -> tuple[Profile, Profile]:
    """The profiles with their call stacks; what has none yet is booted once more."""
    from kdelta.cli.progress import Reporter
    from kdelta.experiment import followed

    case = next(index for index, one in enumerate(experiment.cases) if one.name == row.case)
    with Reporter(quiet=False) as progress:
        found = followed.follow(store, experiment, [(case, one) for one in stored], progress)
    before, after = (found[case, one.block, one.slot] for one in stored)
    return before, after


def _all_followed(store: Store, experiment: Experiment, result: ExperimentResult) -> tuple[ExperimentResult, Detail]:
    """The result with the call stacks of every case that differs."""
    from kdelta.cli import _calls
    from kdelta.cli.progress import Reporter

    if isinstance(experiment.plan, plans.Sweep):
        raise UserError(
            f"{experiment.id} is a sweep: --stacks takes a case, and with --patched one of its kernels, which is "
            "compared with the first"
        )
    with Reporter(quiet=False) as progress:
        return _calls.followed_in(store, experiment, result, progress)


def _named(experiment: Experiment, word: str) -> str:
    """The name of the case of which ``word`` is the name, its end as in ``nanosleep`` for ``syscalls/nanosleep``, or
    its first word as in ``git`` for ``git status``.
    """
    from kdelta.spec.cases import close_to

    names = {case.name for case in experiment.cases}
    if word in names:
        return word
    for found in ([n for n in names if n.endswith(f"/{word}")], [n for n in names if n.startswith(f"{word} ")]):
        if len(found) == 1:
            return found[0]
    known = {name.removeprefix(f"{name.partition('/')[0]}/"): name for name in names} if "/" not in word else names
    raise UserError(f"experiment {experiment.id} has no case {word!r}: {close_to(word, known)}")


def _row(
    experiment: Experiment, rows: tuple[CellResult, ...], case: str, patched: str | None, mitigations: str | None
) -> CellResult:
    if not (of_case := [r for r in rows if r.case == case and r.metric == "instructions"]):
        raise UserError(f"experiment {experiment.id} has no instructions of {case}")
    if not (of_mode := [r for r in of_case if mitigations in (None, r.mitigations)]):
        raise UserError(f"experiment {experiment.id} did not run {case} with mitigations {mitigations}")
    there = [r.patched_label for r in of_mode if r.state == "ok"] or [of_mode[-1].patched_label]
    label = patched or there[-1]  # the last one that was measured
    mine = [r for r in of_mode if r.patched_label == label]
    if not mine:
        labels = ", ".join(dict.fromkeys(r.patched_label for r in of_mode if r.patched_label))
        raise UserError(f"experiment {experiment.id} has no kernel {label!r} beside its baseline; it has {labels}")
    if mine[0].state != "ok":
        raise UserError(f"{case} was not measured: {mine[0].state}: {mine[0].why}")
    return mine[0]


def _export(name: str, both: dict[str, Profile], side: str) -> str | bytes:
    """JSON and speedscope hold both kernels; a flame graph or a pprof file holds one."""
    from kdelta.attribution import export

    if name == "json":
        return export.vectors_json(both)
    if name == "speedscope":
        return export.speedscope(both)
    title, profile = list(both.items())[0 if side == "baseline" else -1]
    if name == "pprof":
        return export.pprof({title: profile})
    return export.collapsed({title: profile}) if name == "collapsed" else export.perf_script({title: profile})
