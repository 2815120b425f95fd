# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentence of a sweep, of other metrics than instructions and times."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.report.headline import of_sweeps
from unit.report.sweep_samples import sweep


def test_steps_of_transfers_are_more_and_fewer_transfers() -> None:
    _, detail = sweep()
    steps = replace(detail.sweeps[0], cell=replace(detail.sweeps[0].cell, metric="transfers"), unit="transfers/op")
    text = of_sweeps([("a", steps)], ["6.1", "7.3"], exact=True, unfinished=False).text
    assert text.startswith("2 steps over 2 kernels, 6.1 to 7.3, in 1 case: 1 to fewer transfers, 1 to more. ")
