# SPDX-License-Identifier: GPL-2.0-or-later
"""Nominal p of the shipped sequential plans: alpha 5 %, power spending alpha * t^1.5.

Looks in blocks -> (two-sided p of each look, one-sided p of each look). Computed by ``sequential.nominal``, those of
exact sweeps unrounded; a test recomputes them, and checks them against a simulation. T: of Student's t the quantiles
that paired intervals at those levels need, (pairs less one, two-sided p) -> as ``scipy.special.stdtrit`` gave them, to
the last bit: to load it takes 0.12 s, of the 0.3 s of a report. So CHI: of chi square, ``chdtri(degrees, 0.8)``.
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

T: dict[tuple[int, float], float] = {
    (7, 0.049999999999999954): 2.364624251592785,
    (7, 0.02721655269760703): 2.7820827597282944,
    (11, 0.036095153988736584): 2.3863258951915,
    (7, 0.012649): 3.3266535875728858,
    (11, 0.015954): 2.8444623780917446,
    (15, 0.022355): 2.546443740986192,
    (19, 0.029909): 2.347119559419012,
    (7, 0.004472): 4.117781297914889,
    (11, 0.005324): 3.4609748989639426,
    (15, 0.007297): 3.1013553671802883,
    (23, 0.01493): 2.631127472030074,
    (39, 0.035752): 2.1750593369865925,
}

CHI: dict[int, float] = {
    7: 3.8223219077661383,
    11: 6.988673512230544,
    15: 10.306959006625286,
    19: 13.715789706290439,
    23: 17.186505854447514,
    39: 31.440517797589486,
}
