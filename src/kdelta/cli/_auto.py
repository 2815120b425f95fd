# SPDX-License-Identifier: GPL-2.0-or-later
"""``--case auto`` of compare: the cases are chosen by what the kernels differ in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kdelta.cli import _patching, common
from kdelta.errors import UserError
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec

if TYPE_CHECKING:
    from threading import Event

    from kdelta.attribution.reach import Row
    from kdelta.cli._budget import Budget
    from kdelta.cli.compare import Args
    from kdelta.model import Case, Kernel, Looked, Progress
    from kdelta.results.versions import Version

AUTO = "auto"
_BUDGET_S = 600.0
_SEEDS = 12  # that counts take where some move, with the repetitions of a seed
_SEEDS_OF_PROGRAMS = 40  # their counts move, so that they take 20, and each run is made again to see whether it repeats
_TIMED_CASE_S = 1.5  # of a case in a timed boot
_BUILT_ALREADY_S = 0.5  # kernels that are there by then are not built
_LATER = ("kdelta.results.answer", "kdelta.report.view", "kdelta.report.registry")  # what shows the answer


def wanted(args: Args, specs: Sequence[KernelSpec]) -> bool:
    """Whether the cases are to be chosen: asked for, or a patch is given and nobody says which cases.

    Raises:
        UserError: ``auto`` beside cases or memory pressure, or of command lines; --all without it.
    """
    asked = AUTO in args.cases
    if asked and (len(args.cases) > 1 or args.pressure):
        raise UserError("--case auto chooses the cases: name no other case or --pressure; --suite restricts it")
    patched = any(spec.patches for spec in specs) and all(spec.kind in BUILT_KINDS for spec in specs)
    alike = len({spec.cmdline for spec in specs}) == 1
    if asked and not alike:
        raise UserError(
            "--case auto looks at machine code, and these kernels differ in their command lines: name the cases"
        )
    default = patched and alike and not (args.named or args.program or args.pressure)
    if args.all_cases and not (asked or default):
        raise UserError(
            "--all adds controls to the cases that a patch chooses: give --case auto, or a patch and no case"
        )
    return asked or default


def fetched(specs: Sequence[KernelSpec], each: bool, progress: Progress) -> tuple[Version, ...]:
    """The kernels; what is read of the first one alone is read while the others are built.

    Where all are built already what differs between them may be known too, and nothing has to be read.
    """
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event

    def had(kernel: Kernel) -> None:
        if not begun:
            begun.append(pool.submit(_ahead, kernel, there))

    begun: list[object] = []
    there = Event()
    with ThreadPoolExecutor(1) as pool:
        try:
            return _patching.fetched(specs, each, progress, had)
        finally:
            there.set()


def _ahead(kernel: Kernel, there: Event) -> None:
    """Unless all are ``there`` soon, read what ``choose`` keeps for who asks again, and load what shows its answer.

    Where that fails, they tell it.
    """
    from importlib import import_module

    from kdelta.experiment import auto

    if there.wait(_BUILT_ALREADY_S):
        return
    for name in _LATER:
        import_module(name)
    common.load_workloads(())
    auto.read_ahead(kernel)


def given(args: Args) -> tuple[Case, ...]:
    """The user's program, which is measured beside the cases that are chosen.

    Raises:
        UserError: as ``cases_or``.
    """
    return args.cases_or(tuple, named=False)


def counts_s(row: Row, kernels: int, program: bool) -> float:
    """What counting a case takes here."""
    seeds = _SEEDS_OF_PROGRAMS if program else _SEEDS
    return seeds * kernels * row.elapsed_s / (os.cpu_count() or 1)


def choose(
    args: Args, specs: Sequence[KernelSpec], kernels: Sequence[Kernel], budget: Budget, progress: Progress
) -> tuple[tuple[Case, ...], Looked]:
    """The cases, and what they look at."""
    from kdelta.cli import reach
    from kdelta.experiment import auto
    from kdelta.spec import counted

    free = replace(args, cases=())
    each = len(kernels) * (2 if args.memcg else 1)

    plain = replace(free, memcg=False)
    candidates, workloads = reach.candidates(plain), common.load_workloads(args.folders)
    mine = given(args)
    programs = counted.programs((*mine, *candidates), workloads)

    def cost_s(row: Row) -> float:
        times_s = 20 * each * _TIMED_CASE_S
        return times_s * args.timed + counts_s(row, each, row.case in programs) * (args.exact or not args.timed)

    cases, looked = auto.choose(
        kernels,
        specs,
        auto.Asked(
            cases=candidates,
            given=mine,
            usual=replace(plain, suites=(), workloads=()).chosen(),
            workloads=workloads,
            folders=args.folders,
            machine=args.options(),
            cost_s=cost_s,
            left_s=lambda: _BUDGET_S if (left_s := budget.left_s()) is None else left_s,
            over=budget.map_is_over,
            controls=args.all_cases,
            memcg=args.memcg,
        ),
        progress,
    )
    return common.in_groups(cases, args.memcg), looked
