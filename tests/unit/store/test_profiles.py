# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of all cases at once."""

from __future__ import annotations

from kdelta.model import Case, Profile
from kdelta.store.store import Store
from unit.store.store_builders import VECTOR, boot, experiment, run


def test_runs_that_did_the_same_have_one_profile_of_every_case(store: Store) -> None:
    store.create(experiment(cases=(Case(workload="pidfd_open"), Case(workload="pipe"))))
    one, other = (Profile(ops=1, functions={name: VECTOR}, total=VECTOR) for name in ("read", "write"))
    for block, profile in enumerate((one, other, one)):
        store.save_boot("first", boot(block, 0, runs=(run(0, profile=profile), run(1, profile=other))))
    found = store.all_profiles("first")
    assert found == {case: store.profiles("first", case) for case in (0, 1)}
    assert [row.profile for row in found[0]] == [one, other, one]
    assert found[0][0].profile is found[0][2].profile and found[0][1].profile is found[1][0].profile
