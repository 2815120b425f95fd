# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta review: what a series does to performance, what was looked at, and what not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _output, _program, _reply, _session, common
from kdelta.cli._budget import Budget
from kdelta.cli._ending import THE_SAME, going_on
from kdelta.cli._say import say
from kdelta.errors import RegressionFound, UserError

if TYPE_CHECKING:
    from kdelta.cli._beside import Checked
    from kdelta.cli._series import Series
    from kdelta.model import Experiment

EPILOG = """\b
Examples:
  kdelta review series.mbox --tree ./linux             the mail's own base-commit, in your repository
  b4 am -o - MESSAGE-ID | kdelta review - --tree debian:6.12
  kdelta review v6.18..mybranch --tree ./linux --format mail
  kdelta review series.mbox --tree ./linux --reply answer.eml --send
  kdelta review series.mbox --tree debian:6.12 --config 'NEW_OPTION=y OTHER=n'
  kdelta review series.mbox --tree debian:6.12 -- ./bench 100    a program of yours, beside the cases

The tree is built without the series and with it, in a sandbox; the cases that execute what the series changed are
counted exactly; where it touches lifetimes of objects or locks, these cases are checked for leaks, and what runs under
locks is counted. Where no case executes what changed (a driver, another architecture, documentation), nothing is booted,
and the answer says what was not looked at. Of a whole thread the newest version counts, replies do not. Interrupted,
the same command goes on: what was built, mapped and counted is kept.

\b
As a check of b4, which then tells it of each patch of your branch:
  git config b4.prep-perpatch-check-cmd "kdelta review - --tree . --format b4 --quiet"
"""


# https://lore.kernel.org/LIST/MESSAGE-ID/raw, or what stands in the mail's own line
_MESSAGE = re.compile(
    r"(?:(?:\w+://\S*?|lore\.kernel\.org/\S*?/)(?:([^/\s<>]+@[^/\s<>]+)\S*)?|<?([^/\s<>]+@[^/\s<>]+)>?)"
)
_reply_option = click.option(
    "--reply", type=click.Path(path_type=Path, dir_okay=False), callback=_output.check, metavar="FILE",
    help="Write the report as a mail in the series' thread, for git send-email; nothing is sent.",
)  # fmt: skip
_send = click.option(
    "--send", is_flag=False, flag_value="dry-run", type=click.Choice(["dry-run", "now"]),
    help="With --reply: hand it to git send-email as you set it up; a dry run unless --send=now.",
)  # fmt: skip


