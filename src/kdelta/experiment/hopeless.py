# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases that a kernel need not be asked again: one that never ends, or that it lacks, is so under every seed.

Counts of a case are judged over all planned seeds, so one that is missing already leaves no verdict. A program that
never ends would else cost its time limit under each seed. One that fails may do so under one seed alone, or on one
kernel: it is asked no more once it has failed on all of them, twice or more, and said the same each time.
"""

from __future__ import annotations

from threading import Lock

from msgspec.structs import replace

from kdelta.experiment import schedule
from kdelta.experiment.measure import Measuring
from kdelta.experiment.work import Work
from kdelta.guest.protocol import Done
from kdelta.machine.boot import ENDED_INSIDE, RawBoot
from kdelta.model import Mitigations, PlannedBoot, RunResult

_FOR_GOOD = ("hung", "unsupported")
_FAILED_LEAST = 2  # boots, of one kernel or of several

Runs = dict[int, RunResult]
Side = tuple[int, Mitigations]


class Remembering:
    """The exact boots of ``kind`` without the cases that hung, or were unsupported, in an earlier one of the kernel.

    Nor those that failed on every kernel, for one reason. All are
    ended in the same way, for the same reason, and stored so with each boot that left them out.
    """

    def __init__(self, kind: Measuring) -> None:
        self.kind = kind
        self._ended: dict[Side, Runs] = {}
        self._sides = {(plan.kernel, plan.mitigations) for plan in schedule.block(kind.experiment, 0)}
        self._others: dict[int, list[tuple[Side, RunResult]]] = {}  # by case: how it ended else
        self._left_out: dict[tuple[int, int], Runs] = {}  # by block and slot
        self._lock = Lock()  # several boots run at once

    def work(self, plan: PlannedBoot) -> Work | str:
        """What the planned boot does, or why nothing of it is left."""
        cases = plan.cases or tuple(range(len(self.kind.experiment.cases)))
        with self._lock:
            ended = self._failed_alike() | self._ended.get((plan.kernel, plan.mitigations), {})
            out = {case: ended[case] for case in cases if case in ended}
            self._left_out[plan.block, plan.slot] = out
        if len(out) == len(cases):
            first = out[cases[0]]
            return f"not booted: under an earlier seed {first.state}: {first.why}"
        return self.kind.work(_without(plan, cases, out))

    def runs(self, plan: PlannedBoot, raw: RawBoot) -> tuple[RunResult, ...]:
        """How each case ended: here, or in the boot after which it was left out."""
        cases = plan.cases or tuple(range(len(self.kind.experiment.cases)))
        with self._lock:
            out = self._left_out.get((plan.block, plan.slot), {})
        found = self.kind.runs(_without(plan, cases, out), raw)
        with self._lock:
            mine = self._ended.setdefault((plan.kernel, plan.mitigations), {})
            mine |= {run.case: run for run in found if run.state in _FOR_GOOD}
            for run in found:
                if run.state not in _FOR_GOOD:
                    side = plan.kernel, plan.mitigations
                    self._others.setdefault(run.case, []).append((side, self._as_said(run, raw)))
        return tuple(sorted((*found, *out.values()), key=lambda run: run.case))

    def _failed_alike(self) -> Runs:
        """The cases that failed in each boot so far, on all kernels, for one reason."""
        alike: Runs = {}
        for case, ended in self._others.items():
            sides, runs = {side for side, _ in ended}, [run for _, run in ended]
            same = all((run.state, run.why) == ("failed", runs[0].why) for run in runs)
            if same and sides == self._sides and len(runs) >= _FAILED_LEAST:
                alike[case] = runs[0]
        return alike

    def _as_said(self, run: RunResult, raw: RawBoot) -> RunResult:
        """A failed ``run``, as lost where nothing in the guest says that it failed: the host may have had a part."""
        cases = len(self.kind.experiment.cases)
        said = {one.j % cases for one in raw.records if isinstance(one, Done) and one.state == "failed"}
        known = run.case in said or run.why.startswith(ENDED_INSIDE)
        return run if run.state != "failed" or known else replace(run, state="lost")


def _without(plan: PlannedBoot, cases: tuple[int, ...], out: Runs) -> PlannedBoot:
    return replace(plan, cases=tuple(case for case in cases if case not in out)) if out else plan
