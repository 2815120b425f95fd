# SPDX-License-Identifier: GPL-2.0-or-later
"""What git bisect run hears: exit codes, and the levels that a commit's figures are held against."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kdelta.cli._say import say
from kdelta.errors import KdeltaError, UserError
from kdelta.report.figures import count
from kdelta.units import counted

if TYPE_CHECKING:
    from kdelta.model import Mode
    from kdelta.store.store import Store

GOOD, BAD, SKIP = 0, 1, 125
STOP = 128  # git bisect run takes 1 to 127 for "bad", and stops at 128


class Step(click.Command):
    """Turns every refusal and failure into 128: git must not take a typo for a bad commit."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            say(f"kdelta: {error.format_message()} (see kdelta bisect-step --help)", err=True)
            raise click.exceptions.Exit(STOP) from None

    def invoke(self, ctx: click.Context) -> int:
        try:
            code: int = super().invoke(ctx)
        except KdeltaError as error:
            say(f"kdelta: {error}", err=True)
            raise click.exceptions.Exit(STOP) from None
        return code


def given(good: float | None, bad: float | None) -> tuple[float, float]:
    """The levels as figures.

    Raises:
        UserError: one is missing, or they do not differ.
    """
    if good is None or bad is None:
        raise UserError("bisect-step needs --like EXPERIMENT, or --good and --bad with a figure each")
    return _differing(good, bad)


def like(store: Store, name: str, mode: Mode, case: str, metric: str, cpus: int) -> tuple[float, float]:
    """The levels of a stored comparison: medians of the baseline and of the last kernel.

    Raises:
        UserError: it does not compare two kernels so, in guests of so many ``cpus``, or they do not differ.
    """
    if name == "last":
        raise UserError("--like needs the comparison's id: each step is an experiment too, so 'last' would be it")
    found = store.experiment(name)
    index = next((i for i, c in enumerate(found.cases) if c.name == case), None)
    if index is None or len(found.kernels) < 2 or found.mode != mode:
        raise UserError(f"experiment {found.id} does not compare two kernels ({mode}) with the case {case}")
    if found.machine.guests and found.machine.smp != cpus:
        asked = f"its guests have {counted(found.machine.smp, 'CPU')}, those of this step {cpus}"
        raise UserError(f"experiment {found.id}: {asked}: give --smp {found.machine.smp}")
    sides: dict[int, list[float]] = {0: [], len(found.kernels) - 1: []}
    for n in store.numbers(found.id, index, metric):
        usual = n.state == n.boot_state == "ok" and n.mitigations == "default"  # as the steps are measured
        if n.kernel in sides and n.value is not None and usual:
            sides[n.kernel].append(n.value)
    if not all(sides.values()):
        raise UserError(f"experiment {found.id} has no figures of {case}, {metric} for both kernels")
    good, bad = (statistics.median(values) for values in sides.values())
    return _differing(good, bad)


def _differing(good: float, bad: float) -> tuple[float, float]:
    if good == bad:
        raise UserError(f"the good and the bad figure are the same ({count(good)}): they cannot be told apart")
    return good, bad


def side(values: Sequence[float], levels: tuple[float, float], mode: Mode) -> bool | None:
    """Whether ``values`` lie on BAD's side of the middle; None: on both sides."""
    from kdelta.experiment import search

    return search.side_of_all(values, *levels, noisy=mode == "timed")


def told(values: Sequence[float], levels: tuple[float, float], mode: Mode, rest: str) -> int:
    """Say where ``values`` lie; git's exit code. ``rest`` follows the figures."""
    bad = side(values, levels, mode)
    word = "between good and bad, skip" if bad is None else "bad" if bad else "good"
    figures = count(min(values)) if min(values) == max(values) else f"{count(min(values))} to {count(max(values))}"
    say(f"{word}: {figures} {rest}")
    return SKIP if bad is None else BAD if bad else GOOD


def skip(why: str) -> int:
    """Say why the commit cannot be told; git's exit code."""
    say(f"skip: {why}")
    return SKIP
