# SPDX-License-Identifier: GPL-2.0-or-later
"""What stands beside a table of counts: what string instructions move, which counts of instructions hide."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.model import ExperimentResult
from kdelta.report import sections
from kdelta.report.view import build
from unit.report.report_samples import exact, experiment


def test_of_one_kernel_no_rep_bytes_changed() -> None:
    """``kdelta run`` told of some cases that their REP bytes "changed by less than 1 %": from none to theirs."""
    one = replace(exact()[0].results[1], patched_label="", patched=None, verdict=None, effect_percent=None)
    much = replace(one, baseline=3000.0, extra={"rep_bytes_baseline": 512.0})
    little = replace(one, case="other", baseline=3000.0, extra={"rep_bytes_baseline": 36.0})
    found = ExperimentResult(experiment=experiment("6.12", mode="exact"), results=(much, little))
    told = sections.beside_counts(build(found))
    assert [line.partition(": ")[2] or line for line in told] == [
        "REP bytes: 6.12 512.0 B",
        "REP bytes of 1 other case are less than 1 % of the instructions (--causes)",
    ]
