# SPDX-License-Identifier: GPL-2.0-or-later
"""What is offered after a report that leaves something open: the rest of its plan first, then fresh boots."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.cli import _offer
from unit.report.report_samples import timed


def test_a_plan_that_was_cut_is_gone_on_with_before_anything_is_decided_anew(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result, _ = timed()
    cut = replace(result, boots_done=5, boots_planned=9, boots_spared=0, decided=False)
    _offer.to_decide(cut)
    said = capsys.readouterr().err
    assert f"4 boots of the plan are left: kdelta resume {cut.experiment.id}\n" in said
    _offer.to_decide(replace(cut, boots_done=9))
    assert f"kdelta resume {cut.experiment.id} --decide\n" in capsys.readouterr().err
