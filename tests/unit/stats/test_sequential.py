# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import numpy as np
import pytest
import scipy

from kdelta.stats import paired, sequential
from kdelta.stats.boundaries import CHI, SHIPPED, T
from kdelta.stats.ladders import LADDERS

# Two- and one-sided nominal p of the 20-pair plan as METHOD gives them, from a simulation of its own.
PUBLISHED = ((0.0127, 0.0160, 0.0222, 0.0302), (0.0129, 0.0169, 0.0242, 0.0325))


@pytest.mark.parametrize("looks", list(SHIPPED))
def test_shipped_table_is_what_integration_gives(looks: tuple[int, ...]) -> None:
    for sides, shipped in zip((2, 1), SHIPPED[looks], strict=True):
        computed = sequential.nominal(looks, 0.05, sides)
        assert shipped == pytest.approx(computed, abs=1.1e-6)
        assert all(s <= c + 1e-12 for s, c in zip(shipped, computed, strict=True)), (
            "rounded so that alpha is not exceeded"
        )


@pytest.mark.parametrize("looks", [(8,), (8, 12), (8, 12, 16, 20)])
def test_plans_of_exact_sweeps_are_not_computed(looks: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    sequential.plan.cache_clear()
    monkeypatch.setattr(sequential, "nominal", pytest.fail)
    assert sequential.plan(looks).two_sided == SHIPPED[looks][0]


def test_shipped_quantiles_are_those_of_the_plans_and_as_scipy_gives_them() -> None:
    wanted = {(look - 1, p) for looks, (two, _) in SHIPPED.items() for look, p in zip(looks, two, strict=True)}
    assert wanted == set(T)
    assert {n for n, _ in wanted} == set(CHI)
    assert all(CHI[n] == scipy.special.chdtri(n, 0.8) for n in CHI)
    assert all(T[n, p] == -scipy.special.stdtrit(n, p / 2.0) for n, p in T)


def test_the_normal_distribution_without_scipy_is_scipys() -> None:
    z = np.linspace(-8.0, 8.0, 161)
    np.testing.assert_allclose(paired._normal(z), scipy.special.ndtr(z), rtol=1e-12)


def test_shipped_table_agrees_with_the_published_one() -> None:
    for shipped, published in zip(SHIPPED[(8, 12, 16, 20)], PUBLISHED, strict=True):
        assert shipped == pytest.approx(published, abs=6e-4)


@pytest.mark.parametrize("looks", [*SHIPPED, (5, 9, 30)])
@pytest.mark.parametrize("sides", [1, 2])
def test_simulated_walks_spend_the_planned_error(looks: tuple[int, ...], sides: int) -> None:
    rng, repeats = np.random.default_rng(11), 200_000
    steps = np.diff(np.array((0, *looks))) / looks[-1]
    plan = sequential.plan(looks)
    crossed = np.zeros(repeats, dtype=bool)
    walk, time = np.zeros(repeats), 0.0
    for index, step in enumerate(steps):
        walk += rng.normal(0.0, np.sqrt(step), repeats)
        time += step
        nominal = (plan.two_sided if sides == 2 else plan.one_sided)[index]
        z = walk / np.sqrt(time)
        crossed |= (np.abs(z) if sides == 2 else z) > sequential.z_of(nominal, sides)
        spent = plan.spent[index]
        assert crossed.mean() == pytest.approx(spent, abs=4 * np.sqrt(spent / repeats))


def test_sequential_p_crosses_alpha_exactly_at_the_boundary() -> None:
    looks = (8, 12, 16, 20)
    plan = sequential.plan(looks)
    for index, nominal in enumerate(plan.two_sided):
        assert float(sequential.sequential_p(nominal, looks, index)) <= 0.05
        assert float(sequential.sequential_p(nominal * 1.001, looks, index)) > 0.05
        values = sequential.sequential_p(np.geomspace(1e-30, 1.0, 200), looks, index)
        assert (np.diff(values) >= 0).all() and values[0] > 0 and values[-1] <= 1
    assert float(sequential.sequential_p(0.03, (8,), 0)) == 0.03


def test_one_look_is_a_fixed_test() -> None:
    assert sequential.plan((10,)).two_sided == pytest.approx((0.05,), abs=1e-9)


@pytest.mark.parametrize("looks", [(), (0, 4), (8, 8), (12, 8)])
def test_looks_that_do_not_increase_are_refused(looks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="increase"):
        sequential.plan(looks)


@pytest.mark.parametrize("looks", list(LADDERS))
def test_the_shipped_ladders_are_those_that_are_computed(looks: tuple[int, ...]) -> None:
    assert len(LADDERS[looks]) == len(sequential.ALPHAS)
    for at in (0, 20, 40, 58):
        wanted = sequential.nominal(looks, float(sequential.ALPHAS[at]), 2)
        assert LADDERS[looks][at] == pytest.approx(wanted, rel=1e-9)
