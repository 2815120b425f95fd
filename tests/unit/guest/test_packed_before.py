# SPDX-License-Identifier: GPL-2.0-or-later
"""A pack is taken over as long as nothing that it was made of changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kdelta.guest import packed_before, packing
from kdelta.spec.program import Program


class Bench:
    """A program in a directory of its own, and how often packs were made."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.made = folder / "bin", 0
        self.folder.mkdir()
        shutil.copy2("/bin/true", self.folder / "mine")
        self.programs = (Program(argv=(str(self.folder / "mine"),), cwd="/tmp"),)
        monkeypatch.setenv("KDELTA_CACHE", str(folder / "cache"))
        monkeypatch.setattr(packed_before, "_FRESH_NS", -(1 << 62))  # what was made just now counts as old
        self.whole = packing._for_guests
        monkeypatch.setattr(packing, "_for_guests", self.make)

    def make(self, *args: Any) -> Any:
        self.made += 1
        return self.whole(*args)

    def pack(self) -> tuple[str, ...]:
        packing.pack_alike.cache_clear()
        return packing.pack_alike(self.programs)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_what_did_not_change_is_packed_once(bench: Bench) -> None:
    assert bench.pack() == bench.pack() and bench.made == 1


def test_a_program_that_changed_is_packed_anew(bench: Bench) -> None:
    first = bench.pack()
    shutil.copy2("/bin/false", bench.folder / "mine")
    assert bench.pack() != first and bench.made == 2


def test_a_file_that_comes_beside_it_may_be_a_library_of_it(bench: Bench) -> None:
    first = bench.pack()
    (bench.folder / "libc.so.6").write_bytes(b"")
    assert bench.pack() == first and bench.made == 2


def test_another_search_path_is_asked_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.pack()
    monkeypatch.setenv("PATH", f"{bench.folder}:{os.environ['PATH']}")
    bench.pack()
    assert bench.made == 2


def test_a_pack_that_was_removed_is_made_again(bench: Bench) -> None:
    (digest,) = bench.pack()
    shutil.rmtree(packing._folder(digest))
    assert bench.pack() == (digest,) and bench.made == 2


def test_what_changed_this_very_moment_is_not_vouched_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_before, "_FRESH_NS", 1 << 62)
    bench.pack()
    bench.pack()
    assert bench.made == 2