def _on_disk(ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Raises:
    UserError: an address or a Message-ID, of which nothing is downloaded here.
    """
    if (
        not ctx.resilient_parsing
        and ".." not in value
        and (named := _MESSAGE.fullmatch(value))
        and not Path(value).exists()
    ):
        message = named[1] or named[2] or "MESSAGE-ID"
        raise UserError(
            f"review {value}: nothing is downloaded here; have b4 do it: b4 am -o - {message} | kdelta review - --tree ./linux"
        )
    return value


@click.command(cls=_program.Command, epilog=EPILOG)
@click.argument("series", metavar="MBOX|RANGE|-", callback=_on_disk)
@click.option("--tree", required=True, metavar="TREE", help="What the series applies to: a source tree or repository [@REF], or debian:VERSION.")  # fmt: skip
@click.option("--time-budget", default="10m", show_default=True, metavar="TIME", help="What all that follows the builds may take, as in 20m: cases are chosen to fit, and it ends there; the same command goes on.")  # fmt: skip
@click.option(
    "--config",
    default="",
    metavar="FILE|OPTION=y",
    help="Build with this fragment, whole .config, options, or both: 'my.config FOO=y'.",
)
@click.option("--each", is_flag=True, help="Measure the series patch by patch: which one made the difference.")
@click.option("--smp", type=click.IntRange(1, 64), default=1, show_default=True, help="CPUs of a guest: on several, what moves between them is counted too.")  # fmt: skip
@click.option("--suite", "suites", multiple=True, metavar="SUITE", help="Choose among the cases of this suite alone; repeatable.  [default: all suites]")  # fmt: skip
@click.option("--selftests", metavar="SUITE,...", help="Run these kernel selftests first.")
@click.option("--all", "all_cases", is_flag=True, help="Add cases that execute nothing that changed, as a control.")
@click.option("--no-beside", is_flag=True, help="Speed alone: no check for leaks, no counts under locks.")
@click.option("--reuse", is_flag=True, help="Where the same command was carried out before, show what it found.")
@click.option("--fail-on", metavar="regressed[:PERCENT]", help="Exit 4 when a case regressed (by at least PERCENT), or panicked, hung or failed on the patched kernel alone.")  # fmt: skip
@_program.options
@_output.format_option
@_output.output_option("Write the report to a file.")
@_reply_option
@_send
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
def command(
    series: str, tree: str, config: str, no_beside: bool, reuse: bool, reply: Path | None, send: str | None,
    **options: Any,
) -> int:  # fmt: skip
    """Review a series: build it, count what it changed, say what was looked at and what was not."""
    from kdelta.cli import _series

    if send and reply is None:
        raise UserError("--send sends what --reply FILE writes: give both")
    found = _series.read(series, tree, f',config="{config}"' if config else "", each=options["each"])
    if reply is not None and found.cover.answer_to is None:
        raise UserError(f"--reply {reply}: {series} has no mail with a Message-ID and a sender to answer")
    begun: list[Experiment] = []
    budget = Budget(common.seconds(options["time_budget"], "--time-budget"))
    failed: RegressionFound | None = None
    try:
        with going_on(THE_SAME):
            code = _measure(found, options, begun, reuse, budget)
    except RegressionFound as error:  # told after all that there is to show
        code, failed = error.exit_code, error
    except UserError as error:
        raise UserError(str(error).replace(found.kept or series, series)) from None
    checks = _checks(begun[0], found, budget, options["quiet"]) if begun and not no_beside else ()
    below = (*(one.text for one in checks), *_claimed(found, begun))
    known = {leak for one in begun[0].annotations.beside for leak in one.leaks} if begun else set()
    _show_below(checks, below, options, known)
    if reply is not None and begun:
        options |= {"no_beside": no_beside, "config": config}
        _output.write(_reply.made(begun[0].id, found, tree, options, below), reply)
        if send:
            _send_off(reply, really=send == "now")
    if failed is not None:
        raise failed
    return code


def _measure(found: Series, options: dict[str, Any], begun: list[Experiment], reuse: bool, budget: Budget) -> int:
    """Go on with the same review where it was interrupted, else begin it; with ``reuse`` also take over a whole one."""
    from kdelta.cli import _again, compare

    causes = ["--causes"] if options["fmt"] in _output.FOLDING else []
    words = [*found.kernels, "--exact", "--case", "auto", *causes, *_words(options)]
    context = compare.command.make_context("kdelta review", words)
    args = compare.Args(**{k: v for k, v in context.params.items() if k in compare.Args.__dataclass_fields__})
    left = _again.begun(found.kernels, each=args.each, finished=reuse)
    if left is None:
        with context:  # what compare asks click for is of its own command line
            return compare.run(found.kernels, args, begun.append, budget)
    begun.append(left)
    return _again.conclude(left, args, budget)


def _words(options: dict[str, Any]) -> list[str]:
    """The options that compare takes too, as it takes them."""
    names = {"fmt": "format", "all_cases": "all", "files": "file", "suites": "suite"}
    program = options["program"]
    words: list[str] = []
    for name, value in ((name, value) for name, value in options.items() if name != "program"):
        option = "--" + names.get(name, name).replace("_", "-")
        if value is True:
            words.append(option)
        else:
            given = value if isinstance(value, tuple) else (value,) if value else ()
            words += [word for one in given for word in (option, str(one))]
    return [*words, "--", *program] if program else words


def _checks(experiment: Experiment, found: Series, budget: Budget, quiet: bool) -> tuple[Checked, ...]:
    """Leaks and locks, where the series touches them and time is left."""
    from kdelta.cli import _beside

    with _session.opened(quiet) as session:
        return _beside.checks(session, session.store.experiment(experiment.id), found.touched, budget)


def _claimed(found: Series, begun: Sequence[Experiment]) -> tuple[str, ...]:
    """The figures that the series gives itself, beside what was measured."""
    from kdelta.cli import _show
    from kdelta.report import claims, looked
    from kdelta.store.store import Store

    if not found.cover.claims:
        return ()
    if not begun:
        return (claims.quoted(found.cover.claims),)
    with Store() as store:
        _, view = _show.view_of(store, begun[0].id)
    identical = view.headline.nothing.endswith(f": {looked.IDENTICAL}")
    exact = begun[0].mode == "exact"
    return (claims.quoted(found.cover.claims, view.headline.tallies, exact, identical=identical),)


def _show_below(checks: Sequence[Checked], below: Sequence[str], options: dict[str, Any], known: set[str]) -> None:
    """Below a report for people what belongs to it; for b4 new leaks that its lines lack; else where the checks are."""
    if options["output"] is None and options["fmt"] in ("terminal", "mail"):
        for text in below:
            _output.write("\n" + text.lstrip("\n"), None)
        return
    if options["output"] is None and options["fmt"] == "b4":
        for leak in (leak for one in checks for leak in one.kept.leaks if leak not in known):
            _output.write(f"ERROR: {leak}\n", None)
    if not options["quiet"]:
        for one in checks:
            where = f"kdelta report {one.kept.experiment}" if one.kept.experiment else one.text.strip()
            say(f"checked beside: {where}", err=True)


def _send_off(reply: Path, *, really: bool) -> None:
    from kdelta.post import send

    said = send.send(reply, Path.cwd(), really=really)
    say(said, err=True, nl=False)
    say("sent" if really else f"nothing was sent; to send it: git send-email {reply}, or --send=now", err=True)
