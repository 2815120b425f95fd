# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a patch is not built is told where the user named the cases, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.experiment import unlooked
from kdelta.kernel import guards, unseen
from kdelta.model import Annotations, Experiment
from kdelta.model.experiment import Looked
from kdelta.store.store import Store
from unit.experiment.test_annotate import built

FOUND = unseen.Unseen(
    options=("FAST", "NEW"), parts=("fs/a.c", "fs/b.c (CONFIG_X)"), defaults=("LAZY=y",), parameters=("slow=", "strict")
)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Experiment]:
    monkeypatch.setattr(unseen, "of", lambda *_: FOUND)
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        found = built(store, monkeypatch, in_steps=False)
        yield replace(found, kernels=found.kernels[:2], annotations=Annotations())


def test_what_is_not_built_is_a_note_where_cases_were_named(made: Experiment) -> None:
    """compare --case of a patch under an option that is off was "same", without a word of the option."""
    label = made.kernels[-1].label
    told = [one.text for one in unlooked.remarks(made, [f"{label}: {guards.unbuilt('fs/a.c')}"])]
    assert told == [
        f"{label}: lines under options that are off do not run: FAST, NEW; measured with "
        ',config="FAST=y NEW=y" behind each kernel',
        f"{label}: changed, and not built with this config: fs/b.c (CONFIG_X)",
        f'{label}: this config keeps another default: LAZY=y; measured with ,config="LAZY=y" behind {label}',
        f"{label}: boot parameters that are not given: slow=, strict; measured with "
        ',cmdline="slow=VALUE strict" behind each kernel',
    ]


def test_nothing_is_said_twice_and_nothing_of_releases(made: Experiment) -> None:
    looked = Looked(functions=9, differ=1, candidates=5)
    assert not [*unlooked.remarks(replace(made, annotations=Annotations(looked=looked)), ())]
    old, new = made.kernels
    assert not [*unlooked.remarks(replace(made, kernels=(old, replace(new, release="9.9.0"))), ())]
    assert not [*unlooked.remarks(replace(made, kernels=(old, new, new)), ())]
