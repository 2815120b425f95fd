# SPDX-License-Identifier: GPL-2.0-or-later
"""Timed effects of two experiments side by side; one that was measured the other way round is turned round."""

from __future__ import annotations

from typing import Any

import pytest

from kdelta.errors import UserError
from kdelta.model import Case, CellResult
from kdelta.results.agreement.common import Measured, shared
from kdelta.results.agreement.effects import effect_pairs
from kdelta.results.agreement.types import EffectPair
from kdelta.verdict.warnings import Zeros
from unit.results.test_explain import row
from unit.store.store_builders import experiment, kernel

OLD, NEW = kernel("6.1", image_sha256="a" * 64), kernel("7.0", image_sha256="b" * 64)
HERE = experiment(kernels=(OLD, NEW), cases=(Case(workload="pipe"),))
TURNED = experiment("second", kernels=(NEW, OLD), cases=(Case(workload="pipe"),))


def timed(baseline: str = "6.1", patched: str = "7.0", **more: Any) -> CellResult:
    fields: dict[str, Any] = {"effect_percent": 25.0, "interval_percent": (20.0, 30.0), "verdict": "regressed"}
    names = {"baseline_label": baseline, "patched_label": patched, "metric": "latency", "unit": "ns"}
    return row(case="pipe", **{**fields, **names, **more})


def pairs(here: CellResult, there: CellResult, other: Any = HERE) -> tuple[EffectPair, ...]:
    sides = [Measured(experiment=e, boots=(), numbers=(), rows=(r,)) for e, r in ((HERE, here), (other, there))]
    return effect_pairs(sides[0], sides[1], shared(HERE, other), all_metrics=False)


def test_intervals_overlap_or_lie_apart() -> None:
    (same,) = pairs(timed(), timed(interval_percent=(28.0, 40.0)))
    (apart,) = pairs(timed(), timed(interval_percent=(31.0, 40.0)))
    (none,) = pairs(timed(), timed(interval_percent=None))
    assert (same.call, apart.call, none.call) == ("overlap", "apart", "descriptive")


def test_an_effect_the_other_way_round_is_turned_round() -> None:
    back = timed("7.0", "6.1", effect_percent=-20.0, interval_percent=(-50.0, 0.0), verdict="improved", boots=(3, 4))
    (pair,) = pairs(timed(), back, TURNED)
    assert pair.reversed and pair.there.verdict == "regressed" and pair.there.boots == (4, 3)
    assert pair.there.effect_percent == pytest.approx(25.0)
    assert pair.there.interval_percent == pytest.approx((0.0, 100.0))


@pytest.mark.parametrize("more", [{"warnings": (Zeros(),)}, {"effect_percent": -100.0}])
def test_an_effect_that_is_no_ratio_cannot_be_turned(more: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"^--against: no effect in common"):
        pairs(timed(), timed("7.0", "6.1", **more), TURNED)


def test_what_does_not_decide_is_left_out() -> None:
    with pytest.raises(UserError, match=r"first compared 6\.1 with 7\.0"):
        pairs(timed(primary=False), timed(primary=False))
