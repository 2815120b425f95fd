# SPDX-License-Identifier: GPL-2.0-or-later
"""Nominal p of the shipped sequential plans: alpha 5 %, power spending alpha * t^1.5.

Looks in blocks -> (two-sided p of each look, one-sided p of each look). Computed by ``sequential.nominal``, those of
exact sweeps unrounded; a test recomputes them, and checks them against a simulation.
"""

SHIPPED: dict[tuple[int, ...], tuple[tuple[float, ...], tuple[float, ...]]] = {
    (8,): ((0.049999999999999954,), (0.05000000000002479,)),
    (8, 12): (
        (0.02721655269760703, 0.036095153988736584),
        (0.027216552697590872, 0.038025049229241714),
    ),
    (8, 12, 16, 20): (
        (0.012649, 0.015954, 0.022355, 0.029909),
        (0.012649, 0.016690, 0.023811, 0.032308),
    ),
    (8, 12, 16, 24, 40): (
        (0.004472, 0.005324, 0.007297, 0.014930, 0.035752),
        (0.004472, 0.005526, 0.007682, 0.015657, 0.037492),
    ),
}
