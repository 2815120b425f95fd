# SPDX-License-Identifier: GPL-2.0-or-later
"""A session on the store: an id of its own for each experiment, and how one that ends early is gone on with."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kdelta.cli import _session
from kdelta.cli.progress import Reporter
from kdelta.errors import DiskFull, HostError
from kdelta.experiment import prepare, templates
from kdelta.store.store import Store
from unit.store.store_builders import experiment


def test_the_same_random_digits_in_one_second_are_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = iter(["78cc", "78cc", "78cc", "90aa"])
    assert templates.new_id.__defaults__ is not None
    monkeypatch.setattr(templates.new_id, "__defaults__", (*templates.new_id.__defaults__[:-1], lambda _: next(digits)))
    monkeypatch.setattr(_session, "now", lambda: datetime(2026, 11, 24, 11, 17, 17, tzinfo=UTC))
    with Store(f"sqlite:///{tmp_path}/kdelta.sqlite") as store:
        session = _session.Session(store, quiet=True)
        made = [session.begin(experiment(), 0).id for _ in range(2)]
        assert made == ["20261124-111717-78cc", "20261124-111717-90aa"]
        assert {row.id for row in store.experiments()} == set(made)


@pytest.mark.parametrize(
    "full", [DiskFull("store sqlite:////x.sqlite"), OSError(errno.ENOSPC, "No space left on device", "/cache/x")]
)
def test_a_disk_that_fills_amid_a_run_is_told_with_one_way_to_go_on(
    full: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``run the same command again; ...; continue with: kdelta resume`` were two, and the first begins anew."""

    def fill(*_: object, **__: object) -> None:
        raise full

    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path))
    monkeypatch.setattr(prepare, "prepare", fill)
    with Store(f"sqlite:///{tmp_path}/kdelta.sqlite") as store:
        session = _session.Session(store, quiet=True)
        made = session.begin(experiment(), 0)
        with pytest.raises(HostError) as told:
            session.run(made, Reporter(quiet=True))
    where = "store sqlite:////x.sqlite" if isinstance(full, DiskFull) else "/cache/x"
    kept = f"no boot was finished; continue with: kdelta resume {made.id}"
    assert str(told.value) == f"{where}: the disk is full: free some space; {kept}"
