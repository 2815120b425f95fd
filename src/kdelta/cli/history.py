# SPDX-License-Identifier: GPL-2.0-or-later
"""``kdelta history``: what the store holds, and one case over all experiments; tags, notes, deletion."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _fleet, _given, _groups, _stores, _terminal
from kdelta.cli._say import say
from kdelta.errors import UserError
from kdelta.report.text import WIDTH, wrap

if TYPE_CHECKING:
    from kdelta.store.rows import ExperimentRow, HistoryRow
    from kdelta.store.store import Store

_EPILOG = """\b
Examples:
  kdelta history                            the newest experiments
  kdelta history --tag nightly              those with a tag
  kdelta history pidfd_open                 a case over all experiments
  kdelta history pidfd_open --metric instructions --json
  kdelta history tag last nightly           tag the newest experiment
  kdelta history note 20261121-153012-7c1f "after the BIOS update"
  kdelta history delete 20261121-1530       the beginning of an id does
"""
# kinds of plans, of which the heavy part of the program knows more
KINDS = ("compare", "run", "sweep", "bisect", "trace", "leaks", "calibrate", "scale", "check")


_TREND = (
    "Median over boots. Rows of different experiments shared no blocks:",
    "a trend, not a verdict; for a verdict, kdelta compare or kdelta sweep.",
)
_KERNEL, _OTHERS = 20, 37  # columns of a kernel's label at least, and of what stands beside it and its value


class _CaseOrCommand(_groups.DefaultGroup):
    """``history CASE`` is ``history show CASE``, and ``history list`` (or ``ls``) is ``history``."""

    bare = "show"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if len(args) > 1 and args[0] in ("rm", "remove", "del"):
            args = ["delete", *args[1:]]
        return super().parse_args(ctx, args[1:] if args[:1] in (["list"], ["ls"]) else args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[CASE] [--metric M] [--tag T] [--json] | COMMAND ...")


def plain(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` characters, without anything that a terminal obeys."""
    shown = "".join(c if c.isprintable() else "?" for c in text[: width + 1])
    return shown if len(shown) <= width else shown[: width - 1] + "…"


@click.group(cls=_CaseOrCommand, epilog=_EPILOG)
def command() -> None:
    """The experiments in the store, or one case over all of them."""


@command.command()
@click.argument("case", required=False)
@click.option("--metric", "-m", help="Only this metric, such as instructions.")
@click.option("--tag", "-t", help="Only experiments with this tag.")
@click.option("--kind", type=click.Choice(KINDS), help="Only experiments of this kind.")
@click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="Experiments to list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema kdelta-history/1).")
def show(case: str | None, metric: str | None, tag: str | None, kind: str | None, limit: int, as_json: bool) -> None:
    """List experiments, or figures of a CASE.

    Experiments come newest first, figures of a case oldest first.
    """

    if case is None and metric is not None:
        raise UserError("--metric needs a case: kdelta history CASE --metric M")
    if case is not None and kind is not None:
        raise UserError("--kind filters the list of experiments: leave the case out, or filter it by --tag")
    if case is not None:
        _given.refuse(["limit"], "is for the list of experiments, and a case has all its figures shown")
    with _stores.listing() if case is None else _stores.reading() as store:
        if case is None:
            everything = as_json and "limit" not in _given.given()
            listed = store.experiments(kind=kind, limit=None if everything else limit, tag=tag)
            if not listed and not as_json and (tag or kind) and store.experiments(limit=1):
                say(f"No experiment {_filters(tag, kind)}; kdelta history lists all.")
                return
            _print_json("experiments", listed) if as_json else _print_experiments(store, listed)
            return
        rows = [row for row in store.history(case, metric) if tag is None or tag in row.tags]
        if not rows:
            _refuse_experiment(store, case)
            if metric is not None and (metrics := sorted({row.metric for row in store.history(case)})):
                raise UserError(_no_metric(case, metric, tag, metrics))
            raise UserError(_nothing(case, metric, tag, store.case_names()))
    _print_json("history", rows) if as_json else _print_history(rows)


def _filters(tag: str | None, kind: str | None) -> str:
    return " ".join([f"of kind {kind}"] * bool(kind) + [f"with the tag {tag}"] * bool(tag))


@command.command("tag")
@click.argument("experiment")
@click.argument("name")
@click.option("--remove", is_flag=True, help="Remove the tag.")
def tag_(experiment: str, name: str, remove: bool) -> None:
    """Tag an EXPERIMENT.

    EXPERIMENT is its id, the beginning of it, or last; NAME is one word.
    """

    with _stores.reading() as store:
        found = store.tag(experiment, name, remove=remove)
    say(f"{found}: {'no longer ' if remove else ''}tagged {name}")


@command.command()
@click.argument("experiment")
@click.argument("text")
def note(experiment: str, text: str) -> None:
    """Set the note of an EXPERIMENT.

    An empty TEXT removes it.
    """

    with _stores.reading() as store:
        found = store.note(experiment, text)
    say(f"{found}: note {'set' if text else 'removed'}")


@command.command()
@click.argument("experiment")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def delete(experiment: str, yes: bool) -> None:
    """Delete an EXPERIMENT.

    All its boots, samples and consoles go; kdelta export makes a copy first.
    """

    from kdelta.experiment import alone

    with _stores.reading() as store:
        found = store.id_of(experiment)  # also of a damaged one
        alone.refuse_measured(store, found, "end it (Ctrl-C there) before you delete it")
        _fleet.refuse_asked(store, found, "take it back before you delete it")
        if not yes:
            _confirm(f"Delete {found} and its {len(store.done(found))} boots?")
        store.delete(found)
    say(f"{found}: deleted")


