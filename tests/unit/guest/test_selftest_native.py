# SPDX-License-Identifier: GPL-2.0-or-later
"""A packed program's words and its end arrive as records, however it ends; here on the running machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.experiment import selftests
from kdelta.guest import binary, protocol
from kdelta.guest.ktap import Ended

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")

SCRIPTS = {
    "passes": 'echo "1..1"; echo "ok 1 one"; pwd >&2',
    "skips": "exit 4",
    "fails": 'printf "not ok 1 no newline at the end"; exit 1',
    "dies": "kill -SEGV $$",
    "hangs": "echo begun; sleep 60",
    "leaves": "sleep 60 & echo ok",
    "odd": r'printf "tab\there \"quoted\" \303\244 \377 \000 {\"t\":\"done\"\n"',
    "long": 'i=0; while [ $i -lt 3000 ]; do echo "ok $i of a line that fills the pipe twice"; i=$((i+1)); done',
}


@pytest.fixture(scope="module")
def program(guest_cache: Path) -> Path:
    return binary.build("x86_64", cache=guest_cache)


def run(program: Path, folder: Path, *names: str, limit_ms: int = 20_000) -> dict[str, Ended]:
    lines = ["kdelta-jobs 1", "set mode timed"]
    for number, name in enumerate(names):
        path = folder / name
        if name in SCRIPTS:
            path.write_text(f"#!/bin/sh\n{SCRIPTS[name]}\n")
            path.chmod(0o755)
        lines.append(f"job {number} selftest limit_ms={limit_ms} program={path}")
    (folder / "jobs").write_text("\n".join([*lines, "end", ""]))
    with (folder / "stream").open("wb") as stream:
        argv: list[str | Path] = [program, "--native", "--jobs", folder / "jobs", "--data", folder]
        argv += ["--fd", str(stream.fileno())]
        subprocess.run(argv, pass_fds=[stream.fileno()], check=True, timeout=120)
    parsed = protocol.parse((folder / "stream").read_bytes())
    assert parsed.state == "ok", parsed.why
    return selftests.read(parsed.records, [("s", name) for name in names], "")


def test_lines_of_both_streams_and_the_exit_code_arrive(program: Path, tmp_path: Path) -> None:
    found = run(program, tmp_path, "passes", "skips", "fails")
    assert set(found["s:passes"].lines) == {"1..1", "ok 1 one", os.path.realpath(tmp_path)}
    assert [found[f"s:{name}"].exit for name in ("passes", "skips", "fails")] == [0, 4, 1]
    assert found["s:fails"].lines == ("not ok 1 no newline at the end",)


def test_a_program_that_is_killed_says_by_which_signal(program: Path, tmp_path: Path) -> None:
    assert run(program, tmp_path, "dies")["s:dies"].signal == 11


def test_a_program_without_an_end_is_stopped_and_keeps_its_words(program: Path, tmp_path: Path) -> None:
    found = run(program, tmp_path, "hangs", "passes", limit_ms=1000)
    assert found["s:hangs"].lines == ("begun",)
    assert found["s:hangs"].why.startswith("no end within")
    assert found["s:passes"].result == "ok"


def test_what_a_program_leaves_behind_holds_nothing_up(program: Path, tmp_path: Path) -> None:
    assert run(program, tmp_path, "leaves")["s:leaves"] == Ended(lines=("ok",), exit=0)


def test_bytes_that_are_no_text_and_words_of_the_protocol_stay_words(program: Path, tmp_path: Path) -> None:
    (line,) = run(program, tmp_path, "odd")["s:odd"].lines
    assert line == 'tab\there "quoted" \N{LATIN SMALL LETTER A WITH DIAERESIS} \N{REPLACEMENT CHARACTER} ? {"t":"done"'


def test_much_output_arrives_whole(program: Path, tmp_path: Path) -> None:
    assert len(run(program, tmp_path, "long")["s:long"].lines) == 3000


def test_a_program_that_is_not_there_fails_with_its_reason(program: Path, tmp_path: Path) -> None:
    found = run(program, tmp_path, "nosuch")["s:nosuch"]
    assert (found.exit, found.result) == (126, "not ok")
    assert "cannot run" in found.lines[0]


def test_the_guest_program_is_also_the_sleep_that_selftests_execute(program: Path, tmp_path: Path) -> None:
    shutil.copy(program, tmp_path / "sleep")
    assert subprocess.run([tmp_path / "sleep", "0"], check=False, timeout=60).returncode == 0
    assert subprocess.run([program, "0"], check=False, capture_output=True, timeout=60).returncode == 2
