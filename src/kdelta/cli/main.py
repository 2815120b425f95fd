# SPDX-License-Identifier: GPL-2.0-or-later
"""The program: finds its subcommands by file name, prints errors as one line, turns them into exit codes.

A subcommand is a module of this package with a ``command``; its heavy imports belong inside its functions, so that
``kdelta --help`` stays fast.
"""

from __future__ import annotations

import gc
import importlib
import io
import logging
import os
import re
import select
import signal
import sys
import threading

import click

from kdelta import __version__
from kdelta.cli import _help, _meant
from kdelta.cli._ending import OUT_OF_MEMORY, Endings, Terminated, notes, of_machine, out_of_memory
from kdelta.cli._say import say
from kdelta.errors import HostError, KdeltaError

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Python looks for circles after each 700 new objects; to import SQLAlchemy alone makes 300000, a sixth of a start-up.
_GARBAGE_AT = 100_000
_COMPLETING = "_KDELTA_COMPLETE"  # a shell asks what a line could go on with: cli/_complete.py
_NOT_COMMANDS = {"__init__", "main", "common", "progress"}
_ABOUT = re.compile(r'^"""`*kdelta [a-z-]+`*: (.+?)"""$', re.MULTILINE)
EPILOG = """\b
Examples:
  kdelta compare debian:6.12 debian:7.0          which kernel is faster, and why
  kdelta compare debian:6.12 'debian:6.12,cmdline="init_on_alloc=0"'
  kdelta run --case pidfd_open                   the running kernel, right now
  kdelta report last --format mail               the table for a cover letter
  kdelta doctor                                  what this machine can do

Exit codes: 0 success, 1 invalid input, 2 host or build error, 3 no guest did its work, 4 --fail-on matched.
"""


def _modules() -> dict[str, str]:
    """Module by subcommand: every file of this package that is not a helper."""
    names = sorted(file.removesuffix(".py") for file in os.listdir(FOLDER) if file.endswith(".py"))
    found = {name.strip("_").replace("_", "-"): name for name in names if not name.startswith("_")}
    return {command: name for command, name in found.items() if name not in _NOT_COMMANDS}


def _about(module: str) -> str:
    """What a subcommand is for: the first line of its file."""
    with open(os.path.join(FOLDER, f"{module}.py"), encoding="utf-8") as file:
        match = _ABOUT.search(file.read(400))
    return match.group(1).rstrip(".") if match else ""


class _Commands(click.Group):
    """Subcommands loaded when they are asked for; their list is made from the first lines of their files."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = _modules().get(cmd_name)
        if name is None:
            return None
        command: click.Command = importlib.import_module(f"kdelta.cli.{name}").command
        if _COMPLETING in os.environ:
            importlib.import_module("kdelta.cli._complete").fit(command, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        modules = _modules()
        about = {command: _about(name) for command, name in modules.items()}
        column = max(map(len, about))  # the same for all groups
        for title, commands in _help.grouped(modules).items():
            with formatter.section(title):
                formatter.write_dl([(command.ljust(column), about[command]) for command in commands])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would make it 1, bad input
            if not _unread():
                raise HostError(of_machine(error)) from error
            raise click.exceptions.Exit(128 + signal.SIGPIPE) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(
                f"there is no command {args[0]!r}{_meant.command(args, self.list_commands(ctx))}", ctx
            )
        return super().resolve_command(ctx, args)


@click.command(cls=_Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kdelta")
@click.option("--unsandboxed", is_flag=True, help="Build kernels (src:...) with your own rights, files and network.")
def program(unsandboxed: bool) -> None:
    """Which Linux kernel is faster, by how much, and why.

    Boots kernels in interleaved guests, runs workloads in them, and answers with verdicts that hold up: an interval
    instead of a lucky run, and the functions that account for the difference.
    """
    if unsandboxed:
        from kdelta.kernel import sandbox

        os.environ[sandbox.SWITCH] = "1"


def run(args: list[str]) -> int:
    """The program as a function of its arguments: prints, and returns the exit code."""
    if _COMPLETING in os.environ:
        importlib.import_module("kdelta.cli._complete").register()
    click.Context.formatter_class = _help.Formatter
    try:
        result = program.main(args=_meant.spelled(args), prog_name="kdelta", standalone_mode=False)
    except click.exceptions.Abort as error:
        return _ended(error.__cause__)
    except click.UsageError as error:
        say(f"kdelta: {_meant.told(error)}", err=True)
        return 1
    except click.ClickException as error:
        say(f"kdelta: {error.format_message()}", err=True)
        return 1
    except click.exceptions.Exit as error:
        return error.exit_code
    except KdeltaError as error:
        say("kdelta: " + " ".join(str(error).split("\n")), err=True)
        return error.exit_code
    except OSError as error:
        say(f"kdelta: {of_machine(error)}", err=True)
        return 2
    except (MemoryError, ImportError, RuntimeError) as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # in a __set_name__, which Python before 3.12 tells of so
            return _ended(error.__cause__)
        if not out_of_memory(error):
            raise
        say(f"kdelta: {OUT_OF_MEMORY}", err=True)
        return 2
    return result if isinstance(result, int) else 0


def _ended(by: BaseException | None) -> int:
    """Say what ended the command, and how to go on (the exception's notes); returns the exit code."""
    stopped = by if isinstance(by, Terminated) else None
    say(f"kdelta: {': '.join((str(stopped or 'interrupted'), *notes(by)))}", err=True)
    return 128 + (stopped.number if stopped else signal.SIGINT)


def _unread() -> bool:
    """Whether nobody reads what is printed any more, as with ``| head``; it goes nowhere from now on."""
    found = False
    for stream in (sys.stdout, sys.stderr):
        asked = select.poll()
        asked.register(stream.fileno(), 0)
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0)):
            found = True
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
    return found


def _complete_streams() -> None:
    """Open what the caller closed, as with ``>&-``: the next file opened would be standard output.

    What goes to standard output is what was asked for, so writing there fails as it does in other programs.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            raw = io.FileIO(number, "w" if number else "r", closefd=False)
            setattr(sys, name, io.TextIOWrapper(raw, write_through=True))  # nothing is left for the end to write


def main() -> None:
    """Entry point of the installed program; being told to end is as Ctrl-C, so that all that ends cleanly then does."""
    gc.set_threshold(_GARBAGE_AT)
    _complete_streams()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start a thread for each core
    told = sys.unraisablehook
    sys.unraisablehook = lambda what: None if isinstance(what.exc_value, KeyboardInterrupt) else told(what)
    if logging.lastResort is not None:  # SQLAlchemy tells of any exception in its clean-up
        logging.lastResort.addFilter(
            lambda told: not (told.exc_info and isinstance(told.exc_info[1], KeyboardInterrupt))
        )
    endings = Endings()
    try:
        endings.listen()
        code = run(sys.argv[1:])
    except KeyboardInterrupt as ending:  # before click takes over
        code = _ended(ending)
    endings.over()
    gc.freeze()  # the end of the process frees it all
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        sys.stdout.flush()
        os._exit(code)  # boots that run on count for nothing: their guests die with this process
    sys.exit(code)
