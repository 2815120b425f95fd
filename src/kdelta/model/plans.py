# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment asks: one frozen struct per kind, each with exactly what this kind needs. Stored as they are.

A plan never changes once its experiment is stored; what is found out later stands in ``Annotations``.
"""

from __future__ import annotations

from msgspec import Struct

from kdelta.model.collectors import Collector
from kdelta.model.nouns import Arch


class Compare(Struct, frozen=True, kw_only=True, tag_field="kind", tag="compare"):
    """Kernels against the first one.

    ``selftests``: suites of the kernels' own tests that gate the result. ``follows``: the experiment whose open cases
    this one decides with fresh boots. ``confirms``: the bisection whose commit is held against its parent.
    ``counted``: of one that measures time, the experiment that counted the same kernels and cases to explain it.
    ``gated``: regressions are to close a gate (--fail-on), for which each has to hold among all cells.
    """

    selftests: tuple[str, ...] = ()
    follows: str = ""
    confirms: str = ""
    counted: str = ""
    gated: bool = False


def counted_by(plan: Plan) -> str:
    """The experiment whose counts explain the times of one with this ``plan``; "" where none does."""
    return plan.counted if isinstance(plan, Compare) else ""


def traced_beside(plan: Plan) -> str:
    """The experiment that traced the rest of what one with this ``plan`` was asked for; "" where there is none."""
    return plan.beside if isinstance(plan, Trace) else ""


class Run(Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """One kernel, compared with nothing."""

    reuse: bool = False  # take over stored boots of the same identity (exact)


class Sweep(Struct, frozen=True, kw_only=True, tag_field="kind", tag="sweep"):
    """Versions in order: where are the steps? Also a series of patches, one more applied in each kernel."""

    reuse: bool = False


class PatchRef(Struct, frozen=True):
    """A patch to apply, or with ``reverse`` to take out."""

    path: str
    reverse: bool = False


class Bisect(Struct, frozen=True, kw_only=True, tag_field="kind", tag="bisect"):
    """The commit of ``tree`` (whole path) between ``good`` and ``bad`` (whole hashes) that changed ``metric``.

    All commits are built with the same patches, configuration fragment and command line.
    """

    tree: str
    good: str
    bad: str
    metric: str
    max_boots: int = 200  # timed: then the likely commits are named
    patches: tuple[PatchRef, ...] = ()
    cmdline: str = ""
    config: str = ""
    arch: Arch = "x86_64"


class Trace(Struct, frozen=True, kw_only=True, tag_field="kind", tag="trace"):
    """Collector sets of the tracefs on every case; without any, exact lock holds by the counting plugin.

    ``beside``: the experiment of the exact holds that were asked for with these sets.
    """

    sets: tuple[str, ...] = ()
    ops: int | None = None  # operations of each counted task; None: 32 exact repetitions
    collectors: tuple[Collector, ...] = ()  # the sets as they were; of holds, the one that knows the locks' new names
    beside: str = ""


class Leaks(Struct, frozen=True, kw_only=True, tag_field="kind", tag="leaks"):
    """What whole lives of the cases leave behind in each kernel."""


class Calibrate(Struct, frozen=True, kw_only=True, tag_field="kind", tag="calibrate"):
    """One kernel under two labels: how much do identical boots differ here?"""


class Scale(Struct, frozen=True, kw_only=True, tag_field="kind", tag="scale"):
    """The same cases at several numbers of tasks."""

    tasks: tuple[int, ...]


class Check(Struct, frozen=True, kw_only=True, tag_field="kind", tag="check"):
    """The cases that the claims of ``recipe`` need."""

    recipe: str
    reuse: bool = False


Plan = Compare | Run | Sweep | Bisect | Trace | Leaks | Calibrate | Scale | Check
