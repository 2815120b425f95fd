# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that are forked from one that has rehearsed, against guests that are restored for one job and seed."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from kdelta.cli.progress import Reporter
from kdelta.experiment import boot_once as boots
from kdelta.experiment import prepare
from kdelta.experiment.boot_once import boot_once
from kdelta.experiment.forks import Forks
from kdelta.experiment.runner import execute
from kdelta.experiment.work import Work
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.machine import served
from kdelta.model import Experiment, PlannedBoot, Quiet, plans
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import catalogue
from kdelta.store.store import Store


def test_a_forked_guest_counts_what_one_restored_alone_counts_to_the_byte(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = resolve(parse_kernel("debian:7.0/cloud"))
    cases = tuple(case for name in ("syscalls/tcp_connect", "pipe") for case in parse_case(name, catalogue()))
    experiment = Experiment(id="forked", mode="exact", kernels=(kernel,), cases=cases, blocks=2, plan=plans.Run())
    with Store(f"sqlite:///{tmp_path}/x.sqlite") as store:
        job = prepare.prepare(experiment, store, Reporter(quiet=True))
        works = [job.work(PlannedBoot(block=seed, slot=0, kernel=0)) for seed in range(2)]
        counted: list[list[bytes]] = []
        (linked := tmp_path / "linked").symlink_to(job.site.scratch)  # as a cache on another disk is
        job.site.scratch.mkdir(parents=True, exist_ok=True)
        with Forks(9) as kept:
            forking = replace(job.site, forks=kept, scratch=linked)
            monkeypatch.setattr(boots, "_restored", None)  # nor is one restored alone where a forked one fails
            for work in works:
                assert isinstance(work, Work)
                raw = boot_once(forking, work)
                counted.append([bytes(file) for file in raw.counts])
        monkeypatch.undo()
        for work, forked in zip(works, counted, strict=True):
            assert isinstance(work, Work)
            for jobs, file in zip(work.jobs.apart().values(), forked, strict=True):
                alone = boot_once(job.site, replace(work, jobs=jobs))
                assert [bytes(one) for one in alone.counts] == [file]
        assert counted[0][0] != counted[1][0], "another seed is another guest"


def test_guests_that_are_not_forked_give_the_same_answer_and_it_is_said(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = Experiment(
        id="one", mode="exact", kernels=(resolve(parse_kernel("debian:7.0/cloud")),), blocks=2, plan=plans.Run(),
        cases=tuple(parse_case("syscalls/getpid", catalogue())),
    )  # fmt: skip
    found, heard = [], Heard()
    with Store(f"sqlite:///{tmp_path}/x.sqlite") as store:
        for name in ("forked", "not"):
            if name == "not":
                monkeypatch.setattr(served.Rehearsed, "run", _never)
            store.create(replace(experiment, id=name))
            execute(prepare.prepare(replace(experiment, id=name), store, heard), store, heard)
            found.append([(n.metric, n.value) for n in store.numbers(name)])
    assert found[0] == found[1] and found[0]
    assert [line for line in heard.notes if "not forked" in line] == [
        "guests that were not forked but restored one by one: 2 (QEMU was not forked); their counts are the same, and"
        " take longer"
    ]


def _never(self: served.Rehearsed, seed: int) -> NoReturn:
    raise served.NotForked("QEMU was not forked")


class Heard(Quiet):
    """What was worth telling."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)
