# SPDX-License-Identifier: GPL-2.0-or-later
"""A finished calibration -> the noise floors that later timed verdicts on this host are judged by, stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np

from kdelta.errors import HostError
from kdelta.model import Experiment, Warn
from kdelta.results import floors
from kdelta.stats import design
from kdelta.stats.calibration import Calibration
from kdelta.store.store import Store


def conclude(store: Store, experiment: Experiment, now: Callable[[], datetime]) -> dict[str, Calibration]:
    """What the calibration says, by case; what of it is blessed is stored as floors.

    Raises:
        HostError: no case was measured in two complete blocks.
    """
    found = floors.calibrate(experiment, store, np.random.default_rng(experiment.seed))
    if not found:
        raise HostError("no case was measured in two complete blocks: see kdelta report " + experiment.id)
    stamp = now().isoformat(timespec="seconds")
    for floor in floors.floors(experiment, store.boots(experiment.id), found, stamp):
        store.save_floor(floor)
    return found


def busy(store: Store, experiment: Experiment) -> Warn | None:
    """That other programs ran beside the boots, where they did."""
    used = [boot.facts["other_cpus"] for boot in store.boots(experiment.id) if "other_cpus" in boot.facts]
    return design.busy(np.array(used, dtype=float))
