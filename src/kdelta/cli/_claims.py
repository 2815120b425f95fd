# SPDX-License-Identifier: GPL-2.0-or-later
"""The claims of a recipe, measured and answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.model import Case, Experiment, Kernel, MachineOptions, Progress
    from kdelta.results.claims import Answer, Measured
    from kdelta.spec.recipes import Claim, Recipe


def measure(
    claims: Sequence[Claim],
    kernels: tuple[Kernel, ...],
    machine: MachineOptions,
    begin: Callable[[tuple[Case, ...]], Experiment],
    session: Session,
    progress: Progress,
) -> tuple[Experiment | None, list[Measured]]:
    """Run the cases that ``claims`` need in the experiment that ``begin`` makes of them, and read a figure for each."""
    from kdelta.results import answer, claim_figures
    from kdelta.spec import recipes

    gates = [_selftests(claim, kernels, machine, progress) if claim.selftests else None for claim in claims]
    of_claim = [recipes.cases_of(claim) for claim in claims]
    unique = {case.name: case for cases in of_claim for case in cases}
    if not unique:
        return None, [gate for gate in gates if gate is not None]
    experiment = begin(tuple(unique.values()))
    session.run(experiment, progress)
    result = answer.result(session.store, experiment.id)[0]
    return experiment, [
        gate or claim_figures.measured(claim, cases, result, session.store)
        for claim, cases, gate in zip(claims, of_claim, gates, strict=True)
    ]


def answers(recipe: Recipe, obstacles: Sequence[str], measured: Sequence[Measured]) -> tuple[Answer, ...]:
    """An answer for each claim: what kept it from being measured, else the judgement of the next figure."""
    from kdelta.results import claims

    figures = iter(measured)
    return tuple(
        claims.Answer(claim=claim, call="not measurable here", why=why)
        if why
        else claims.judge(claim, recipe, next(figures))
        for claim, why in zip(recipe.claims, obstacles, strict=True)
    )


def _selftests(claim: Claim, kernels: tuple[Kernel, ...], machine: MachineOptions, progress: Progress) -> Measured:
    """Whether the suites are worse on the patched kernel: 1, else 0."""
    from kdelta.experiment import selftests
    from kdelta.results.claims import Measured

    gate = selftests.gate(kernels, selftests.suites(claim.selftests), machine, progress)
    for note in gate.notes:
        progress.note(note)
    return Measured(before=0.0, after=float(bool(gate.failed)), unit="gates failed", why=gate.failed)
