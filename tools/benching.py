# SPDX-License-Identifier: GPL-2.0-or-later
"""Measurements of kdelta's own machinery for tools/bench.py: boots without the store."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from kdelta import paths, session
from kdelta.cli.progress import Reporter
from kdelta.kernel.resolve import resolve
from kdelta.machine import guests
from kdelta.model import Experiment, Kernel, Mode, PlannedBoot
from kdelta.runner import Job
from kdelta.spec import parse_kernel
from kdelta.store.store import Store
from kdelta.workloads import catalogue, parse_case

_VNG_LIMIT_S = 120


def _job(kernel: Kernel, mode: Mode, cases: tuple[str, ...], store: Store) -> Job:
    known = catalogue()
    chosen = tuple(case for text in cases for case in parse_case(text, known))
    experiment = Experiment(id="bench", mode=mode, kernels=(kernel,), cases=chosen, blocks=1)
    return session.prepare(experiment, known, store, Reporter(quiet=True))


def first_sample_s(name: str, rounds: int) -> float:
    """Median seconds from starting QEMU to the first sample, emulated, timed mode."""
    kernel = resolve(parse_kernel(name))
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/bench.sqlite") as store:
        job = _job(kernel, "timed", ("getppid",), store)
        found = []
        for index in range(rounds):
            raw = guests.run_timed(job.site, PlannedBoot(block=index, slot=0, kernel=0))
            found.append(raw.first_sample_s if raw.first_sample_s is not None else raw.elapsed_s)
    return sorted(found)[len(found) // 2]


def counting_ratios(name: str, rounds: int) -> list[float]:
    """Wall time of an exact run with the plugin over the same run without it, pair by pair."""
    kernel = resolve(parse_kernel(name))
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/bench.sqlite") as store:
        job = _job(kernel, "exact", ("path_lookup", "fork_vmas", "thread_spawn", "pipe"), store)
        bare = msgspec.structs.replace(job.site, plugin=None)
        plan = PlannedBoot(block=0, slot=0, kernel=0)
        guests.run_exact(job.site, plan)  # makes the snapshot
        ratios = []
        for _ in range(rounds):
            spans = []
            for site in (job.site, bare):
                start = time.perf_counter()
                guests.run_exact(site, plan)
                spans.append(time.perf_counter() - start)
            ratios.append(spans[0] / spans[1])
    return ratios


def virtme_ng_s(name: str, rounds: int) -> float | None:
    """Median seconds of virtme-ng from start to a command's output on the same kernel, None where it is not installed.

    virtme-ng needs the kernel's modules to mount its root: they are unpacked from the package beside the image.
    """
    program = shutil.which("vng")
    if program is None:
        return None
    kernel = resolve(parse_kernel(name))
    found = []
    with tempfile.TemporaryDirectory(dir=paths.cache_dir()) as folder:
        image = Path(folder) / "bzImage"
        shutil.copy(kernel.image_path, image)
        argv = [program, "--run", str(image), "--disable-kvm", "--cpus", "1", "--memory", "1G", "--", "uname", "-r"]
        for _ in range(rounds):
            start = time.perf_counter()
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=_VNG_LIMIT_S, cwd=folder, env=os.environ, check=False
            )
            if kernel.release not in done.stdout:
                return None
            found.append(time.perf_counter() - start)
    return sorted(found)[len(found) // 2]
