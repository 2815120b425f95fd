# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment left undecided, asked again with fresh boots.

The boots at hand have spent their plan's error, and going on until something is significant is no test. So the cases
that are inconclusive get an experiment of their own, as large as their spread asks for, judged by its own boots alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.experiment import templates
from kdelta.model import Annotations, CellResult, Experiment, Progress, plans
from kdelta.results import answer
from kdelta.store.store import Store
from kdelta.verdict import fresh
from kdelta.verdict.warnings import ByClockAlone, Deferred, Placed, Waited

MOST_BOOTS = 400

# Of programs: why their counts decide nothing, whatever is booted.
_NEVER = (
    (Waited, "what the kernel does while it waits moves its counts as much; compare with --timed"),
    (
        Deferred,
        "most of the change is of what the kernel does later, or no more than what it does in bulk; "
        "compare with --timed",
    ),
    (ByClockAlone, "the program runs until the clock says so; give it a fixed number of operations"),
)


def can_follow(experiment: Experiment) -> bool:
    """Whether what ``experiment`` left undecided may be asked again: a comparison's cells."""
    return isinstance(experiment.plan, plans.Compare | plans.Check | plans.Scale) and len(experiment.kernels) > 1


def undecided(results: Sequence[CellResult]) -> tuple[CellResult, ...]:
    """The primary rows that are inconclusive and say how many boots would decide them."""
    return tuple(row for row in results if row.primary and row.verdict == "inconclusive" and row.boots_needed)


def follow_up(experiment: Experiment, results: Sequence[CellResult]) -> Experiment | None:
    """A template for the experiment that decides what ``experiment`` did not; None where nothing is left to decide so.

    It has the undecided cases, the baseline and the undecided kernels, and as many boots per kernel as the neediest
    cell asks for. Cells that ask for more than MOST_BOOTS are left out.
    """
    rows = [row for row in undecided(results) if (row.boots_needed or 0) <= MOST_BOOTS]
    if not rows:
        return None
    cases = tuple(case for case in experiment.cases if case.name in {row.case for row in rows})
    labels = {row.patched_label for row in rows}
    kernels = (experiment.kernels[0], *(kernel for kernel in experiment.kernels[1:] if kernel.label in labels))
    cells = len(cases) * (len(kernels) - 1) * len(experiment.mitigations)
    boots = max(fresh.least(cells), *(row.boots_needed or 0 for row in rows))
    return replace(
        experiment,
        kernels=kernels,
        cases=cases,
        blocks=boots,
        looks=fresh.looks_of(experiment.mode, boots),
        effort=replace(experiment.effort, seeds=boots) if experiment.mode == "exact" else experiment.effort,
        precision_percent=None,
        plan=plans.Compare(follows=experiment.id, counted=plans.counted_by(experiment.plan)),
        annotations=Annotations(),
    )


def begin(store: Store, asked: Experiment, progress: Progress, now: Callable[[], datetime]) -> Experiment:
    """The experiment that decides what ``asked`` left open: the one begun before, else a new one, stored.

    Raises:
        UserError: nothing is undecided, or blocks are still missing.
    """
    if begun := asked.annotations.followed_by:
        progress.note(f"continuing {begun}, which was started for this")
        return store.experiment(begun)
    blocks = 1 + max((block for block, _ in store.done(asked.id)), default=-1)
    results = answer.result(store, asked.id)[0].results
    if undecided(results) and blocks < asked.blocks:
        raise UserError(
            f"experiment {asked.id} has {blocks} of {asked.blocks} blocks: its own plan may still decide it; "
            f"continue with: kdelta resume {asked.id}"
        )
    template = follow_up(asked, results)
    if template is None and undecided(results):
        raise UserError(
            f"experiment {asked.id} needs more than {MOST_BOOTS} boots per kernel to be decided: this host is too "
            "noisy for so small an effect; count exactly (--exact), or measure on a quieter host or with KVM"
        )
    left = [row for row in results if row.primary and row.verdict == "inconclusive"]
    mixed = ", ".join(dict.fromkeys(row.case for row in left))
    if template is None and any(isinstance(warning, Placed) for row in left for warning in row.warnings):
        raise UserError(
            f"experiment {asked.id} has one boot of each kernel for all seeds of {mixed}, as an older kdelta made it; "
            f"now each seed has its own: measure it again with: {asked.command}"
        )
    why = next((why for kind, why in _NEVER if any(isinstance(w, kind) for row in left for w in row.warnings)), "")
    if template is None and why:
        raise UserError(f"experiment {asked.id}: no number of boots decides {mixed}, because {why}")
    if template is None and mixed:
        raise UserError(
            f"experiment {asked.id}: no number of boots decides {mixed}, because two accounts of the instructions "
            "disagree, as its report says; compare with --timed"
        )
    if template is None:
        raise UserError(f"experiment {asked.id} left nothing inconclusive: there is nothing to decide")
    template = replace(template, command=f"{asked.command} && kdelta resume last --decide")
    made = templates.created(template, asked.seed + 1 if asked.mode == "exact" else None, now, store.taken)
    store.create(made)
    store.annotate(asked.id, lambda known: replace(known, followed_by=made.id))
    names = ", ".join(case.name for case in made.cases)
    progress.note(f"experiment {made.id}: up to {made.blocks} fresh boots per kernel for {names}")
    return made
