# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``make bench`` measures of kdelta's own machinery still runs, on a store where nothing was calibrated."""

from __future__ import annotations

import pytest

import benching


def test_a_boot_gives_its_first_sample() -> None:
    assert benching.first_sample_s("debian:6.12/cloud", rounds=1) > 0


@pytest.mark.full
def test_counting_is_held_against_the_same_guest_without_the_plugin() -> None:
    (ratio,) = benching.counting_ratios("debian:6.12/cloud", rounds=1)
    assert 0.5 < ratio < 5, "both are whole runs of one guest; how much the plugin costs is make bench's to say"
