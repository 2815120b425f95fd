# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta reach: which cases execute which functions of a kernel."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli import _output, common
from kdelta.cli._ending import THE_SAME, going_on
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.kernel.symbols import SymbolTable
    from kdelta.model import Case, Kernel, Progress

_PATTERN = set("*?[")  # of fnmatch
_NEAR = 3  # names offered for one that is none

EPILOG = """\b
Examples:
  kdelta reach debian:6.12                       functions of the kernel that the cases execute
  kdelta reach debian:6.12 pipe_write            the cases that execute pipe_write, and how often
  kdelta reach src:debian:6.12 'unix_stream_*'

Every case of all suites is counted once per image, which takes some minutes; what was counted is kept and reused.
"""


@dataclass(frozen=True, kw_only=True)
class Args(common.CaseArgs):
    """The options of ``kdelta reach``."""

    memory: int
    qemu: str
    limit_rows: int
    as_json: bool
    output: Path | None
    anew: bool
    quiet: bool


@click.command(epilog=EPILOG)
@click.argument("kernel")
@click.argument("functions", nargs=-1, metavar="[FUNCTION]...")
@common.case_options_by("all suites")
@common.memory_option
@click.option("--qemu", default="", metavar="PATH", help="The QEMU to use instead of the one on PATH.")
@click.option("--list", "limit_rows", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Cases to list for a function.")  # fmt: skip
@click.option("--anew", is_flag=True, help="Count the cases again that were taken over from another kernel's map.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON (schema kdelta-reach/1): every case.")
@_output.output_option("Write to a file.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
def command(kernel: str, functions: tuple[str, ...], **options: Any) -> int:
    """Show the cases that execute each FUNCTION of KERNEL, else how much of the kernel the cases execute."""
    from kdelta.attribution import reach
    from kdelta.cli.progress import Reporter
    from kdelta.experiment import programs
    from kdelta.experiment import reach as mapping
    from kdelta.kernel import absent, calls, directories, naming
    from kdelta.kernel.calls import CallGraph
    from kdelta.kernel.resolve import resolve_all
    from kdelta.kernel.sources import parse_kernel
    from kdelta.kernel.symbols import NoSymbols
    from kdelta.model import MachineOptions
    from kdelta.report import reach as report

    args = Args(**options)
    if not functions and re.fullmatch(r"[a-z_]\w*", kernel) and kernel != "running" and not Path(kernel).exists():
        raise UserError(f"reach takes KERNEL first, as in: kdelta reach debian:6.12 {kernel}")
    if (program := next((name for name in functions if "/" in name), None)) is not None:
        raise UserError(
            f"{program} is no function: reach looks at what the cases execute; for the calls of a program: "
            f"kdelta trace {kernel} --what syscalls -- {program}"
        )
    spec = parse_kernel(kernel)
    if spec.is_range or spec.kind == "running":
        raise UserError(f"{kernel}: reach maps one kernel in a guest; name one, as in debian:6.12")
    workloads = common.load_workloads(args.folders)
    cases = mapping.can_be_counted(candidates(args), workloads)
    with going_on(THE_SAME), Reporter(args.quiet) as reporter:
        resolved = resolve_all([spec], reporter)[0]
        if not (args.cases or args.suites):
            cases = programs.runnable([resolved], cases, workloads, reporter)
        table = naming.load(resolved)
        if isinstance(table, NoSymbols):
            raise UserError(f"{kernel}: {table.why}")
        known = reach.known_functions(table)
        own = _by_own_names(functions, known, resolved, table, reporter)
        named = _named(own, known, lambda name: absent.why(spec, name, known))  # before minutes of mapping
        machine = MachineOptions(memory_mib=args.memory, qemu=args.qemu)
        setup = mapping.Setup(workloads=workloads, folders=tuple(args.folders), machine=machine)
        found = mapping.build(resolved, cases, setup, reporter, anew=args.anew)
        graph = calls.load(resolved, table)
        places, about = directories.of(spec, resolved, known) if not functions else ({}, "")
    asked = {
        name: () if found.executing(name) or not isinstance(graph, CallGraph) else found.near(name, graph.callers)
        for name in named
    }
    parts = () if functions else reach.coverage(found, known, places)
    if args.as_json:
        text = report.document(found, asked, parts)
    else:
        text = (
            report.functions_text(found, asked, args.limit_rows)
            if functions
            else report.coverage_text(found, parts, about)
        )
    _output.write(text, args.output)
    return 0


def candidates(args: common.CaseArgs) -> tuple[Case, ...]:
    """The cases asked for, else all of every suite at hand, and of the user's own folders; programs with their packs."""
    from kdelta.guest import suite_programs
    from kdelta.spec import cases as grammar
    from kdelta.spec import suites

    if args.cases or args.suites:
        return args.chosen()
    workloads = common.load_workloads(args.folders)
    found = [case for suite in suites.suites().values() for case in grammar.of_suite(suite, workloads, missing_ok=True)]
    if args.workloads:
        found += grammar.chosen((), (), args.workloads, workloads)
    alone = list({case.name: case for case in found}.values())
    return tuple(suite_programs.packed(suite_programs.at_hand(alone, workloads), workloads))


def _by_own_names(
    asked: Iterable[str], known: frozenset[str], kernel: Kernel, table: SymbolTable, progress: Progress
) -> list[str]:
    """What was asked for, an alias of a function by the name under which that is counted."""
    from kdelta.kernel import naming, symbols
    from kdelta.kernel.spelling import fold

    path = naming.image_path(kernel)
    others = [name for name in asked if not set(name) & _PATTERN and fold(name) not in known]
    own = symbols.by_other_names(path.read_bytes(), table, others) if path is not None and others else {}
    for name, function in own.items():
        progress.note(f"{name} is another name of {fold(function)}")
    return [own.get(name, name) for name in asked]


def _named(asked: Iterable[str], known: frozenset[str], why: Callable[[str], str] = lambda _: "") -> list[str]:
    """The functions that ``asked`` names, patterns expanded, each once; ``why`` says what is known of one that is none.

    Raises:
        UserError: one that the kernel does not have.
    """
    from kdelta.kernel.spelling import fold

    found: list[str] = []
    for text in asked:
        hits = (
            sorted(fnmatch.filter(known, text)) if set(text) & _PATTERN else [fold(text)] if fold(text) in known else []
        )
        if not hits:
            if told := "" if set(text) & _PATTERN else why(text):
                raise UserError(f"function {text!r}: the kernel has none of that name: {told}")
            near = _near(text, known)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UserError(f"function {text!r}: the kernel has none of that name, it may be inlined{hint}")
        found += hits
    return list(dict.fromkeys(found))


def _near(text: str, known: frozenset[str]) -> list[str]:
    """Names like ``text``; first those that it is a part of, as of anon_pipe_write, which was pipe_write once."""
    from difflib import get_close_matches

    inside = sorted((name for name in known if text in name), key=lambda name: (len(name), name))
    return list(dict.fromkeys([*inside, *get_close_matches(text, known, _NEAR)]))[:_NEAR]
