# SPDX-License-Identifier: GPL-2.0-or-later
"""Group-sequential plans: how much error each look may spend, so that looking early costs no false alarms.

Power spending alpha * t^1.5 (Kim & DeMets 1987, after Lan & DeMets, "Discrete sequential boundaries for clinical
trials", Biometrika 70, 1983). The nominal p of each look comes from recursive numerical integration (Armitage,
McPherson & Rowe 1969; Jennison & Turnbull, "Group Sequential Methods", 2000, ch. 19). An interval at the nominal
level of its look is a repeated interval (Jennison & Turnbull 1989): all looks together cover the truth.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.stats.boundaries import SHIPPED
from kdelta.stats.ladders import LADDERS

Floats = NDArray[np.float64]
POWER = 1.5
_NODES = 49  # Gauss-Legendre nodes: the nominal p are stable to 1e-10
ALPHAS = np.concatenate([np.geomspace(1e-12, 0.04, 40), np.linspace(0.05, 0.95, 19)])  # of which p are interpolated
_FAR = 8.0  # standard deviations taken as infinitely far


class Plan(Struct, frozen=True):
    """Looks in blocks, with the nominal p of each: two-sided for a difference, one-sided for equivalence.

    ``spent`` is the two-sided error spent up to and with each look; its last entry is alpha.
    """

    looks: tuple[int, ...]
    two_sided: tuple[float, ...]
    one_sided: tuple[float, ...]
    spent: tuple[float, ...]


def spending(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Cumulative error that may be spent by each look."""
    return tuple(alpha * (look / looks[-1]) ** POWER for look in looks)


def _crossing(density: Floats, at: Floats, step: float, bound: float, sides: int) -> float:
    """Probability that the walk, alive at ``at``, is past ``bound`` after a further variance ``step``."""
    sd = math.sqrt(step)
    beyond = scipy.special.ndtr((at - bound) / sd)
    if sides == 2:
        beyond = beyond + scipy.special.ndtr((-bound - at) / sd)
    return float(density @ beyond)


def _bound(density: Floats, at: Floats, step: float, spend: float, sides: int, reach: float) -> float:
    """The bound whose crossing spends exactly ``spend``."""
    return float(
        scipy.optimize.brentq(lambda b: _crossing(density, at, step, b, sides) - spend, 0.0, reach, xtol=1e-12)
    )


def nominal(looks: tuple[int, ...], alpha: float, sides: int) -> tuple[float, ...]:
    """Nominal p of each look of a test with one or two ``sides`` that spends ``alpha`` in all.

    The statistic is a Brownian motion B(t) at t = look / last look, the limit of any rank or t statistic.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    density, at, time, total, found = np.ones(1), np.zeros(1), 0.0, 0.0, []
    for look, cumulative in zip(looks, spending(looks, alpha), strict=True):
        now = look / looks[-1]
        step, spend = now - time, cumulative - total
        reach = _FAR * math.sqrt(now)
        bound = _bound(density, at, step, spend, sides, reach)
        found.append(sides * float(scipy.special.ndtr(-bound / math.sqrt(now))))
        low, high = (-bound if sides == 2 else -reach), bound
        points = low + (nodes + 1.0) * (high - low) / 2.0
        kernel = np.exp(-((points[:, None] - at[None, :]) ** 2) / (2.0 * step)) / math.sqrt(2.0 * math.pi * step)
        density = (kernel @ density) * weights * (high - low) / 2.0
        at, time, total = points, now, cumulative
    return tuple(found)


@lru_cache(maxsize=64)
def plan(looks: tuple[int, ...], alpha: float = 0.05) -> Plan:
    """The plan for strictly increasing ``looks``; the usual plans are shipped, others are computed.

    Raises:
        ValueError: the looks do not increase from 1 or more, or alpha is no probability.
    """
    if not looks or looks[0] < 1 or any(b <= a for a, b in pairwise(looks)):
        raise ValueError(f"looks must increase from 1 or more, not {looks}")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    spent = spending(looks, alpha)
    if alpha == 0.05 and looks in SHIPPED:
        two, one = SHIPPED[looks]
        return Plan(looks, two, one, spent)
    return Plan(looks, nominal(looks, alpha, 2), nominal(looks, alpha, 1), spent)


@lru_cache(maxsize=64)
def _ladder(looks: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Log alphas, and the log nominal two-sided p of each look at each of them: shapes (k,) and (k, looks)."""
    shipped = LADDERS.get(looks)
    return np.log(ALPHAS), np.log(shipped or [nominal(looks, float(alpha), 2) for alpha in ALPHAS])


def sequential_p(p: Floats | float, looks: tuple[int, ...], index: int) -> Floats:
    """The smallest alpha at which the plan would reject at look ``index`` with fixed-sample ``p``.

    Valid as a p value for Benjamini-Hochberg and Holm whichever look stopped the experiment (Liu & Anderson, "On
    adaptive extensions of group sequential trials", JASA 103, 2008). For a single look it is ``p`` itself.
    """
    values = np.asarray(p, dtype=np.float64)
    if len(looks) == 1:
        return values
    alphas, nominals = _ladder(looks)
    rungs = nominals[:, index]
    logs = np.log(np.maximum(values, 1e-300))
    inside = np.exp(np.interp(logs, rungs, alphas))
    below = np.exp(alphas[0] + np.minimum(0.0, logs - rungs[0]))  # proportional below the table
    return np.where(logs < rungs[0], below, np.where(logs > rungs[-1], 1.0, inside))


def z_of(p: float, sides: int = 2) -> float:
    """The normal quantile of a nominal p."""
    return -float(scipy.special.ndtri(p / sides))
