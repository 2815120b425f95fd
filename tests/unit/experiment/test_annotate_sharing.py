# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of patches that are about what CPUs share: that one CPU shows none of it, and what waits do not show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.experiment import annotate
from kdelta.kernel import changed, source
from kdelta.model import Annotations, Quiet
from kdelta.model.experiment import SHARED
from kdelta.store.store import Store
from unit.experiment.test_annotate import built


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def test_that_a_patch_is_about_what_cpus_share_is_told_where_one_was_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A counter that all CPUs write in open(2) was "as many instructions", without a word of several CPUs."""
    text = (
        "+++ b/fs/open.c\n+static atomic_t a;\n+static atomic_t b;\n+	atomic_inc(&a);\n+	atomic_inc_return(&b);\n"
    )
    monkeypatch.setattr(changed, "texts", lambda _: [text.split("\n")])
    monkeypatch.setattr(source, "remembered", lambda *_: None)
    timed = built(store, monkeypatch, in_steps=False)
    several = replace(timed, id="several", mode="exact", annotations=Annotations())
    one = replace(several, id="one")
    several = replace(several, machine=replace(several.machine, smp=4))
    found = {}
    for each in (timed, several, one):
        store.create(each) if each is not timed else None
        notes = annotate.note_code(store, each, Quiet()).annotations.notes
        found[each.id] = [note.text for note in notes if note.code == SHARED]
    assert found == {timed.id: [], "several": [], "one": ["a, b, atomic_inc and 1 more"]}


def test_no_kernel_without_smp_is_sent_to_several_cpus(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built by SMP=n, it was told that --smp 8 looks at what moves between CPUs: its guests have one."""
    monkeypatch.setattr(changed, "texts", lambda _: [["+++ b/fs/pipe.c", "+	WRITE_ONCE(pipe->head, 1);"]])
    monkeypatch.setattr(source, "remembered", lambda *_: None)
    made = replace(built(store, monkeypatch, in_steps=False), mode="exact", annotations=Annotations())
    alone = tuple(replace(one, config={"SMP": "n"}) for one in made.kernels)
    for cpus in (1, 4):
        store.create(replace(made, id=f"on{cpus}", kernels=alone, machine=replace(made.machine, smp=cpus)))
        notes = annotate.note_code(store, store.experiment(f"on{cpus}"), Quiet()).annotations.notes
        assert [note.code for note in notes if note.code in (SHARED, "sharing")] == ["sharing"]


def test_that_a_patch_tries_locks_is_told_where_waits_are_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop around spin_trylock() enters no slow path: locks were "found taken less often", and all spun as before."""
    text = (
        "+++ b/fs/eventfd.c\n-	spin_lock(&x->lock);\n+	while (!spin_trylock(&x->lock))\n+		cpu_relax();\n"
    )
    monkeypatch.setattr(changed, "texts", lambda _: [text.split("\n")])
    monkeypatch.setattr(source, "remembered", lambda *_: None)
    made = replace(built(store, monkeypatch, in_steps=False), mode="exact", annotations=Annotations())
    found = {}
    for cpus in (1, 4):
        store.create(replace(made, id=f"on{cpus}", machine=replace(made.machine, smp=cpus)))
        notes = annotate.note_code(store, store.experiment(f"on{cpus}"), Quiet()).annotations.notes
        found[cpus] = [note.text for note in notes if note.code == "tried-locks"]
    told = "changed lines try locks (spin_trylock): one that is tried and found taken is in no count of waits"
    assert found == {1: [], 4: [told]}


def test_that_a_patch_wakes_more_is_told_as_most_cases_have_one_that_waits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All readers of a pipe woken instead of one: "as many instructions" of a pipe that has one reader."""
    text = "+++ b/fs/pipe.c\n-	wake_up(&pipe->rd_wait);\n+	wake_up_all(&pipe->rd_wait);\n"
    monkeypatch.setattr(changed, "texts", lambda _: [text.split("\n")])
    monkeypatch.setattr(source, "remembered", lambda *_: None)
    made = replace(built(store, monkeypatch, in_steps=False), id="exact", mode="exact", annotations=Annotations())
    store.create(made)
    notes = annotate.note_code(store, made, Quiet()).annotations.notes
    (told,) = [note.text for note in notes if note.code == "woken"]
    assert told.startswith("changed lines are about how many that wait are woken (wake_up_all), which shows where")
