# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's counts against QEMU's own instruction clock, where REP plays no part."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import msgspec
import pytest

from kdelta.attribution import profiles
from kdelta.cli.progress import Reporter
from kdelta.experiment import prepare
from kdelta.experiment.work import Work
from kdelta.guest import image
from kdelta.guest.jobs import case_jobs
from kdelta.guest.protocol import Repetition, Window
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.machine import boot
from kdelta.machine.options import GuestSpec
from kdelta.model import Effort, Experiment, PlannedBoot, plans
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue
from kdelta.store.store import Store


@pytest.mark.full
def test_instructions_agree_with_the_icount_clock_within_half_a_percent(tmp_path: Path, cache: Path) -> None:
    """With shift=0 an instruction takes one virtual ns, so a window's ns per operation are its instructions."""
    kernel = resolve(parse_kernel("debian:6.12/cloud"))
    cases = tuple(parse_case("getppid", catalogue()))
    experiment = Experiment(id="icount", mode="exact", kernels=(kernel,), cases=cases, blocks=1, plan=plans.Run())
    with Store(f"sqlite:///{tmp_path}/x.sqlite") as store, tempfile.TemporaryDirectory() as folder:
        job = prepare.prepare(experiment, store, Reporter(quiet=True))
        site, work = job.site, job.work(PlannedBoot(block=0, slot=0, kernel=0))
        assert isinstance(work, Work)
        qemu, data = site.qemus["x86_64"], work.data
        guest = GuestSpec(
            kernel=kernel,
            mode="exact",
            accel="tcg",
            options=experiment.machine,
            mitigations="default",
            qemu=qemu.path,
            qemu_version=qemu.version,
            folder=Path(folder),
            plugin=work.plugin,
        )
        exact = case_jobs(dict(enumerate(cases)), mode="exact", efforts={0: Effort()}, exact_ops={0: 4096}).text()
        counted = boot.run(guest, image.payload(site.programs["x86_64"], data, exact), 180)
        # No tick falls into windows this short that would not fall into intervals of the same length.
        effort = Effort(warmup_windows=4, windows=40, window_ms=4, latency_ops=0)
        timed = case_jobs(dict(enumerate(cases)), mode="timed", efforts={0: effort}, exact_ops={0: 1}).text()
        clocked = boot.run(
            msgspec.structs.replace(guest, plugin=None),
            image.payload(site.programs["x86_64"], data, timed),
            180,
        )
    assert (counted.state, clocked.state) == ("ok", "ok"), counted.why + clocked.why
    reps = {r.id: r.ops for r in counted.records if isinstance(r, Repetition)}
    found = {i.id: int(i.counts[:, 0].sum()) for i in profiles.read(counted.counts[0])}
    instructions = statistics.median(found[ident] / ops for ident, ops in reps.items())
    windows = [w.ns / w.ops for w in clocked.records if isinstance(w, Window) and not w.warm]
    assert abs(statistics.median(windows) / instructions - 1.0) < 0.005, (statistics.median(windows), instructions)
