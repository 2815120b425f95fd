# SPDX-License-Identifier: GPL-2.0-or-later
"""Recipes are parsed strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.spec import recipes
from unit.spec.recipe_builders import recipe_with


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("before = 1\nafter = 2\n", "name a case, or selftests"),
        ("case = 'pipe'\n", "give before and after, or percent"),
        ("case = 'pipe'\npercent = 1\nfrom_case = 'pipe'\n", "say on = baseline or patched"),
        ("case = 'pipe'\npercent = 1\non = 'baseline'\n", "on needs from_case"),
        ("case = 'pipe'\npercent = 1\nwithin = 0.5\n", "within"),
        ("case = 'pipe'\npercent = 1\nwithin = 10\n", "within"),
        ("case = 'pipe'\npercent = 1\ncolour = 'red'\n", "colour"),
        ("case = 'pipe'\npercent = 'much'\n", "percent"),
        ("case = 'pipe'\nbefore = 5.12\nafter = 3.41\npercent = 33.4\n", "-33.4 %, percent is +33.4: it is the change"),
        ("case = 'pipe'\npercent = nan\n", "claims.percent is nan: give a number"),
        ("case = 'pipe'\nbefore = 1\nafter = inf\n", "claims.after is inf"),
        ("case = 'pipe'\npercent = -120\n", "percent is -120: what vanishes has before and after = 0"),
        ("case = 'pipe'\npercent = -100\nbetter = 'higher'\n", "percent is -100: what vanishes"),
        ("case = 'pipe'\nbefore = 8\nafter = -1\n", "none is below zero"),
        ("case = 'pipe'\npercent = -3\nsame = true\n", "its figures differ by -3 %: more than same_percent, 1"),
        ("case = 'pipe'\npercent = -3\ninterval_percent = [-2, -4]\n", "is [low, high], not [-2, -4]"),
        ("case = 'pipe'\npercent = -3\ninterval_percent = [5, 9]\n", "[5, 9] does not hold the change of -3 %"),
    ],
)
def test_a_damaged_recipe_names_its_file_and_what_is_wrong(claim: str, why: str) -> None:
    with pytest.raises(UserError) as error:
        recipe_with(claim)
    assert why in str(error.value)
    assert "x.toml" in str(error.value)


@pytest.mark.parametrize("text", ["", "[", "claims = 3", "claim = 3\nclaims = [{}]", "claims = [1]"])
def test_text_that_is_no_recipe_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError, match=r"recipe x\.toml"):
        recipes.parse(text, "x.toml")


@pytest.mark.parametrize("name", ["slow.patch", "v2 series.mbox"])
def test_a_patch_given_as_a_recipe_is_sent_to_the_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It was "Expected '=' after a key", or "not one of fork-names, path-walk, ..."."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(b"From: A <a@b>\nSubject: \xff faster\n\n---\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n")
    for given_as in (name, str(tmp_path / name)):
        with pytest.raises(UserError, match=r"it is a patch, .*: kdelta review .*--tree TREE"):
            recipes.load(given_as)


def test_claims_share_what_the_claim_table_says() -> None:
    shared = recipe_with("case = 'pipe'\npercent = 1\n", "[claim]\nbetter = 'higher'\nunit = 'MB/s'\n").claims[0]
    assert (shared.better, shared.unit) == ("higher", "MB/s")


@pytest.mark.parametrize(
    ("unit", "in_time"),
    [
        *(
            (unit, False)
            for unit in ("instructions", "instructions/op", "kernel instructions", "insns", "M insn per fork")
        ),
        *((unit, True) for unit in ("", "ns", "ops/s", "cycles per instruction", "instructions per second", "insn/s")),
    ],
)
def test_a_claim_in_instructions_is_known_by_any_of_their_names(unit: str, in_time: bool) -> None:
    claim = recipe_with(f"case = 'pipe'\npercent = 1\nunit = '{unit}'\n").claims[0]
    assert recipes.in_time(claim) is in_time
