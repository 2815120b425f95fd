# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that are told how many operations to make: the cases of a suite's TOML file. Pure.

Such a program is run with ``operations`` and with twice as many, and its figures are the difference: start-up and end
are in both. None can be run with zero operations instead: to most programs that means "without end".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Annotated, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from kdelta.model import Case
from kdelta.spec.program import PACK, Program

START = "start"  # the parameter of a case: the pack of the run with half of the operations
OPERATIONS = "{operations}"
SCRATCH = "/tmp"  # a new tmpfs for each run


class Counted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case of a suite: ``run`` is the command, in which ``{operations}`` stands for their number.

    ``batch`` runs it as SCHED_BATCH: how often the woken one of many processes preempts the other is else chance.
    ``parts``: what one of the program's own operations comes to, where figures are per ``part`` (a message of a loop).
    """

    title: str
    run: str
    operations: Annotated[int, Meta(ge=1)]
    part: str = "op"
    parts: Annotated[int, Meta(ge=1)] = 1
    batch: bool = False

    @property
    def programs(self) -> tuple[Program, Program]:
        """The run with twice the operations, and the one with the operations alone."""
        return self._program(2 * self.operations), self._program(self.operations)

    def _program(self, operations: int) -> Program:
        words = (word.replace(OPERATIONS, str(operations)) for word in shlex.split(self.run))
        return Program(argv=tuple(words), cwd=SCRATCH, batch=self.batch)


def complaint(one: Counted) -> str:
    """What is wrong with ``one`` beyond its types, or ""."""
    try:
        words = shlex.split(one.run)
    except ValueError as error:
        return f"run: {error}"
    if not words or OPERATIONS not in one.run or OPERATIONS in words[0]:
        return f"run: a command with {OPERATIONS}, else nothing says how much it does"
    if len(str(one.operations)) != len(str(2 * one.operations)):
        return "operations: begin with a digit up to 4, so that twice as many move nothing on the stack"
    return ""


class Runs(Protocol):
    """A workload, as far as it matters here."""

    @property
    def counted(self) -> Counted | None: ...


def programs(cases: Iterable[Case], workloads: Mapping[str, Runs]) -> frozenset[str]:
    """The names of those ``cases`` that run a suite's program: their counts vary."""
    return frozenset(case.name for case in cases if workloads[case.workload].counted is not None)


def packed(case: Case, twice: str, once: str) -> Case:
    """``case`` with the packs of its two runs."""
    return replace(case, params={PACK: twice, START: once})


def jobs(cases: Mapping[int, Case], most: int) -> dict[int, Case]:
    """The runs behind ``cases``, by number: case ``i`` as ``i``, its run with half of the operations as ``most`` + i.

    ``most``: numbers of cases are below it.
    """
    found = {}
    for index, case in cases.items():
        params = dict(case.params)
        start = params.pop(START, "")
        found[index] = replace(case, params=params)
        if start:
            found[most + index] = replace(case, params=params | {PACK: start})
    return found
