# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps over an ordered sweep of versions: where the level changes, without a model of the noise.

Binary segmentation (Scott & Knott, Biometrics 30, 1974): the split with the largest |t| counts when few random
relabellings reach it; both sides of a significant split are searched in turn. Versions are relabelled within
blocks, so drift between blocks can make no step. t is taken of aligned ranks (Hodges & Lehmann, "Rank methods for
combination of independent experiments", Ann. Math. Stat. 33, 1962), blocks aligned by their medians: a boot that took
twice as long while the host was busy is one high rank, and hides no step.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_POLISHES = 10


class Step(Struct, frozen=True):
    """A change of level before version ``index``: log ``effect`` of the segment after over the segment before."""

    index: int
    effect: float
    p: float


def _split_t(columns: Floats) -> Floats:
    """|t| of each split of ``columns`` (..., blocks, versions): shape (..., versions - 1). Missing boots are NaN."""
    seen = np.isfinite(columns)
    sums = np.cumsum(np.where(seen, columns, 0.0).sum(axis=-2), axis=-1)
    squares = np.where(seen, columns, 0.0) ** 2
    counts = np.cumsum(seen.sum(axis=-2), axis=-1).astype(np.float64)
    total, n = sums[..., -1:], counts[..., -1:]
    left, n_left = sums[..., :-1], counts[..., :-1]
    n_right = n - n_left
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = (total - left) / n_right - left / n_left
        between = gap**2 * n_left * n_right / n
        centred = squares.sum(axis=(-2, -1))[..., None] - total**2 / n
        within = np.maximum(centred - between, 1e-12 * centred) / np.maximum(n - 2, 1)
        t = np.sqrt(between / within)
    return np.where(np.isfinite(t), t, 0.0)


def _permuted(columns: Floats, rng: np.random.Generator, count: int) -> Floats:
    """``count`` relabellings: the versions shuffled within each block (row); missing boots stay where they are."""
    repeated = np.repeat(columns[None], count, axis=0)
    if np.isfinite(columns).all():
        return rng.permuted(repeated, axis=-1)
    for row in range(columns.shape[0]):
        present = np.flatnonzero(np.isfinite(columns[row]))
        repeated[:, row, present] = rng.permuted(repeated[:, row, present], axis=-1)
    return repeated


def _level(columns: Floats) -> float:
    return float(np.nanmedian(columns))


def _search(columns: Floats, start: int, rng: np.random.Generator, alpha: float, permutations: int) -> list[Step]:
    if columns.shape[1] < 2:
        return []
    ranks = scipy.stats.rankdata(columns, axis=None, nan_policy="omit").reshape(columns.shape)
    t = _split_t(ranks)
    best = int(np.argmax(t))
    reached = _split_t(_permuted(ranks, rng, permutations)).max(axis=-1) >= t[best] - 1e-12
    p = (1 + int(reached.sum())) / (1 + permutations)
    if t[best] == 0 or p > alpha:
        return []
    at = best + 1
    found = Step(start + at, _level(columns[:, at:]) - _level(columns[:, :at]), p)
    before = _search(columns[:, :at], start, rng, alpha, permutations)
    after = _search(columns[:, at:], start + at, rng, alpha, permutations)
    return [*before, found, *after]


def find_steps(
    values: Floats, rng: np.random.Generator, alpha: float = 0.05, permutations: int = 999
) -> tuple[Step, ...]:
    """Steps in log boot medians of shape (blocks, versions), versions in order; NaN where a boot is missing.

    Each effect is that of the neighbouring segments as finally found.

    Raises:
        ValueError: the values are not a matrix.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"steps need blocks by versions, not shape {matrix.shape}")
    seen = np.isfinite(matrix)
    rows, kept = np.flatnonzero(seen.sum(axis=1) >= 2), np.flatnonzero(seen.any(axis=0))
    if rows.size == 0 or kept.size < 2:
        return ()
    centred = _centred(matrix[np.ix_(rows, kept)])
    found = _search(centred, 0, rng, alpha, permutations)
    edges = [0, *(step.index for step in found), kept.size]
    levels = [_level(centred[:, a:b]) for a, b in pairwise(edges)]
    return tuple(
        Step(int(kept[step.index]), after - before, step.p)
        for step, before, after in zip(found, levels, levels[1:], strict=False)
    )


def _centred(matrix: Floats) -> Floats:
    """Rows less their block effect, the row's median: it treats all versions alike, as relabelling needs.

    With gaps, versions and blocks are fitted in turn (median polish), so that what is missing does not bias a row.
    """
    version = np.zeros((1, matrix.shape[1]))
    for _ in range(0 if np.isfinite(matrix).all() else _POLISHES):
        block = np.nanmedian(matrix - version, axis=1, keepdims=True)
        version = np.nanmedian(matrix - block, axis=0, keepdims=True)
    return np.asarray(matrix - np.nanmedian(matrix - version, axis=1, keepdims=True))
