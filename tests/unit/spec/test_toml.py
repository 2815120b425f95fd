# SPDX-License-Identifier: GPL-2.0-or-later
"""TOML that ends Python's own reader in other ways than by its error."""

from __future__ import annotations

from typing import Any

import pytest

from kdelta.spec import toml


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "{a = " * 5000, "nested too deeply"),
        ("a = " + "9" * 5000, "too many digits"),
        (b"a = \xff", "decode"),
        ("a = ", "Invalid value"),
        (".".join("a" * 5000) + " = nan", "nested too deeply"),
        ("[[a]]\nb = 1\n[[a]]\nb.c = [1.0, [nan]]", "a.b.c is nan: give a number"),
        ("a = -inf", "a is -inf"),
    ],
    ids=("lists", "tables", "digits", "bytes", "value", "keys", "nan", "inf"),
)
def test_what_cannot_be_read_is_a_value_error_that_says_why(text: str | bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        toml.decode(text, dict[str, Any])
