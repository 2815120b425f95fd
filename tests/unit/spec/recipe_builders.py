# SPDX-License-Identifier: GPL-2.0-or-later
"""Recipes of one claim."""

from __future__ import annotations

from kdelta.spec import recipes
from kdelta.spec.recipes import Recipe

HEAD = """
name = "x"
title = "t"
source = "s"
measured_on = "m"
[kernels]
baseline = "debian:6.1"
patched = "debian:6.12"
"""


def recipe_with(claim: str, kernels: str = "") -> Recipe:
    return recipes.parse(HEAD + kernels + "[[claims]]\ntext = 'c'\n" + claim, "x.toml")
