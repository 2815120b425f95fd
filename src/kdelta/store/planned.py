# SPDX-License-Identifier: GPL-2.0-or-later
"""How many boots a plan asks for in all, and how many of them its looks have made needless. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from kdelta.model import Experiment, OpenCell
from kdelta.store.rows import Look


def boots_planned(experiment: Experiment) -> int:
    """Every kernel and mitigations in every block."""
    return experiment.blocks * len(experiment.kernels) * len(experiment.mitigations)


def open_after(experiment: Experiment, payload: Mapping[str, Any]) -> tuple[OpenCell, ...]:
    """What a stored look left open; looks of before 2026-11 name cases only, whose kernels all go on.

    Raises:
        msgspec.ValidationError: it is no look's payload.
    """
    if "cells" in payload:
        return msgspec.convert(payload["cells"], tuple[OpenCell, ...])
    kernels = range(len(experiment.kernels))
    cases = msgspec.convert(payload.get("open", ()), tuple[int, ...])
    return tuple(OpenCell(case, m, k) for case in cases for m in experiment.mitigations for k in kernels)


def boots_spared(experiment: Experiment, looks: Sequence[Look]) -> int:
    """Planned boots that no look asked for: of kernels none of whose cells was open any more."""
    edges = sorted({*(look for look in experiment.looks if look < experiment.blocks), experiment.blocks})
    until = dict(pairwise(edges))  # the block that the boots after a look go to
    everything = len(experiment.kernels) * len(experiment.mitigations)
    spared = 0
    for look in looks:
        if look.blocks not in until:
            continue
        cells = open_after(experiment, look.payload)
        still = {(cell.kernel, cell.mitigations) for cell in cells if cell.kernel < len(experiment.kernels)}
        if not still:
            return spared + (experiment.blocks - look.blocks) * everything
        spared += (until[look.blocks] - look.blocks) * (everything - len(still))
    return spared
