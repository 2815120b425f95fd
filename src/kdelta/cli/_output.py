# SPDX-License-Identifier: GPL-2.0-or-later
"""What is printed, and where: --format and -o FILE, looked at while the command line is read, and the writing itself."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from kdelta.cli import _given
from kdelta.cli._say import put
from kdelta.cli.common import F, decorate
from kdelta.errors import GuestError, HostError, UserError
from kdelta.spec import program
from kdelta.stats import register

if TYPE_CHECKING:
    from kdelta.model import ExperimentResult


_WRITES = re.compile(r"(?i)\bread[- ]?only\b|\bwrite?able\b|\bmay write in\b")  # by errno, or in a program's own words
_LEFT = re.compile(r"\b[Ff]ile exists|\balready exists")
_NO_TERMINAL = re.compile(r"nappropriate ioctl|not a (?:tty|terminal)|opening terminal|from a terminal|'?/dev/tty\b")
_NO_MODULES = re.compile(
    r"unknown filesystem type|mount failed: Operation not permitted|set ?up loop|/dev/loop|Module \S+ not found"
    r"|/lib/modules|Unknown device type|Address family not supported"
)
_NO_NETWORK = re.compile(
    r"[Nn]etwork is unreachable|ame or service not known|ailure in name resolution|[Uu]nknown host|ot resolve (?:host|name)"
)
_TOLD = ("packs what it needs", "gives it more")  # the guest's: of what it did not find, and of memory
_EXIT = re.compile(r" ended with exit status (\d+)")
_OF_SETUP = re.compile(r"(?:^|failed: )(?:setup|between): ")
_SIGNAL = re.compile(r"(?<!the case) was killed by (?:SIG([A-Z0-9]+)|signal (\d+))(?!.*; the guest is out of memory)")
_LACKS = "the guest's CPU may lack an instruction of it, as those of AVX-512: build it without -march=native"
FOLDING = ("terminal", "mail", "markdown", "html")  # formats that leave causes to those who ask


def check_writable(path: Path, option: str) -> None:
    """Open ``path`` for writing and leave it as it was; devices and pipes are taken at their word.

    Raises:
        UserError: it cannot be written.
    """
    try:
        file = path.resolve()
        fresh = not file.exists()
        if fresh or file.is_file():
            os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666))
        if fresh:
            file.unlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(
            f"{option} {path}: cannot be written ({why}); name a file in a directory you can write to"
        ) from None


def check(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """The callback of an option that names a file to write."""
    if value is not None and not ctx.resilient_parsing:
        check_writable(value, param.opts[0])
    return value


def _format(ctx: click.Context, _param: click.Parameter, value: str) -> str:
    from kdelta.report import registry

    if not ctx.resilient_parsing:
        registry.find(value)
    return value


def output_option(what: str) -> Callable[[F], F]:
    """``-o FILE``; ``what`` is its help."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option("--output", "-o", type=kind, callback=check, help=what)


format_option = click.option(
    "--format",
    "-f",
    "fmt",
    default="terminal",
    show_default=True,
    metavar="FORMAT",
    callback=_format,
    help="terminal, mail, markdown, html, json, csv, ktap, junit, benchfmt, kcidb, patchwork, b4, github, sarif or codequality.",
)


@dataclass(frozen=True, kw_only=True)
class OutputArgs:
    """Values of ``output_options``."""

    as_json: bool
    fmt: str
    output: Path | None
    all_metrics: bool
    causes: bool
    view: str | None
    quiet: bool

    @property
    def format(self) -> str:
        """The chosen format's name, without one that of the file to write; refuses an unknown one early."""
        from kdelta.report import registry

        name = "json" if self.as_json else self.fmt
        if self.output is not None and not self.as_json and "fmt" not in _given.given():
            name = registry.of_file(self.output) or name
        registry.find(name)
        if self.as_json and self.fmt not in ("json", "terminal"):
            raise UserError(f"--json and --format {self.fmt} exclude each other: give one of them")
        if self.causes and name not in FOLDING:
            raise UserError(f"--causes would do nothing: {name} has the causes always")
        return name

    def explained(self) -> Self:
        """The same, with the causes where the format leaves them to those who ask."""
        return replace(self, causes=self.causes or self.format in FOLDING)

    @property
    def bare(self) -> str:
        """``format`` of what is text or JSON and nothing else: a file's name asks for JSON, or for nothing."""
        name = self.format
        return name if name == "json" or self.as_json or "fmt" in _given.given() else self.fmt


