# SPDX-License-Identifier: GPL-2.0-or-later
"""What a boot does that counts the instructions in each mutex: it measures, and its plugin knows the lock sites."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import hold_sites, holds
from kdelta.experiment.measure import Measuring
from kdelta.experiment.trace import done
from kdelta.experiment.work import Work
from kdelta.guest import protocol
from kdelta.machine.boot import RawBoot
from kdelta.model import PlannedBoot, RunResult


class Holding(Struct, frozen=True, kw_only=True):
    """The boots of exact lock holds: as measured, and the plugin knows where each kernel takes mutexes (or why not)."""

    measured: Measuring
    sites: Mapping[int, holds.Sites | str]  # by kernel

    def work(self, plan: PlannedBoot) -> Work | str:
        """What the planned boot does, or why the kernel's locks are not known."""
        sites = self.sites[plan.kernel]
        if isinstance(sites, str):
            return sites
        return replace(self.measured.work(plan), hold_sites=sites.text().encode("ascii"))

    def runs(self, plan: PlannedBoot, raw: RawBoot) -> tuple[RunResult, ...]:
        """The instructions in each mutex, by case."""
        sites = self.sites[plan.kernel]
        if raw.state != "ok" or isinstance(sites, str):
            return ()
        found = (_hold_run(sites, raw, case) for case in range(len(self.measured.experiment.cases)))
        return tuple(run for run in found if run is not None)


def holding(measured: Measuring) -> Holding:
    """The boots of exact lock holds of what ``measured`` has."""
    kernels = enumerate(measured.experiment.kernels)
    return Holding(measured=measured, sites={index: hold_sites.of_kernel(kernel) for index, kernel in kernels})


def _hold_run(sites: holds.Sites, raw: RawBoot, case: int) -> RunResult | None:
    ended = done(raw.records).get(case)
    if ended is None:
        state, why = raw.end_of(case)
        return RunResult(case=case, state=state, why=why) if state != "ok" else None
    if ended.state != "ok":
        return RunResult(case=case, state=ended.state, why=ended.why)
    files = enumerate(raw.holds)
    every = {protocol.interval_of(n, nr): one for n, file in files for nr, one in holds.read(file).items()}
    repetitions = [r for r in raw.records if isinstance(r, protocol.Repetition) and r.j == case]
    missing = [r.r for r in repetitions if r.id not in every]
    if missing or not repetitions:
        return RunResult(case=case, state="failed", why=f"repetition {missing or 'none'} is not in the plugin's output")
    return RunResult(
        case=case,
        state="ok",
        facts={"ops": repetitions[0].ops, **holds.facts(sites, [every[r.id] for r in repetitions])},
    )
