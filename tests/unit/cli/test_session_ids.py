# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of one second on one store: each experiment has an id of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kdelta.cli import _session
from kdelta.experiment import templates
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
