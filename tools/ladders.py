# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes src/kdelta/stats/ladders.py: the nominal p of the shipped plans at many alphas: no report computes them."""

from __future__ import annotations

from pathlib import Path

from kdelta.stats import sequential

HEAD = '''# SPDX-License-Identifier: GPL-2.0-or-later
"""Nominal two-sided p of the usual plans, a row for each alpha of ``sequential.ALPHAS``; written by tools/ladders.py.

Looks -> rows. A test recomputes them; they are as ``sequential.nominal`` gave them, to the last bit.
"""

# fmt: off
# ruff: noqa: E501
'''
PLANS = ((8, 12), (8, 12, 16, 20), (8, 12, 16, 24, 40))


def main() -> None:
    lines = [HEAD + "LADDERS: dict[tuple[int, ...], tuple[tuple[float, ...], ...]] = {"]
    for looks in PLANS:
        rows = [sequential.nominal(looks, float(alpha), 2) for alpha in sequential.ALPHAS]
        lines += [f"    {looks!r}: (", *(f"        {row!r}," for row in rows), "    ),"]
    target = Path(sequential.__file__).with_name("ladders.py")
    target.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
