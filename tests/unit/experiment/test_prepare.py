# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment made ready: which kind of boots, how many at once, what may be taken over. Nothing is booted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kdelta import digests
from kdelta.experiment import place, prepare, runner, survey, templates
from kdelta.experiment.runner import Job
from kdelta.experiment.templates import Asked
from kdelta.experiment.work import CannotPause, Work
from kdelta.kernel import naming
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.kernel.symbols import NoSymbols
from kdelta.machine import plugin, probe
from kdelta.machine.probe import Qemu
from kdelta.model import BootResult, Experiment, Kernel, MachineOptions, PlannedBoot, Quiet
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue
from kdelta.store.store import Store

IMAGE = Path(__file__)  # a real file, known by its content
KERNELS = tuple(
    Kernel(label=x, spec=x, release=x, image_path=str(IMAGE), image_sha256=digests.of_file(IMAGE)) for x in "ab"
)
PLACE = PlannedBoot(block=0, slot=0, kernel=0)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store, and a machine that has QEMU, no KVM, and programs that need no compiling."""
    for name in ("qemu", "plugin.so", "program"):
        (tmp_path / name).write_bytes(name.encode())
    qemu = Qemu(path=tmp_path / "qemu", version=(7, 2), text="7.2.22")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path))
    monkeypatch.setattr(probe, "find_qemu", lambda *_: qemu)
    monkeypatch.setattr(probe, "kvm_opens", lambda: False)
    monkeypatch.setattr(plugin, "build", lambda _cache: tmp_path / "plugin.so")
    monkeypatch.setattr(place, "programs_for", lambda *_: {"x86_64": tmp_path / "program"})
    monkeypatch.setattr(naming, "load", lambda _kernel: NoSymbols("none"))
    monkeypatch.setattr(naming, "can_ask", lambda _kernel: False)
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def asked(**more: object) -> Asked:
    return Asked(cases=tuple(parse_case("pipe", catalogue())), **more)  # type: ignore[arg-type]


def prepared(store: Store, experiment: Experiment, budget_s: float | None = None) -> Job:
    made = templates.created(experiment, 0, lambda: datetime.now(UTC))
    store.create(made)
    return prepare.prepare(made, store, Quiet(), time_budget_s=budget_s)


def test_counts_run_at_once_with_the_plugin_and_an_identity(store: Store) -> None:
    job = prepared(store, templates.run(asked(), KERNELS[:1], "exact", 3, reuse=True), 60.0)
    work = job.work(PLACE)
    assert isinstance(work, Work) and work.plugin is not None
    assert job.workers >= 1 and job.identity is not None and job.recall is not None
    assert len(job.identity(PLACE)) == 64 and job.time_budget_s == 60.0
    assert job.machine["accel"] == "tcg" and "7.2.22" in job.machine["qemu"]


def test_times_run_one_by_one_without(store: Store) -> None:
    job = prepared(store, templates.run(asked(), KERNELS[:1], "timed", 3), 60.0)
    work = job.work(PLACE)
    assert isinstance(work, Work) and work.plugin is None
    assert (job.workers, job.identity, job.recall, job.gaps, job.time_budget_s) == (1, None, None, False, 60.0)
    assert job.site.accel == "tcg" and not job.site.native


def test_the_running_machine_needs_no_qemu(store: Store) -> None:
    job = prepared(
        store, templates.run(asked(machine=MachineOptions(native=True)), [resolve(parse_kernel("running"))], "timed", 1)
    )
    assert job.site.native and job.site.qemus == {} and job.machine["accel"] == "native"


def test_a_sweep_has_gaps_and_a_trace_its_own_jobs(store: Store) -> None:
    assert prepared(store, templates.with_versions(
        templates.sweep(asked(), "timed", 8), KERNELS, (), (), command="", reuse=False
    )).gaps  # fmt: skip
    job = prepared(store, templates.trace(asked(), KERNELS, ("locks",), 64))
    work = job.work(PLACE)
    assert isinstance(work, Work) and any(line.startswith("trace ") for line in work.jobs.lines)
    held = prepared(store, templates.trace(asked(), KERNELS, (), 64))
    assert held.work(PLACE) == "no function names: none"


def test_kvm_is_tried_with_one_boot_without_a_job(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Work] = []

    def boot_once(_site: object, work: Work) -> object:
        tried.append(work)
        return type("Raw", (), {"state": "ok", "why": ""})

    monkeypatch.setattr(probe, "kvm_opens", lambda: True)
    monkeypatch.setattr(survey, "boot_once", boot_once)
    for _ in range(2):  # remembered
        ground = survey.survey(KERNELS, "auto", "", {"x86_64": Path("/p")})
        assert (ground.accel, ground.why) == ("kvm", "KVM")
    assert len(tried) == 1 and tried[0].jobs.lines == () and tried[0].kernel == KERNELS[0]


def test_where_a_kernel_cannot_be_paused_all_boots_are_made_again_cold(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, int, bool]] = []

    def boot(job: Job, plan: PlannedBoot) -> BootResult:
        cold = job.site.options.cold
        made.append((plan.block, plan.kernel, cold))
        if plan.block == 1 and plan.kernel == 1 and not cold:
            raise CannotPause(job.experiment.kernels[1])
        assert job.identity is not None
        return BootResult(plan=plan, state="ok", why="", machine={"identity": job.identity(plan)})

    ready = prepare.prepare
    limits: list[float | None] = []

    def again(*given: Any, time_budget_s: float | None = None) -> Job:
        limits.append(time_budget_s)
        return ready(*given, time_budget_s=time_budget_s)

    monkeypatch.setattr(runner, "boot", boot)
    monkeypatch.setattr(prepare, "prepare", again)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    job = prepared(store, templates.run(asked(), KERNELS, "exact", 2), 3600.0)
    before = job.identity(PLACE) if job.identity is not None else ""
    prepare.execute(job, store, Quiet(), lambda: 100.0 * len(made))
    assert limits[-1] == 3600.0 - 100.0 * sum(not cold for _, _, cold in made), "what the first guests took is spent"
    assert {(block, kernel) for block, kernel, cold in made if not cold} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert sorted((block, kernel) for block, kernel, cold in made if cold) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    stored = store.experiment(job.experiment.id)
    assert stored.machine.cold and len(store.done(stored.id)) == 4
    assert before not in {boot.machine["identity"] for boot in store.boots(stored.id)}
    del made[:]
    prepare.run(stored, store, Quiet())  # as a resume does
    assert made == []
