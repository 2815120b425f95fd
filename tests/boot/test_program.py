# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of this machine in guests: counted from exec to the last wait, told what they lack."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("one\ntwo\n")
    (script := tmp_path / "count.sh").write_text('#!/bin/sh\nfor i in $(seq "$1"); do cat words.txt; done\n')
    script.chmod(0o755)
    return tmp_path


def test_what_a_program_starts_is_counted(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    more = ("--file", "words.txt", "--file", "/usr/bin/seq", "--file", "/usr/bin/cat")
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--json", "-q", *more, "--")
    got = json.loads(kdelta(*run, "./count.sh", "11").stdout)
    (row,) = (row for row in got["results"] if row["metric"] == "instructions")
    assert (row["case"], row["state"]) == ("count.sh 11", "ok"), row
    assert 11 * 200_000 < row["baseline"] < 11 * 2_000_000  # fork, exec and exit of cat and of the shell


def test_a_program_that_lacks_a_file_is_told_how_to_pack_it(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--json", "-q", "--file", "/usr/bin/seq")
    got = json.loads(kdelta(*run, "--", "./count.sh", "1").stdout)
    row = got["results"][0]
    assert row["state"] == "failed"
    assert "exit status 127, not 0" in row["why"]
    assert "--follow or --file packs what it needs" in row["why"]


@pytest.mark.full
@pytest.mark.skipif(shutil.which("perf") is None, reason="no perf: kdelta doctor names the package")
def test_a_suites_program_costs_what_its_operations_cost(kdelta) -> None:  # type: ignore[no-untyped-def]
    cases = ("--case", "getppid", "--case", "perf/syscall-basic")  # which calls getppid(2), behind millions of start-up
    got = json.loads(
        kdelta("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--json", "-q", *cases).stdout
    )
    found = {row["case"]: row["baseline"] for row in got["results"] if row["metric"] == "instructions"}
    assert 0.95 < found["perf/syscall-basic"] / found["getppid"] < 1.05, found
