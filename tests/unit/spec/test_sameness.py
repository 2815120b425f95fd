# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a case is still the one that was mapped."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.model import Case
from kdelta.spec.sameness import digest
from kdelta.spec.workloads import catalogue


def test_a_program_is_the_same_with_more_operations_and_another_with_other_words() -> None:
    workload = catalogue(())["stress-ng/pipe"]
    assert workload.counted is not None
    case = Case(workload=workload.name)
    more = replace(workload, counted=replace(workload.counted, operations=20_000))
    other = replace(workload, counted=replace(workload.counted, run="stress-ng --dir 1 --dir-ops {operations}"))
    assert digest(workload, case) == digest(more, case) != digest(other, case)
