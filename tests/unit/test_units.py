# SPDX-License-Identifier: GPL-2.0-or-later
"""How values are printed."""

import math

import pytest

from kdelta.units import human, percent


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (489.0, "ns", "489.0 ns"),
        (1234.0, "ns", "1.234 us"),
        (23_340_000.0, "ns", "23.34 ms"),
        (1_048_576.0, "B", "1.000 MiB"),
        (22536.0, "ops/s", "22.54 kops/s"),
        (1119.0, "MB/s", "1119 MB/s"),
        (4025.0, "instructions/op", "4025 instructions/op"),
        (0.0, "ns", "0 ns"),
        (None, "ns", "-"),
        (math.nan, "ns", "-"),
    ],
)
def test_a_value_is_printed_for_people(value: float | None, unit: str, text: str) -> None:
    assert human(value, unit) == text


def test_percentages_carry_their_sign() -> None:
    assert (percent(-28.614), percent(4.0, 1), percent(None)) == ("-28.61 %", "+4.0 %", "-")
    assert percent(-0.004) == percent(0.004) == percent(0.0) == "0.00 %", "neither more nor less"
    assert (percent(-0.006), percent(0.04, 1), percent(100.0)) == ("-0.01 %", "0.0 %", "+100.00 %")
