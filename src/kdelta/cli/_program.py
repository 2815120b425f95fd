# SPDX-License-Identifier: GPL-2.0-or-later
"""The form ``kdelta compare A B [options] -- PROGRAM ARGS...``: what follows -- is a program to measure."""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
import sys
import termios
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdelta.cli import _meant, common
from kdelta.cli._say import say
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Case


class Command(click.Command):
    """A subcommand that takes a program behind ``--``; its words are the parameter ``program``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words: tuple[str, ...] = ()
        if "--" in args:
            at = args.index("--")
            words = tuple(args[at + 1 :])
            if not words:
                raise click.UsageError("there is no program behind --", ctx)
            args = args[:at]
        try:
            rest = super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            at = next((i for i, word in enumerate(args) if word.startswith(error.option_name)), 0)
            refuse_bare(self._without_options(ctx, args[:at]), args[at:])  # a program's option, perhaps
            raise
        ctx.params["program"] = words
        return rest

    def _without_options(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        """The words that are neither an option nor the value of one."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        valued = {name for option in options if not option.is_flag and not option.count for name in option.opts}
        before = ("", *args)
        return [
            word for word, last in zip(args, before, strict=False) if not word.startswith("-") and last not in valued
        ]


class Without(click.Command):
    """A subcommand that measures no program: one behind ``--`` would be taken for a kernel."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args and (words := args[args.index("--") + 1 :]):
            said = f"{ctx.info_name} measures cases and no program: kdelta compare debian:6.12 debian:7.0 -- {shlex.join(words)}"
            raise click.UsageError(said)  # without the context: no more is to be read
        return super().parse_args(ctx, args)


@dataclass(frozen=True, kw_only=True)
class ProgramArgs:
    """Values of ``options``, and the program."""

    program: tuple[str, ...]
    files: tuple[str, ...]
    follow: bool
    setup: str | None
    between: str | None
    stdin: str | None
    env: tuple[str, ...]
    cwd: str | None
    cold: bool
    expect_status: int
    trees: tuple[str, ...] = ()
    writable: bool = False

    def cases_or(
        self,
        chosen: Callable[[], tuple[Case, ...]],
        named: bool,
        native: bool = False,
        surrounded: Callable[[Sequence[Case]], tuple[Case, ...]] = tuple,
    ) -> tuple[Case, ...]:
        """The program packed as a case, before the ``chosen`` ones where some are ``named``; these alone without one.

        ``surrounded`` puts it into the cgroups, and under the pressure, that the chosen ones are in already.

        Raises:
            UserError: an option of programs without one, or what is needed is not on this machine.
        """
        if not self.program:
            given = {"--file": self.files, "--tree": self.trees, "--follow": self.follow, "--setup": self.setup}
            given |= {"--between": self.between, "--stdin": self.stdin, "--env": self.env, "--cwd": self.cwd}
            given |= {"--cold": self.cold, "--expect-status": self.expect_status, "--writable": self.writable}
            if extra := [name for name, value in given.items() if value]:
                raise UserError(f"{extra[0]} goes with a program: put it at the end behind --, as in -- ls -l")
            return chosen()
        from kdelta.guest import here, packing, shell
        from kdelta.spec.program import Program

        program = Program(
            argv=self.program,
            files=self.files,
            trees=self.trees,
            follow=self.follow,
            setup=self.setup or "",
            between=self.between or "",
            stdin=self.stdin or "",
            env=self.env,
            cwd=self.cwd or "",
            writable=self.writable,
            cold=self.cold,
            expect_status=self.expect_status,
        )
        bare = not (native or self.trees or self.follow or self.cwd)
        found = here.find(Path.cwd()) if bare else None
        words = (*program.argv[1:], *shell.typed(program.argv))
        pointed = () if native or self.follow else here.named(words, Path.cwd() / program.cwd, found)
        case = packing.pack(program, Path.cwd(), native, found, pointed)
        for one in (*([found] if found else []), *pointed):
            if one.note:
                _told(one.note)
        if not program.stdin and (waiting := _waiting()):
            _told(f"{waiting}, and the program reads /dev/null: --stdin FILE is its standard input")
        return (*surrounded([case]), *(chosen() if named else ()))


def _waiting() -> str:
    """What is on our standard input, as in ``kdelta ... -- wc -l <file``; "" where nothing is, or it is a terminal."""
    try:
        facts = os.fstat(0)
        if stat.S_ISREG(facts.st_mode) and os.lseek(0, 0, os.SEEK_CUR) < facts.st_size:
            return f"standard input is {os.readlink('/proc/self/fd/0')} here"
        if stat.S_ISFIFO(facts.st_mode):
            bytes_waiting = int.from_bytes(fcntl.ioctl(0, termios.FIONREAD, bytes(4)), sys.byteorder)
            return "standard input is a pipe here, with something in it" if bytes_waiting else ""
    except OSError:
        return ""
    return ""


@cache
def _told(note: str) -> None:
    """Once, also where the program is looked at before its kernels are fetched, and after."""
    say(f"note: {note}", err=True)


tree_option = click.option("--tree", "trees", multiple=True, metavar="DIR", help="Program: pack this directory with all that is in it.")  # fmt: skip
options = common.decorate(
    click.option("--file", "files", multiple=True, metavar="PATH[:DEST]", help="Program: pack this file or directory too."),
    click.option("--follow", is_flag=True, help="Program: run it here once under strace and pack what it opens."),
    click.option("--setup", metavar="COMMAND", help="Program: run this once before, untimed."),
    click.option("--between", metavar="COMMAND", help="Program: run this after each run, untimed."),
    click.option("--stdin", metavar="FILE", help="Program: its standard input.  [default: /dev/null]"),
    click.option("--env", multiple=True, metavar="NAME=VALUE", help="Program: add to its environment, which is fixed."),
    click.option("--cwd", metavar="DIR", help="Program: where it runs.  [default: here]"),
    click.option("--writable", is_flag=True, help="Program: it may write where it runs; each run finds a fresh copy."),
    click.option("--cold", is_flag=True, help="Program: drop the kernel's caches before each run."),
    click.option("--expect-status", type=click.IntRange(0, 255), default=0, show_default=True, help="Program: its exit status."),
)  # fmt: skip


_BETWEEN = ("vs", "vs.", "versus", "and", "to", "with", "against", "->")  # what people write between two kernels


def refuse_bare(words: Sequence[str], more: Sequence[str] = ()) -> None:
    """``more`` are options behind the ``words``, which may be those of a program.

    Raises:
        UserError: one of the ``words`` that should be kernels is a case, a suite or a program.
    """
    import shlex
    import shutil

    from kdelta.spec import suites
    from kdelta.spec.kernels import is_commit, released

    for at, word in enumerate(words):
        if (at or len(words) == 1) and _meant.is_program(word):
            raise UserError(
                f"{word!r} is a program, not a kernel: put -- before it, as in -- {shlex.join([*words[at:], *more])}"
            )
        if word == "running" or set(word) & set(":=,.") or released(word) or is_commit(word) or Path(word).exists():
            continue
        if word in _BETWEEN and at:
            raise UserError(f"kernels stand side by side, the baseline first: leave out {word!r}")
        if word in common.load_workloads(()):
            raise UserError(f"{word!r} is a case, not a kernel: write --case {word}")
        if word in suites.suites():
            raise UserError(f"{word!r} is a suite, not a kernel: write --suite {word}")
        program = word.split(" ", 1)[0]  # the quoted whole of a command
        if (at or len(words) == 1) and "/" not in program and shutil.which(program):
            raise UserError(
                f"{word!r} is not a kernel; to measure a program put -- before it, as in -- {' '.join([*words[at:], *more])}"
            )
