# SPDX-License-Identifier: GPL-2.0-or-later
"""What is not asked of a kernel again: cases that hung or are unsupported, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.attribution.exact import Names
from kdelta.experiment import measure, templates
from kdelta.experiment.hopeless import Remembering
from kdelta.experiment.work import Work
from kdelta.guest.protocol import Done
from kdelta.machine.boot import ENDED_INSIDE, RawBoot
from kdelta.model import Kernel, PlannedBoot
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue

KERNELS = tuple(Kernel(label=x, spec=x, release=x, image_path="/i", image_sha256=x) for x in "ab")
RAW = RawBoot(
    argv=(), state="ok", why="", records=(), console=b"", stream=b"", counts=(), elapsed_s=1.0, first_sample_s=None,
    qemu_log="",
)  # fmt: skip


@pytest.fixture
def boots() -> Remembering:
    known = catalogue()
    cases = tuple(case for text in ("pipe", "pidfd_open", "fork_vmas") for case in parse_case(text, known))
    experiment = templates.run(templates.Asked(cases=cases), KERNELS, "exact", 5)
    return Remembering(measure.measuring(experiment, known, lambda _: Names(), Path("/plugin.so")))


def plan(seed: int, kernel: int = 0, cases: tuple[int, ...] = ()) -> PlannedBoot:
    return PlannedBoot(block=seed, slot=kernel, kernel=kernel, cases=cases)


def names(work: Work | str) -> list[str]:
    assert isinstance(work, Work)
    return [line.split()[2] for line in work.jobs.lines if line.startswith("job")]


def said(*states: tuple[int, str]) -> RawBoot:
    return replace(RAW, records=tuple(Done(j=job, state=state, why=f"why {job}") for job, state in states))  # type: ignore[arg-type]


def test_a_case_that_hung_or_is_unsupported_is_asked_once_of_each_kernel(boots: Remembering) -> None:
    assert names(boots.work(plan(0))) == ["pipe", "pidfd_open", "fork_vmas"]
    ended = {1: ("hung", "not at its end after 5 s (--limit)")}
    boots.runs(plan(0), replace(said((0, "unsupported"), (2, "failed")), ended=ended))
    assert names(boots.work(plan(1))) == ["fork_vmas"], "one that failed may do better"
    runs = boots.runs(plan(1), said((2, "failed")))
    assert [(run.case, run.state) for run in runs] == [(0, "unsupported"), (1, "hung"), (2, "failed")]
    assert runs[1].why == "not at its end after 5 s (--limit)"
    assert names(boots.work(plan(1, kernel=1))) == ["pipe", "pidfd_open", "fork_vmas"], "another kernel"


def test_where_nothing_is_left_nothing_is_booted(boots: Remembering) -> None:
    boots.work(plan(0, cases=(0,)))
    boots.runs(plan(0, cases=(0,)), said((0, "unsupported")))
    assert boots.work(plan(1, cases=(0,))) == "not booted: under an earlier seed unsupported: why 0"
    assert names(boots.work(plan(1, cases=(0, 1)))) == ["pidfd_open"]


def test_a_boot_that_ran_at_the_same_time_tells_what_it_ran_itself(boots: Remembering) -> None:
    for seed in (0, 1):
        boots.work(plan(seed))
    boots.runs(plan(0), said((0, "unsupported"), (1, "failed"), (2, "failed")))
    late = boots.runs(plan(1), said((0, "failed"), (1, "failed"), (2, "failed")))
    assert [run.state for run in late] == ["failed"] * 3


def test_a_case_that_fails_alike_on_all_kernels_is_asked_no_more(boots: Remembering) -> None:
    """A misspelt option was booted under five seeds of each kernel before it was told."""
    boots.work(plan(0))
    boots.runs(plan(0), said((0, "failed"), (1, "failed"), (2, "failed")))
    assert names(boots.work(plan(1))) == ["pipe", "pidfd_open", "fork_vmas"], "the other kernel may do better"
    boots.runs(plan(0, kernel=1), said((0, "failed"), (1, "ok"), (2, "hung")))
    assert names(boots.work(plan(1))) == ["pidfd_open", "fork_vmas"]
    runs = boots.runs(plan(1), said((1, "failed"), (2, "failed")))
    assert [(run.case, run.state, run.why) for run in runs[:1]] == [(0, "failed", "why 0")]


@pytest.mark.parametrize(("why", "left"), [(f"{ENDED_INSIDE} (reboot: Power down)", ""), ("QEMU was killed", "pipe")])
def test_a_case_that_ends_each_guest_is_asked_no_more(boots: Remembering, why: str, left: str) -> None:
    """A program that powers off was booted under all seeds; a guest that its host ended may do better."""
    ended = replace(RAW, ended={0: ("failed", why)})
    for kernel in (0, 1):
        boots.runs(plan(0, kernel=kernel, cases=(0,)), ended)
    found = boots.work(plan(1, cases=(0,)))
    assert ("" if isinstance(found, str) else names(found)[0]) == left


def test_what_fails_for_several_reasons_is_asked_again(boots: Remembering) -> None:
    for seed, why in enumerate(("one", "one", "another")):
        boots.work(plan(seed))
        boots.runs(plan(seed), replace(RAW, records=(Done(j=0, state="failed", why=why),)))
    assert "pipe" in names(boots.work(plan(3)))
