# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of all cases at once."""

from __future__ import annotations

from msgspec.structs import replace

from kdelta.model import CallCount, Case, Profile
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


def test_costs_alone_are_what_explains_a_step(store: Store) -> None:
    store.create(experiment(cases=(Case(workload="pidfd_open"),)))
    call = CallCount(calls=1, instructions=7, rep_bytes=0)
    costs = Profile(ops=1, functions={"read": VECTOR}, total=VECTOR, calls="read lock", system_calls={"read": call})
    whole = replace(costs, data_lines={"read": 3}, code_lines={"read": 4}, stacks="0 0 0 [kernel]")
    for block, profile in enumerate((whole, costs)):
        store.save_boot("first", boot(block, 0, runs=(run(0, profile=profile),)))
    assert [row.profile for row in store.all_profiles("first", costs_alone=True)[0]] == [costs, costs]
    assert [row.profile for row in store.all_profiles("first")[0]] == [whole, costs]
