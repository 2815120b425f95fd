# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisection came to, as far as the store has it."""

from __future__ import annotations

from kdelta.errors import UserError
from kdelta.model import Culprit, Experiment
from kdelta.store.store import Store


def culprit(experiment: Experiment, store: Store) -> Culprit | None:
    """The commit that is compared with what lies before it; None of a search that goes on, or found no difference."""
    name = experiment.annotations.search.confirmation
    try:
        kernels = store.experiment(name).kernels if name else ()
    except UserError:  # it was deleted, or did not come with an imported search
        return None
    return Culprit(commit=kernels[-1].label, before=kernels[0].label, comparison=name) if len(kernels) > 1 else None
