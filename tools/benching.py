# SPDX-License-Identifier: GPL-2.0-or-later
"""Measurements of kdelta's own machinery for tools/bench.py: boots whose results nobody stores."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from kdelta.cli.progress import Reporter
from kdelta.experiment import prepare
from kdelta.experiment.boot_once import SETTLE_MS, boot_once
from kdelta.experiment.runner import Job
from kdelta.experiment.work import Site, Work
from kdelta.guest import image
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.machine import boot
from kdelta.machine.options import GuestSpec
from kdelta.model import Experiment, Kernel, Mode, PlannedBoot, plans
from kdelta.spec.cases import parse_case
from kdelta.spec.suites import suites
from kdelta.spec.workloads import catalogue
from kdelta.store.store import Store

_VNG_LIMIT_S = 120


def _job(kernel: Kernel, mode: Mode, cases: tuple[str, ...], store: Store) -> Job:
    known = catalogue()
    chosen = tuple(case for text in cases for case in parse_case(text, known))
    experiment = Experiment(id="bench", mode=mode, kernels=(kernel,), cases=chosen, blocks=1, plan=plans.Run())
    store.create(experiment)
    return prepare.prepare(experiment, store, Reporter(quiet=True))


def first_sample_s(name: str, rounds: int) -> float:
    """Median seconds from starting QEMU to the first sample, emulated, timed mode."""
    kernel = resolve(parse_kernel(name))
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/bench.sqlite") as store:
        job = _job(kernel, "timed", ("getppid",), store)
        found = []
        for index in range(rounds):
            raw = boot_once(job.site, _work(job, index))
            found.append(raw.first_sample_s if raw.first_sample_s is not None else raw.elapsed_s)
    return sorted(found)[len(found) // 2]


def _work(job: Job, block: int = 0) -> Work:
    work = job.work(PlannedBoot(block=block, slot=0, kernel=0))
    assert isinstance(work, Work)
    return work


def counting_ratios(name: str, rounds: int) -> list[float]:
    """Wall time of a whole exact run, boot included, with the plugin over the same without it, pair by pair."""
    kernel = resolve(parse_kernel(name))
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/bench.sqlite") as store:
        job = _job(kernel, "exact", suites()["patches"].cases, store)
        work = _work(job)
        ratios = []
        for _ in range(rounds):
            spans = [_cold_s(job.site, work, plugin) for plugin in (work.plugin, None)]
            ratios.append(spans[0] / spans[1])
    return ratios


def _cold_s(site: Site, work: Work, plugin: Path | None) -> float:
    """Seconds of one exact guest from power-on to its end."""
    qemu = site.qemus[work.kernel.arch]
    with tempfile.TemporaryDirectory() as folder:
        guest = GuestSpec(
            kernel=work.kernel,
            mode="exact",
            accel="tcg",
            options=site.options,
            mitigations="default",
            qemu=qemu.path,
            qemu_version=qemu.version,
            folder=Path(folder),
            plugin=plugin,
        )
        payload = image.payload(site.programs[work.kernel.arch], work.data, work.jobs.text(settle_ms=SETTLE_MS))
        start = time.perf_counter()
        boot.run(guest, payload, 300)
        return time.perf_counter() - start


def virtme_ng_s(release: str, rounds: int) -> float | None:
    """Median seconds of virtme-ng from start to a command's output, emulated; None where it cannot run here.

    It needs virtme-run and busybox, and the kernel installed with its modules, to mount the host's root.
    """
    program = shutil.which("virtme-run")
    if program is None or not Path(f"/lib/modules/{release}").is_dir():
        return None
    argv = [program, "--installed-kernel", release, "--mods=auto", "--disable-kvm", "--memory", "1G"]
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        done = subprocess.run(
            [*argv, "--script-sh", "uname -r"], capture_output=True, text=True, timeout=_VNG_LIMIT_S, check=False
        )
        if release not in done.stdout:
            return None
        found.append(time.perf_counter() - start)
    return sorted(found)[len(found) // 2]


def installed() -> str | None:
    """The release of an installed kernel with image and modules, the newest by name."""
    images = sorted(Path("/boot").glob("vmlinuz-*"))
    releases = [p.name.removeprefix("vmlinuz-") for p in images if Path(f"/lib/modules/{p.name[8:]}").is_dir()]
    return releases[-1] if releases else None
