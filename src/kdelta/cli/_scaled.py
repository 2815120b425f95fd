# SPDX-License-Identifier: GPL-2.0-or-later
"""The experiments of one scaling, of which each has another machine: the same command goes on with those that it began."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from kdelta.cli import common
from kdelta.errors import UnreadableError

if TYPE_CHECKING:
    from kdelta.model import Experiment
    from kdelta.store.store import Store

_NEWEST = 100  # experiments that are looked through


def begun(store: Store, wanted: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """Of the ``wanted`` templates the stored experiments of the first ones; () where the last such scaling is whole.

    Own workloads may be others by now: of these all is made anew.
    """
    if not wanted or wanted[0].folders:
        return ()
    line = common.command_line()
    rows = [row for row in store.experiments(limit=_NEWEST) if row.command == line][: len(wanted)]
    found: list[Experiment] = []
    for row in rows:  # the newest first
        try:
            found.insert(0, store.experiment(row.id))
        except UnreadableError:
            return ()
        if _is_of(found[0], wanted[0]):
            break
    pairs = list(takewhile(lambda pair: _is_of(*pair), zip(found, wanted, strict=False)))
    whole = len(found) == len(wanted) and rows[0].status == "complete"
    return tuple(found) if found and len(pairs) == len(found) and not whole else ()


def _is_of(experiment: Experiment, template: Experiment) -> bool:
    """Whether ``experiment`` was made from what is the same as ``template``."""
    same = all(
        getattr(experiment, name) == getattr(template, name)
        for name in ("mode", "cases", "machine", "effort", "blocks", "looks", "mitigations")
    )
    kernels = [[(one.label, one.image_sha256, one.cmdline) for one in each.kernels] for each in (experiment, template)]
    return same and kernels[0] == kernels[1] and not experiment.imported
