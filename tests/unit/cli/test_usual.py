# SPDX-License-Identifier: GPL-2.0-or-later
"""How long boots are expected to take."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.cli import _usual
from kdelta.errors import UnreadableError
from kdelta.model import Case, Experiment
from kdelta.store.store import Store
from unit.serve.serve_store import boot, experiment

KERNELS = ("6.12", "7.0")


def _cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(workload="pidfd_open", label=name) for name in names)


def _measured(store: Store, day: int, cases: tuple[Case, ...], elapsed_s: float) -> None:
    name = f"2026010{day}-000000-0000"
    store.create(experiment(name, KERNELS, cases=cases, created_at=f"2026-01-0{day}T00:00:00+00:00"))
    for block, slot in ((0, 0), (0, 1), (1, 0), (1, 1)):
        store.save_boot(name, boot(block, slot, cases=len(cases), elapsed_s=elapsed_s))


def _asked(*names: str) -> Experiment:
    return experiment("20260109-000000-0000", KERNELS, cases=_cases(*names))


def test_a_boot_is_expected_to_take_what_its_cases_took_here_last(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/kdelta.sqlite") as store:
        guessed_s = _usual.boot_s(store, _asked("fork"), 1)
        assert guessed_s is not None and 0 < guessed_s < 5
        _measured(store, 1, _cases("fork", "pipe"), 400.0)
        _measured(store, 2, _cases("fork"), 40.0)
        _measured(store, 3, _cases("getpid"), 0.1)
        assert _usual.boot_s(store, _asked("fork"), 1) == 40.0, "the case, not what was measured last"
        assert _usual.boot_s(store, _asked("fork", "pipe", "getpid"), 2) == pytest.approx((40 + 200 + 0.1) / 2)
        several = replace(_asked("fork"), machine=replace(_asked("fork").machine, smp=4))
        assert _usual.boot_s(store, several, 1) is None, "ten boots of two CPUs were about 1 s, by one of a system call"


def test_a_damaged_experiment_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that could not be read ended each comparison after it, of whatever kernels."""
    with Store(f"sqlite:///{tmp_path}/kdelta.sqlite") as store:
        _measured(store, 1, _cases("fork"), 40.0)
        _measured(store, 2, _cases("fork"), 60.0)
        read = store.experiment

        def damaged(name: str) -> Experiment:
            if name.startswith("20260102"):
                raise UnreadableError(f"experiment {name}: damaged in the store")
            return read(name)

        monkeypatch.setattr(store, "experiment", damaged)
        assert _usual.boot_s(store, _asked("fork"), 1) == 40.0


def test_of_a_new_program_nothing_is_promised(tmp_path: Path) -> None:
    """It is packed and guests boot with it first: ten boots of 0.5 s were about 2 s left, and took 15 s."""
    program = (Case(workload="program", label="ls"),)
    with Store(f"sqlite:///{tmp_path}/kdelta.sqlite") as store:
        _measured(store, 1, _cases("getpid"), 0.4)
        assert _usual.boot_s(store, replace(_asked(), cases=program), 1) is None
        _measured(store, 2, program, 0.6)
        assert _usual.boot_s(store, replace(_asked(), cases=program), 1) == 0.6


def test_a_case_that_is_new_is_none_of_the_cheap_ones(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/kdelta.sqlite") as store:
        guessed_s = _usual.boot_s(store, _asked("fork"), 1)
        _measured(store, 1, _cases("getpid"), 0.01)
        assert _usual.boot_s(store, _asked("fork"), 1) == guessed_s, "five boots of 4 s each were about 1 s"