def _confirm(question: str) -> None:
    """Raises:
    UserError: the answer is no, or nobody is there to answer.
    """
    try:
        agreed = click.confirm(question)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        raise UserError("not confirmed, nothing is deleted: --yes deletes without asking") from None
    if not agreed:
        raise UserError("not confirmed, nothing is deleted")


def _refuse_experiment(store: Store, name: str) -> None:
    """Raises:
    UserError: ``name`` is an experiment's, and its report is what was meant.
    """
    try:
        found = store.id_of(name)
    except UserError:
        return
    raise UserError(f"{plain(name, 64)} is an experiment, not a case: kdelta report {found}")


def _no_metric(case: str, metric: str, tag: str | None, metrics: list[str]) -> str:
    if metric in metrics:
        return f"no result for case {plain(case, 60)!r}, metric {metric!r}, tag {plain(tag or '', 40)!r}"
    return f"case {plain(case, 60)!r} has no metric {plain(metric, 40)!r}; it has {', '.join(metrics)}"


def _nothing(case: str, metric: str | None, tag: str | None, known: list[str]) -> str:
    import difflib

    wanted = f"no result for case {plain(case, 60)!r}"
    wanted += f", metric {plain(metric, 40)!r}" if metric else ""
    wanted += f", tag {plain(tag, 40)!r}" if tag else ""
    close = difflib.get_close_matches(case, known, n=1) or difflib.get_close_matches(case.lower(), known, n=1)
    if close and close[0] != case:
        return f"{wanted}; did you mean {plain(close[0], 60)!r}?"
    cases = ", ".join(plain(name, 40) for name in known[:10])
    return f"{wanted}; cases in the store: {cases or 'none yet, start with kdelta compare'}"


def _print_json(name: str, rows: list[Any]) -> None:
    import json

    import msgspec

    value = msgspec.to_builtins({"schema": "kdelta-history/1", name: rows})
    say(json.dumps(value, separators=(",", ":")))


def _print_experiments(store: Store, rows: list[ExperimentRow]) -> None:
    if not rows:
        say("No experiment yet. Start with: kdelta compare debian:6.12 debian:7.0")
        return
    from kdelta.results.outcomes import Outcomes

    outcomes, width = Outcomes(store), _terminal.columns()
    narrow = width < WIDTH
    say(_parted(("experiment", "when", "kind", "mode", "boots", "state"), narrow))
    for row in rows:
        whole = row.status == "complete" or row.kind == "bisect"  # it plans commit by commit
        boots = str(row.boots_done) if whole else f"{row.boots_done}/{row.boots_planned}"
        when = plain(row.created_at[:16].replace("T", " "), 16)
        say(_parted((row.id, when, plain(row.kind, 9), row.mode, boots, row.status), narrow))
        tags = f"  [{' '.join(row.tags)}]" if row.tags else ""
        say("  " + plain(" ".join(row.kernels) + tags, width - 2))
        outcome = outcomes.of(row)
        if outcome.told:
            say("  " + plain(": ".join(filter(None, (outcome.told, outcome.words))), width - 2))
        if row.note:
            say("  " + plain(row.note, width - 2))


def _parted(cells: tuple[str, str, str, str, str, str], narrow: bool) -> str:
    """A line of the list of experiments, in a narrow terminal two."""
    first = f"{cells[0]:20} {cells[1]:16}".rstrip()
    rest = f"{cells[2]:9} {cells[3]:5} {cells[4]:>9} {cells[5]}"
    return f"{first}\n  {rest}" if narrow else f"{cells[0]:20} {cells[1]:16} {rest}"


def _named(row: HistoryRow, width: int) -> str:
    """The kernel and how it was measured; of a long label the start."""
    how = row.guests + (" mitigations=off" if row.mitigations == "off" else "")
    return plain(plain(row.kernel, max(8, width - len(how))) + how, width)


def _print_history(rows: list[HistoryRow]) -> None:
    from kdelta.report.figures import absolute
    from kdelta.results import labels

    width = _terminal.columns()
    # metrics as they were measured, what a case is about first; stable: oldest first within
    place = {metric: number for number, metric in enumerate(dict.fromkeys(row.metric for row in rows))}
    ordered = sorted(labels.apart(rows), key=lambda row: (row.case, place[row.metric]))
    for (case, metric), group in groupby(ordered, key=lambda row: (row.case, row.metric)):
        lines = list(group)
        say(plain(f"{case}, {metric} ({lines[0].unit or 'no unit'}, {lines[0].better} is better)", width))
        values = [absolute(row.value, row.unit, metric) for row in lines]
        value = max(14, *map(len, values))
        kernel = _KERNEL + max(0, width - value - _OTHERS - _KERNEL)  # a label that is longer is cut
        names = [_named(row, kernel) for row in lines]
        kernel = max(_KERNEL, *map(len, names))
        apart = "\n    " if width < WIDTH else " "
        heads = ("experiment", "kernel", "mode", "value", "boots")
        rows_ = [(r.experiment, n, r.mode, v, str(len(r.values))) for r, n, v in zip(lines, names, values, strict=True)]
        for experiment, name, mode, figure, boots in (heads, *rows_):
            say(f"  {experiment:20}{apart}{name:{kernel}} {mode:5}{apart}{figure:>{value}} {boots:>5}")
        say("")
    for line in _TREND if width >= WIDTH else wrap(" ".join(_TREND), width):
        say(line)
