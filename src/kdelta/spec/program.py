# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that a user wants measured, as typed after ``--``, with the options that go with it. Pure."""

from __future__ import annotations

import shlex

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.model import Case

WORKLOAD = "program"
PACK = "pack"  # the parameter of the case that says which pack; guest/packing.py
_LABEL_MOST = 60
_WORDS_MOST, _BYTES_MOST = 4096, 1_000_000  # that guest/workloads/program.c has room for


class Program(Struct, frozen=True, kw_only=True):
    """What to run and with what. Paths are as typed; ``files`` are PATH or PATH:DEST, ``env`` NAME=VALUE."""

    argv: tuple[str, ...]
    files: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    follow: bool = False
    setup: str = ""
    between: str = ""
    stdin: str = ""
    env: tuple[str, ...] = ()
    cwd: str = ""
    writable: bool = False  # the directory that it runs in, as a copy for each run
    cold: bool = False
    expect_status: int = 0
    batch: bool = False  # SCHED_BATCH: a woken process never preempts

    @property
    def label(self) -> str:
        """The command as a case is called."""
        text = shlex.join([self.argv[0].rsplit("/", 1)[-1], *self.argv[1:]])
        text = "".join(c if c.isprintable() else "?" for c in text)
        return text if len(text) <= _LABEL_MOST else text[: _LABEL_MOST - 3] + "..."

    def case(self, pack: str, found: str = "") -> Case:
        """The case of this program, whose files are in ``pack``, and what it ``found`` where it was started."""
        return Case(workload=WORKLOAD, params={PACK: pack}, label=self.label, found=found)


def words(command: str, option: str) -> list[str]:
    """A command of an option, split as a shell would; no shell runs it.

    Raises:
        UserError: a quote that does not end.
    """
    try:
        return shlex.split(command)
    except ValueError as error:
        raise UserError(f"{option} {command!r}: {error}") from None


def _is_text(word: str) -> bool:
    """Whether a word of a command line was UTF-8 (PEP 383)."""
    return not any("\udc80" <= c <= "\udcff" for c in word)


def refused(program: Program) -> str:
    """Why ``program`` cannot be, or ""."""
    if not program.argv or not program.argv[0]:
        return "there is no program behind --"
    if any("\0" in word for word in (*program.argv, *program.env)):
        return "a word holds a NUL"
    if strange := next((word for word in (*program.argv, *program.env) if not _is_text(word)), None):
        told = strange.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return f"{told} is not UTF-8, and results are text: put it into a script, and name that"
    if len(program.argv) > _WORDS_MOST or sum(len(word.encode()) + 5 for word in program.argv) > _BYTES_MOST:
        told = f"{len(program.argv):,} words are more than a guest takes ({_WORDS_MOST:,}, and {_BYTES_MOST:,} bytes)"
        return f"{told}: name the directory, or put them into a script"
    for text in program.env:
        if not text.partition("=")[0] or "=" not in text:
            return f"--env {text!r} is not NAME=VALUE"
    return ""
