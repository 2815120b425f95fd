# SPDX-License-Identifier: GPL-2.0-or-later
"""An earlier sweep that is to grow: kdelta sweep --add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdelta.errors import UserError

if TYPE_CHECKING:
    from kdelta.model import Experiment
    from kdelta.store.store import Store


def sweep(store: Store, name: str, *, timed: bool, named: bool) -> Experiment:
    """The plan of an earlier sweep; its boots are found again by what they are.

    Raises:
        UserError: no sweep, or a timed one: its blocks hold every version, so none can come later.
    """
    from kdelta.experiment import imported

    found = store.experiment(name)
    imported.refuse(found)  # before its kernels are read, and what failed to build is built again
    if not found.in_steps:
        raise UserError(f"--add {name}: experiment {found.id} is a {found.kind}, not a sweep")
    if found.mode != "exact" or timed:
        raise UserError(
            f"--add {name}: the blocks of a timed sweep hold every version, so none can be added later: "
            "start a new sweep with all of them"
        )
    if named:
        raise UserError("--add keeps the cases of the earlier sweep: leave out --case")
    return found
