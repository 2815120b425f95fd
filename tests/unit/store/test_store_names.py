# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment may be called, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import pytest

from kdelta.errors import UserError
from kdelta.store.store import Store
from unit.store.store_builders import experiment


def test_an_experiment_is_found_by_the_four_digits_at_its_end(store: Store) -> None:
    """docs/reference/store.md had ``kdelta history delete 7c1f``, which was not in the store."""
    for name in ("20261127-161818-7c1f", "20261127-161904-7c1f", "20261127-161948-2026"):
        store.create(experiment(name))
    with pytest.raises(UserError, match="is ambiguous: 20261127-161818-7c1f, 20261127-161904-7c1f, 20261127-161948"):
        store.experiment("2026")  # beginnings win
    with pytest.raises(UserError, match="is ambiguous: 20261127-161818-7c1f, 20261127-161904-7c1f"):
        store.experiment("7c1f")
    store.delete("20261127-161818-7c1f")
    assert store.experiment("7c1f").id == "20261127-161904-7c1f"
    for name in ("c1f", "-7c1f", "%c1f", "_c1f"):
        with pytest.raises(UserError, match="is not in the store"):
            store.experiment(name)
