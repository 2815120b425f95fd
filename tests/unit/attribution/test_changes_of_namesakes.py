# SPDX-License-Identifier: GPL-2.0-or-later
"""A change of one of several functions of one name, of which a map does not tell which one a case executes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdelta.attribution import changes, code
from kdelta.attribution.changes import Change
from kdelta.attribution.disassembly import Image
from kdelta.model import Looked
from kdelta.report import looked as looked_at
from unit.attribution.test_changes import SOURCE
from unit.attribution.test_code import Maker

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

OTHER = """\
static __attribute__((noinline)) int second(int a) { return a * 11; }
__attribute__((noinline)) int elsewhere(int a) { return second(a) + 1; }
"""


@pytest.mark.parametrize(
    ("source", "other", "told"),
    [
        (SOURCE, OTHER.replace("11", "13"), (1, 2)),
        (SOURCE.replace("a * 5", "a * 7"), OTHER, (1, 2)),
        (SOURCE.replace("a * 5", "a * 7"), OTHER.replace("11", "13"), (0, 0)),  # all differ: it is none of the others
    ],
)
def test_of_functions_of_one_name_it_is_told_how_many_differ(
    tmp_path: Path, source: str, other: str, told: tuple[int, int]
) -> None:
    """A patch of m_next() in fs/namespace.c was "looked at" by a case that executes the one of fs/proc/task_mmu.c."""
    make, beside = Maker(tmp_path, "x86_64"), tmp_path / "other.c"
    images = []
    for text, more in ((SOURCE, OTHER), (source, other)):
        beside.write_text(more)
        images.append(Image(make(text, str(beside))))
    old, new = images
    (found,) = changes.find(old, new, code.compare(old, new), lambda _: ()).changes
    assert found == Change(name="second", kind="code", hosts=("second",), namesakes=told)
    assert found.title == ("second (1 of 2 functions of this name)" if told[1] else "second")


def test_the_answer_says_that_another_one_may_have_run() -> None:
    title = Change(name="m_next", kind="code", hosts=("m_next",), namesakes=(1, 3)).title
    looked = Looked(functions=9, differ=1, candidates=5, cases=("proc_self_maps",), measured=(title,))
    said = "Several functions are named m_next: whether what ran is one that differs is not told"
    assert f"{said}." in looked_at.sentences(looked) and looked_at.unseen(looked) == said
    assert looked_at.unseen(Looked(functions=9, differ=1, candidates=5, cases=("a",), measured=("m_next",))) == ""
