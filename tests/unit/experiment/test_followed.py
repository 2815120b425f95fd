# SPDX-License-Identifier: GPL-2.0-or-later
"""Call stacks that are counted after the boot: kept beside its counts, and asked of a guest once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kdelta.cli.progress import Reporter
from kdelta.errors import HostError, UserError
from kdelta.experiment import followed
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment


def test_call_stacks_that_were_counted_later_lie_beside_the_counts(stored: Store) -> None:
    (before,) = stored.profiles("first", 0)
    stored.keep_stacks("first", (0, 0), 0, "0 0 0 [kernel]")
    (after,) = stored.profiles("first", 0)
    assert after.profile == replace(before.profile, stacks="0 0 0 [kernel]")
    assert stored.boot("first", 0, 0).runs[0].profile == after.profile
    with pytest.raises(HostError, match="block 0 slot 1 has no counts of this case"):
        stored.keep_stacks("first", (0, 1), 0, "")


def test_stacks_at_hand_are_not_counted_again(stored: Store) -> None:
    stored.keep_stacks("first", (0, 0), 0, "0 0 0 [kernel]")
    rows = stored.profiles("first", 0)
    with Reporter(quiet=True) as progress:
        found = followed.follow(stored, stored.experiment("first"), [(0, rows[0])], progress)
    assert found == {(0, 0, 0): rows[0].profile}


def test_a_kernel_that_is_gone_is_named(stored: Store) -> None:
    with Reporter(quiet=True) as progress, pytest.raises((UserError, HostError), match=r"\S"):
        rows = [(0, row) for row in stored.profiles("first", 0)]
        followed.follow(stored, stored.experiment("first"), rows, progress)
    assert not stored.profiles("first", 0)[0].profile.stacks


@pytest.fixture
def stored(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('store')}/kdelta.db")
    store.create(experiment())
    store.save_boot("first", boot(0, 0))
    return store
