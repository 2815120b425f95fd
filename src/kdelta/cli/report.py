# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta report: any stored experiment, in any format, rebuilt from the store alone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from kdelta.cli import _fleet, _given, _output, _reports, _stores, _terminal
from kdelta.cli._say import say
from kdelta.errors import UserError

_KEPT_BYTES = 4096 - 8  # as guest/workloads/program.c has it, less what a character that is cut can take

EPILOG = """\b
Examples:
  kdelta report                          the last experiment
  kdelta report 20261121-1530 --format mail
  kdelta report last --format html -o result.html
  kdelta report last --causes            and because of which functions
  kdelta report last --console 0.1       the console of block 0, slot 1
  kdelta report last --printed 0.1       what a program printed there first
  kdelta report last --ktap patched      what the selftests printed on the kernel labelled patched
  kdelta report last --against 20261120  do the counts agree with those of another host, or another QEMU
"""


@click.command(epilog=EPILOG)
@click.argument("experiment", default="last", metavar="[EXPERIMENT]")
@click.option("--console", metavar="BLOCK.SLOT", help="Print the saved console of one boot instead.")
@click.option(
    "--printed", metavar="BLOCK.SLOT", help="Print the first lines that a program printed in one boot instead."
)
@click.option("--ktap", metavar="LABEL", help="Print the selftests' output on one kernel instead, as KTAP.")
@click.option(
    "--against", metavar="OTHER", help="Compare with another experiment of the same kernels and cases instead."
)
@_output.output_options
def command(
    experiment: str,
    console: str | None,
    printed: str | None,
    ktap: str | None,
    against: str | None,
    **options: Any,
) -> int:
    """Print the report of a stored EXPERIMENT: an id, the start of one, last, or last~1 for the one before."""

    args = _output.OutputArgs(**options)
    if [console, printed, ktap, against].count(None) < 3:
        raise UserError("--console, --printed, --ktap and --against are different reports: give one of them")
    if [console, printed, ktap].count(None) < 3:
        which = "--console" if console else "--printed" if printed else "--ktap"
        _given.refuse(
            ("as_json", "fmt", "all_metrics", "causes", "view"), f"does nothing beside {which}, which prints raw text"
        )
    with _stores.reading() as store:
        if console is not None:
            _output.write(_console(store, experiment, console), args.output)
        elif printed is not None:
            _output.write(_printed(store, experiment, printed), args.output)
        elif ktap is not None:
            _output.write(_ktap(store, experiment, ktap), args.output)
        elif against is not None:
            _output.write(_agreement(store, experiment, against, args), args.output)
        else:
            found = _found(store, experiment)
            _reports.show(store, found, args)
            if note := _fleet.note_open(store, found.id):
                say(note, err=True)
    return 0


def _found(store: Any, name: str) -> Any:
    """The experiment; of a case that stands in its place it is said what has it."""
    try:
        return store.experiment(name)
    except UserError:
        if name not in store.case_names():
            raise
    word = shlex.quote(name)
    raise UserError(f"{name} is a case: kdelta why last {word} has its functions, kdelta history {word} its figures")


def _ktap(store: Any, name: str, label: str) -> bytes:
    """The selftests' output: a guest's own words, so bytes."""
    found: dict[str, str] = store.experiment(name).annotations.ktap
    if label not in found:
        labels = ", ".join(found) or "none: it ran without --selftests"
        raise UserError(f"--ktap {label!r}: experiment {name} has the selftests of {labels}")
    return found[label].encode()


def _agreement(store: Any, here: str, there: str, args: _output.OutputArgs) -> str:
    """The same figures measured twice, as text or JSON."""
    from kdelta.report import agreement as layout
    from kdelta.results import agreement

    _given.refuse(["causes"], "does nothing beside --against, which names the functions that differ anyway")
    if args.bare not in ("terminal", "json"):
        raise UserError(f"--against with --format {args.bare}: it prints text, or JSON with --json")
    if args.view is not None:
        raise UserError(
            "--against with --view: another tool's reading belongs to one experiment; leave out one of them"
        )
    if Path(there).is_file():
        raise UserError(f"--against {there}: a file, not an experiment; import it first: kdelta import {there}")
    found = agreement.compare(store, here, there, all_metrics=args.all_metrics)
    return layout.to_json(found) if args.bare == "json" else layout.render(found, _terminal.of(args.output))


def _place(option: str, where: str) -> tuple[int, int]:
    block, dot, slot = where.partition(".")
    if not (dot and block.isdigit() and slot.isdigit()):
        raise UserError(f"{option} {where!r}: give block and slot, as in 0.1")
    return int(block), int(slot)


def _console(store: Any, experiment: str, where: str) -> bytes:
    content: bytes = store.console(experiment, *_place("--console", where))
    if not content.strip():
        say("this console is empty: kernels boot with quiet, and this one had nothing to say", err=True)
    return content


def _printed(store: Any, experiment: str, where: str) -> bytes:
    """What programs printed first in one boot: a guest's own words, so bytes."""
    from kdelta.guest import protocol

    place = _place("--printed", where)
    records = protocol.parse(store.stream(experiment, *place)).records
    lines = [record.text for record in records if isinstance(record, protocol.Output)]
    if not lines:
        bad = next((run for run in store.boot(experiment, *place).runs if run.state != "ok"), None)
        why = f"only of what ends well is it kept; there: {bad.state}: {bad.why}" if bad else ""
        nothing = f"no program printed anything in that boot of {experiment}"
        raise UserError(f"--printed {where}: {why or nothing}")
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    if len(text) > _KEPT_BYTES:
        say("the first 4 KiB of what a program printed are kept, and the last line here may be cut", err=True)
    return text
