# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kdelta.stats import estimators, register
from kdelta.stats.estimators import kbest, lkp


def boots(level: float, seed: int, n: int = 5, boot_sd: float = 0.01) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [level * np.exp(rng.normal(0, boot_sd)) * (1 + 0.02 * rng.exponential(1, 50)) for _ in range(n)]


def test_kbest_is_the_least_of_five_close_samples_as_in_lebench() -> None:
    assert kbest.kbest_of(np.array([5.0, 9.0, 9.1, 9.2, 9.3, 9.4, 30.0])) == 9.0
    assert kbest.kbest_of(np.array([7.0, 7.1, 7.2, 7.3, 7.4, 20.0])) == 7.0
    assert kbest.kbest_of(np.array([1.0, 2.0, 4.0])) == 4.0


@pytest.mark.parametrize("rule", estimators.names())
def test_each_rule_finds_a_large_change_in_its_direction(rule: str) -> None:
    a, b = boots(100, 1, n=10), boots(120, 2, n=10)
    assert estimators.estimate(rule, a, b).call == "regressed" and estimators.estimate(rule, b, a).call == "improved"
    assert estimators.estimate(rule, a, b, lower_is_better=False).call == "improved"
    assert estimators.estimate(rule, a, a).call == "none"


def test_lkp_needs_ranges_beyond_the_medians_and_more_than_one_percent() -> None:
    def runs(*values: float) -> list[np.ndarray]:
        return [np.array([v]) for v in values]

    assert lkp.lkp(runs(100, 101, 103), runs(102, 105, 106)).call == "regressed"
    assert lkp.lkp(runs(100, 101, 103), runs(100.9, 105, 106)).call == "none"
    assert lkp.lkp(runs(100, 100.1, 100.2), runs(100.5, 100.6, 100.7)).call == "none"


def test_pooled_rules_call_identical_kernels_different() -> None:
    wrong = dict.fromkeys(("benchstat", "fastpath"), 0)
    for seed in range(200):
        a, b = boots(100, 2 * seed, n=10), boots(100, 2 * seed + 1, n=10)
        for rule in ("benchstat", "fastpath"):
            wrong[rule] += estimators.estimate(rule, a, b).call != "none"
    assert wrong["benchstat"] > 100 and wrong["fastpath"] > 80


def test_marks_follow_the_better_direction() -> None:
    text = estimators.estimate("fastpath", boots(100, 1), boots(120, 2), lower_is_better=False).text
    assert text.startswith("(I) ")


def test_a_side_without_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="both sides"):
        estimators.estimate("lkp", [], boots(1, 1))


def test_an_estimator_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = """
from kdelta.stats.estimators._common import Boots, Estimate, Estimator, direction


def first_sample(baseline: Boots, patched: Boots) -> Estimate:
    a, b = float(baseline[0][0]), float(patched[0][0])
    return Estimate(direction(a, b, True), f"{a:g} -> {b:g}")


ESTIMATOR: Estimator = first_sample
"""
    (tmp_path / "first_sample.py").write_text(own)
    monkeypatch.setattr(estimators, "__path__", [*estimators.__path__, str(tmp_path)])
    monkeypatch.setattr(estimators, "names", lambda: (*register.names(), "first-sample"))
    assert estimators.estimate("first-sample", boots(100, 1), boots(200, 1)).call == "regressed"
    assert set(register.names()) >= {"kbest", "lkp", "fastpath", "benchstat", "hodges-lehmann"}
