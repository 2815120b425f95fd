# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import numpy as np
import pytest

from kdelta.stats import calibration, design, multiplicity, paired, tail, warnings


def test_sound_data_raises_a_design_warning_rarely() -> None:
    raised = np.zeros(3)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        d, first = rng.normal(0, 0.01, 20), np.tile([True, False], 10)
        raised += [
            design.drift(d) is not None, design.slot_effect(d, first) is not None, design.bistable(d) is not None
        ]  # fmt: skip
    assert (raised / 400 <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / 400)).all()


def test_each_fault_of_the_design_is_named() -> None:
    rng = np.random.default_rng(1)
    noise, first = rng.normal(0, 0.002, 20), np.tile([True, False], 10)
    found = [
        design.too_few(7, 8),
        design.unblocked(0, 10, 10),
        design.drift(noise + np.linspace(0, 0.05, 20)),
        design.slot_effect(noise + np.where(first, 0.01, -0.01), first),
        design.slot_effect(noise, np.ones(20, dtype=bool)),
        design.steal(np.array([0.0, 3.0])),
        design.busy(np.array([0.1, 0.9, 1.0])),
        design.frequency(np.array([2400.0, 2600.0])),
        design.temperature(np.array([45.0, 70.0])),
        design.bistable(noise + np.where(np.arange(20) % 3 == 0, 0.05, 0.0)),
    ]
    codes = [w.code for w in found if w is not None]
    assert codes == [
        "descriptive", "unblocked", "drift", "slot", "order", "steal", "busy", "frequency", "thermal", "bistable"
    ]  # fmt: skip


FOUR = np.arange(20) % 4
NAMES = ("a", "b", "c", "d")


def test_hosts_that_agree_are_rarely_told_apart_and_one_that_differs_is() -> None:
    alarms, hits = np.zeros(2), 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        d, heavy = rng.normal(0, 0.01, 20), 0.01 * rng.standard_t(3, 20)
        alarms += [design.hosts(x, FOUR, NAMES) is not None for x in (d, heavy)]
        hits += design.hosts(d + np.where(FOUR == 2, 0.03, 0.0), FOUR, NAMES) is not None
    assert (alarms / 400 <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / 400)).all() and hits / 400 > 0.8


def test_the_hosts_that_differ_are_named_and_few_blocks_tell_nothing() -> None:
    d = np.random.default_rng(3).normal(0, 0.001, 20) + np.where(FOUR == 2, 0.05, 0.0)
    found = design.hosts(d, FOUR, NAMES)
    assert isinstance(found, warnings.HostsDiffer) and found.high_host == "c" and 4.5 < found.high_percent < 5.5
    assert design.hosts(d[:12], FOUR[:12], NAMES) is None, "three blocks each"
    assert design.hosts(d, np.zeros(20, dtype=np.int64), ("a",)) is None
    assert design.hosts(np.ones(20), FOUR, NAMES) is None


def test_the_level_of_a_host_is_no_second_cluster_and_no_drift() -> None:
    rng = np.random.default_rng(4)
    host = np.arange(20) // 10
    levels = rng.normal(0, 0.002, 20) + np.where(host == 1, 0.5, 0.0)
    assert design.bistable(levels) is not None and design.drift(levels) is not None
    cleaned = design.without_hosts(levels, host)
    assert design.bistable(cleaned) is None and design.drift(cleaned) is None
    assert (design.without_hosts(levels, np.zeros(20, dtype=np.int64)) == levels).all()


def test_constant_and_missing_data_raise_nothing() -> None:
    none = np.zeros(0)
    assert design.drift(np.ones(20)) is None and design.bistable(np.ones(20)) is None
    assert design.steal(none) is None and design.busy(none) is None and design.busy(np.array([0.0, 0.1, 2.0])) is None
    assert design.frequency(none) is None and design.temperature(none) is None
    assert design.unblocked(3, 5, 5) is None and design.too_few(8, 8) is None


