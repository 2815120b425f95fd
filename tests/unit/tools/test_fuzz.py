# SPDX-License-Identifier: GPL-2.0-or-later
"""A short round of every fuzzing target: inputs that once broke one, and a few hundred more, the same each time."""

from __future__ import annotations

import random

import pytest

import fuzz_targets

INPUTS = 150


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_nothing_that_is_read_raises_what_it_does_not_declare(name: str) -> None:
    dice = random.Random(name)
    seeds = fuzz_targets.seeds(name)
    assert seeds, f"{name} has no seed"
    for data in seeds:
        fuzz_targets.run(name, data)
    for number in range(INPUTS):
        fuzz_targets.run(name, fuzz_targets.mutated(seeds[number % len(seeds)], dice))


def test_a_target_that_breaks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> None:
        raise IndexError(data[0])

    monkeypatch.setitem(fuzz_targets.TARGETS, "records", broken)
    with pytest.raises(IndexError):
        fuzz_targets.run("records", b"x")
