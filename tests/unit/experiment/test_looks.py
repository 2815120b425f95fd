# SPDX-License-Identifier: GPL-2.0-or-later
"""A sequential look is decided once, by the runner, and stored; reports do not write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta import verdict
from kdelta.experiment import looks
from kdelta.model import Experiment, OpenCell
from kdelta.results import answer
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment, run

ASKED = experiment("asked", blocks=16, looks=(8, 16))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Eight blocks: pidfd_open is 20 % slower on the second kernel, pipe was never measured."""
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        opened.create(ASKED)
        for block in range(8):
            for slot in range(2):
                base = (500.0 + block) * (1.2 if slot else 1.0)
                runs = (
                    run(0, base, histograms={}),
                    run(1, state="unsupported", why="needs PIPE", series=(), histograms={}),
                )
                opened.save_boot("asked", boot(block, slot, runs=runs))
        yield opened


def test_a_look_is_stored_with_what_is_open_and_read_back_ever_after(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert looks.undecided(store, ASKED, 8) == ()
    (look,) = store.looks("asked")
    assert look.final and look.blocks == 8 and set(look.decided.values()) == {"regressed", "unsupported"}
    assert 0 < look.spent_alpha < 0.05
    monkeypatch.setattr(verdict, "open_cells", lambda *_: (OpenCell(0, "default", 0),))
    assert looks.undecided(store, ASKED, 8) == (), "alpha that is spent stays spent"


def test_a_report_makes_no_look(store: Store) -> None:
    answer.result(store, "asked")
    assert store.looks("asked") == []


def test_what_the_blocks_up_to_a_look_leave_open_is_booted_on(store: Store) -> None:
    other: Experiment = experiment("other", blocks=16, looks=(8, 16))
    store.create(other)
    for block in range(8):
        for slot in range(2):
            base = 500.0 + 40 * ((block * 7 + slot * 3) % 5)
            store.save_boot("other", boot(block, slot, base=base))
    still = tuple(OpenCell(case, "default", kernel) for case in (0, 1) for kernel in (0, 1))
    assert looks.undecided(store, other, 8) == still
    assert looks.undecided(store, other, 8) == still, "the stored look says the same"
    assert not store.looks("other")[0].final


def test_a_look_of_before_names_cases_whose_kernels_all_go_on(store: Store) -> None:
    store.save_look("asked", 16, {}, 0.01, {"open": [1]}, final=False)
    assert looks.undecided(store, ASKED, 16) == (OpenCell(1, "default", 0), OpenCell(1, "default", 1))