output_options = decorate(
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (schema kdelta/1)."),
    format_option,
    output_option("Write the report to a file; without --format in the one that its name ends in, as in result.html."),
    click.option("--all-metrics", is_flag=True, help="Show all metrics, not only the primary ones."),
    click.option("--causes", is_flag=True, help="Say below each row because of which functions (kdelta why has them all)."),
    click.option("--view", type=click.Choice(register.names()), help="Also show another tool's estimate from the same samples; it never affects the verdict."),
    click.option("--quiet", "-q", is_flag=True, help="No progress on standard error."),
)  # fmt: skip


def write(text: str | bytes, output: Path | None) -> None:
    """Print a report, or write it to a file.

    Raises:
        HostError: the file cannot be written.
    """
    if output is not None:
        fresh = not output.exists()
        try:
            output.write_bytes(text if isinstance(text, bytes) else text.encode())
        except OSError as error:
            if fresh:
                output.unlink(missing_ok=True)  # half a report is none
            raise HostError(f"cannot write {output}: {error.strerror}") from None
    else:
        put(text)


def refuse_all_lost(rows: Sequence[tuple[str, str, str]], done: str) -> None:
    """Exit code 3 where no guest did its work: ``rows`` are (what, state, why), ``done`` what was to be done to kernels.

    Raises:
        GuestError: every one of the rows was lost, panicked, hung or failed.
    """
    if rows and all(state in ("lost", "panicked", "hung", "failed") for _, state, _ in rows):
        what, state, why = rows[0]
        raise GuestError(f"no kernel could be {done}: {': '.join(filter(None, (what, _once(state, why), why)))}")


def _once(state: str, why: str) -> str:
    """``state``, "" where the reason says it with the kernels."""
    return "" if f": {state}" in why else state


def refuse_lost(result: ExperimentResult) -> None:
    """Raises:
    GuestError: nothing at all could be measured, because guests were lost or their work failed.
    """
    from kdelta.report.ended import why_all

    each = {row.case: why_all([one for one in result.results if one.case == row.case]) for row in result.results}
    told = [(row, each[row.case] or row.why) for row in result.results]
    rows = [(row.case, row.state, why + _unpacked(row.params, row.why)) for row, why in told]
    ran = any(row.baseline is not None or row.patched is not None for row in result.results)
    refuse_all_lost(rows, "compared" if ran else "measured")


def _unpacked(params: Mapping[str, str], why: str) -> str:
    """What a program that ended badly may lack: the guest has its libraries and what its words name, no more."""
    ended, may_fail = _EXIT.search(why), not _OF_SETUP.search(why)
    if program.PACK in params and may_fail and (killed := _SIGNAL.search(why)):
        number = int(killed[2]) if killed[2] else getattr(signal, f"SIG{killed[1]}", None)
        lacks = f"{_LACKS}; " if number == signal.SIGILL else ""
        return f" ({lacks}if it ends so here too, --expect-status {128 + number})" if number else ""
    if program.PACK not in params or ended is None:
        return ""
    if _WRITES.search(why):  # the guest says it itself where its words are short enough
        told = " (what is packed is read-only; with --writable each run has a copy of the directory to write in)"
        return "" if "may write in" in why else told
    if _LEFT.search(why):
        return " (it runs several times in one guest: what a run leaves outside of its directory, --between removes)"
    if _NO_TERMINAL.search(why):
        return " (a guest's program has no terminal; script makes it one: -- script -eqc 'PROGRAM ARGS' /dev/null)"
    if _NO_MODULES.search(why):
        return (
            ' (guests load no modules: what it needs must be built into the kernel, as src: with config="CONFIG_X=y")'
        )
    if _NO_NETWORK.search(why):
        return " (guests have no network but their own loopback: start the other side in the same command, by sh -c)"
    files = "a file that it looks for by itself is packed by --follow, --tree DIR or --file PATH; "
    known = any(said in why for said in _TOLD)
    expected = f"if it ends so here too, --expect-status {ended[1]}" if may_fail else ""
    told = f"{'' if known else files}{expected}".removesuffix("; ")
    return f" ({told})" if told else ""
