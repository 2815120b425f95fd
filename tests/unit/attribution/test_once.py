# SPDX-License-Identifier: GPL-2.0-or-later
"""What is worked out of a profile is kept as long as it lives, and no longer."""

from __future__ import annotations

import gc

from kdelta.attribution.once import once
from kdelta.model import Profile
from unit.attribution import counts


def test_each_value_is_made_once_and_goes_with_its_profile() -> None:
    made: list[tuple[int, int]] = []

    @once
    def scaled(profile: Profile, factor: int = 1) -> int:
        made.append((profile.total[0], factor))
        return profile.total[0] * factor

    one, two = counts.profile({"read": 7}), counts.profile({"read": 7})
    assert [scaled(one), scaled(one), scaled(one, 2), scaled(two), scaled(one, 2)] == [7, 7, 14, 7, 14]
    assert made == [(7, 1), (7, 2), (7, 1)]
    del one
    gc.collect()
    again = [counts.profile({"read": number}) for number in range(50)]  # one of them may lie where it lay
    assert [scaled(profile) for profile in again] == list(range(50))
