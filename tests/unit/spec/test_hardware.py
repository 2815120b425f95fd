# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import pytest

from kdelta.errors import UserError
from kdelta.model import Hardware
from kdelta.spec import hardware


def test_each_key_is_read() -> None:
    found = hardware.parse("governor=performance,turbo=off,smt=on,cpus=2-3,6", "--hardware")
    assert found == Hardware(governor="performance", turbo=False, smt=True, cpus="2-3,6")
    assert hardware.parse("cpus=0", "--hardware") == Hardware(cpus="0")


@pytest.mark.parametrize(
    "text",
    ["", "turbo", "turbo=1", "tubro=off", "smt=", "cpus=2-", "cpus=3-1", "cpus=a", "governor=a b", "cpus=1,cpus=2"],
)
def test_what_is_misspelt_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match=r"^--hardware ") as refused:
        hardware.parse(text, "--hardware")
    assert "\n" not in str(refused.value)
