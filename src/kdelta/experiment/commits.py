# SPDX-License-Identifier: GPL-2.0-or-later
"""The commits that a bisection is about: its plan, their line, and the kernel of each."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec.structs import replace

from kdelta.errors import HostError, UserError
from kdelta.kernel import history
from kdelta.kernel.build import fault_of_source
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import written
from kdelta.model import Experiment, Kernel, Progress, plans
from kdelta.spec.kernels import KernelSpec
from kdelta.units import counted

Take = Callable[[KernelSpec, Progress], Kernel]  # has a kernel built; raises as ``resolve``


def plan(good: KernelSpec, bad: KernelSpec, metric: str, max_boots: int) -> plans.Bisect:
    """What a bisection between two commits of one tree asks.

    Raises:
        UserError: no such tree or commit, or BAD does not descend from GOOD.
    """
    line = history.line(good.target, good.ref, bad.ref)
    return plans.Bisect(
        tree=good.target,
        good=line[0],
        bad=line[-1],
        metric=metric,
        max_boots=max_boots,
        patches=good.patches,
        cmdline=good.cmdline,
        config=good.config,
        arch=good.arch,
    )


def beforehand(plan: plans.Bisect) -> str:
    """How much there is to do, for somebody who may not want to wait for it."""
    count = len(line(plan)) - 1
    builds = min(count + 1, 2 + math.ceil(math.log2(count)))
    named = f"{counted(count, 'commit')}, from {plan.good[:12]} to {plan.bad[:12]}"
    return f"{named}: some {builds} kernels to build and measure, what is built already aside"


def plan_of(experiment: Experiment) -> plans.Bisect:
    """What a stored bisection asks.

    Raises:
        UserError: the experiment is not a bisection.
    """
    if not isinstance(experiment.plan, plans.Bisect):
        raise UserError(f"experiment {experiment.id} is a {experiment.kind}, not a bisection")
    return experiment.plan


def line(plan: plans.Bisect) -> tuple[str, ...]:
    """The whole hashes from GOOD to BAD, first parents only."""
    return tuple(history.line(plan.tree, plan.good, plan.bad))


def described(plan: plans.Bisect, name: str) -> history.Commit:
    """The commit as people name it."""
    return history.commit(plan.tree, name)


def spec(plan: plans.Bisect, name: str) -> KernelSpec:
    """The kernel of the commit ``name``."""
    found = KernelSpec(
        text="",
        kind="src",
        target=plan.tree,
        ref=name,
        patches=plan.patches,
        cmdline=plan.cmdline,
        config=plan.config,
        arch=plan.arch,
        label=name[:12],
    )
    return replace(found, text=written(found))


def build(spec: KernelSpec, progress: Progress, take: Take | None = None) -> Kernel | str:
    """The kernel of ``spec``, or why it does not build; ``take`` has it made elsewhere than here.

    Raises:
        UserError, HostError: anything else that is wrong, as a full disk or a missing compiler.
    """
    try:
        return (take or resolve)(spec, progress)
    except HostError as error:
        line = fault_of_source(error)
        if not line:
            raise
        return f"does not build: {line}"
