# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of several CPUs that read under a sequence counter, and count for themselves how often that was in vain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from test_counts import PASSED, X86, _qemu, _symbols
from test_lines import CPUS, HIGH, ROUNDS, Result, start

from kdelta import paths
from kdelta.attribution import lines
from kdelta.machine.plugin import build


@pytest.fixture(scope="session")
def plugin() -> Path:
    return build(paths.cache_dir())  # where set-up compiled it: to compile one takes 3.6 s of a processor


@pytest.fixture(scope="module", params=CPUS)
def run(request: pytest.FixtureRequest, plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("sequences")
    ended = start(_qemu("alternative", X86), plugin, folder, request.param, "sequences_x86_64.S")
    assert ended.returncode == PASSED[X86], ended.stderr
    return Result(folder, _symbols(folder / "guest.elf"))


def _rows(run: Result, ident: int) -> NDArray[np.void]:
    rows = run.moves[ident].sequences
    if rows is None:
        pytest.skip("this QEMU does not say what is loaded")
    return rows


def test_reads_in_vain_are_as_many_as_the_readers_found(run: Result) -> None:
    rows = _rows(run, 1)
    begun, odd, ended, in_vain = run.said
    assert set(rows["address"].tolist()) == {HIGH + run.symbols["counter"]}
    ends, begins = rows[rows["kind"] == lines.CHECK], rows[rows["kind"] == lines.BEGIN | lines.PAUSES]
    assert (len(ends), len(begins), len(rows)) == (6, 5, 11), "each way to end and to begin"
    assert (ends["times"].sum(), ends["failed"].sum()) == (ended, in_vain)
    assert (begins["times"].sum(), begins["failed"].sum()) == (begun, odd)
    assert ended - in_vain == 6 * ROUNDS * (run.file.cpus - 1)
    assert all(rows["failed"])


def test_what_is_compared_but_never_begun_is_told_apart(run: Result) -> None:
    found = {(int(row["address"]) - HIGH, int(row["kind"])) for row in _rows(run, 2)}
    assert found == {(run.symbols["number"], lines.CHECK)}, "with an odd number no read began"


def test_the_same_run_gives_the_same_reads(run: Result, plugin: Path, tmp_path: Path) -> None:
    ended = start(_qemu("alternative", X86), plugin, tmp_path, run.file.cpus, "sequences_x86_64.S")
    assert ended.returncode == PASSED[X86], ended.stderr
    again = Result(tmp_path, run.symbols)
    assert _rows(again, 1).tobytes() == _rows(run, 1).tobytes()
