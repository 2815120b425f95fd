# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment that was imported becomes the user's own: --kernel and --trust of kdelta resume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdelta.cli import _kernels
from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment, Progress
    from kdelta.store.store import Store


def vouched(store: Store, found: Experiment, kernels: tuple[str, ...], trust: bool, progress: Progress) -> Experiment:
    """The experiment, with ``--kernel`` or ``--trust`` taken as the user's own from now on.

    Raises:
        UserError: it was imported and neither is given, or a kernel is not one of its.
    """
    from kdelta.experiment import imported

    if kernels and trust:
        raise UserError("--kernel and --trust exclude each other: own kernels, or all as it was imported")
    if not found.imported:
        if kernels or trust:
            raise UserError(f"experiment {found.id} is your own: leave out {'--kernel' if kernels else '--trust'}")
        return found
    if trust:
        return store.vouch(found.id)
    if not kernels:
        imported.refuse(found)
    specs = _kernels.named(kernels)
    if bare := [spec.text for spec in specs if not spec.label]:
        raise UserError(f"--kernel {bare[0]}: say which kernel of the experiment it is, as in LABEL={bare[0]}")
    own = _kernels.fetched(specs, progress)
    return store.vouch(found.id, lambda stored: imported.with_own(stored, own))