def test_a_quiet_host_is_blessed_and_its_figures_are_those_planted() -> None:
    rng = np.random.default_rng(2)
    first = np.tile([True, False], 20)
    levels = rng.normal(0, 0.01, 80)
    boots = [level + rng.normal(0, 0.02, 100) for level in levels]
    result = calibration.calibrate(rng.normal(0, 0.014, 40), first, boots, rng)
    assert result.blessed and not result.why and result.blocks == 40
    assert result.sd_pair_percent == pytest.approx(1.4, abs=0.4)
    assert result.floor_percent == pytest.approx(2.9 * result.sd_pair_percent / np.sqrt(40), rel=0.02)
    assert result.intra_boot_correlation == pytest.approx(0.2, abs=0.07)
    assert result.false_alarm_band[0] < 0.05 < result.false_alarm_band[1]


def test_a_host_is_refused_with_the_reason() -> None:
    rng = np.random.default_rng(3)
    first, noise = np.tile([True, False], 12), rng.normal(0, 0.01, 24)
    assert "12 blocks" in calibration.calibrate(noise[:12], first[:12], [], rng).why
    assert "identical kernels differ" in calibration.calibrate(noise + 0.03, first, [], rng).why
    slotted = calibration.calibrate(noise + np.where(first, 0.03, -0.03), first, [], rng)
    assert "second boot" in slotted.why and slotted.slot_effect_percent == pytest.approx(3.0, abs=1.0)
    with pytest.raises(ValueError, match="two blocks"):
        calibration.calibrate(noise[:1], first[:1], [], rng)


def test_holm_and_benjamini_hochberg_on_known_values() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert multiplicity.holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert multiplicity.benjamini_hochberg(p) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert multiplicity.holm([]).size == multiplicity.benjamini_hochberg([]).size == 0


def test_samples_needed_for_a_percentile() -> None:
    assert [tail.samples_needed(p) for p in (50, 90, 99, 99.9)] == [40, 200, 2000, 20000]
    with pytest.raises(ValueError, match="no number of samples"):
        tail.samples_needed(100)


def test_boots_needed_shrink_with_the_distance_to_resolve() -> None:
    known, guessed = (paired.pairs_needed(0.0141, 0.01, 0.01, pairs) for pairs in (10_000, 8))
    assert 17 <= known <= 20 < guessed, "METHOD's n for a known effect, more for one of eight pairs"
    assert paired.pairs_needed(0.0141, 0.005, 0.01, 1000) > paired.pairs_needed(0.0141, 0.0, 0.01, 1000)
    assert paired.pairs_needed(0.001, 0.03, 0.01, 8) == paired.pairs_needed(0.0, 0.0, 0.01, 8) == 8
    assert paired.pairs_needed(5.0, 0.0, 0.001, 10**12) == paired.MOST_PAIRS
    assert paired.detectable(0.0141, 20) == pytest.approx(0.00914, abs=1e-4)


def test_what_layouts_move_is_found_and_its_limit_covers_it() -> None:
    layout = np.arange(32) % 8
    found, covered = [], 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        d = rng.normal(0.05, 0.01, 32) + rng.normal(0, 0.02, 8)[layout]
        told = design.layouts(d, layout)
        assert isinstance(told, warnings.LayoutMoves) and told.layouts == 8
        found.append(told.percent**2)
        covered += told.at_most_percent >= 2.0
    assert np.mean(found) == pytest.approx(4.0, rel=0.15), "the variance between layouts, unbiased"
    assert covered / 300 == pytest.approx(0.95, abs=0.04)
    nothing = [design.layouts(np.random.default_rng(seed).normal(0, 0.01, 32), layout) for seed in range(200)]
    assert np.median([w.percent for w in nothing if isinstance(w, warnings.LayoutMoves)]) < 0.4


def test_layouts_of_one_block_each_tell_nothing() -> None:
    d = np.random.default_rng(1).normal(0, 0.01, 8)
    assert design.layouts(d, np.arange(8)) is None and design.layouts(d, np.zeros(8, dtype=np.int64)) is None
