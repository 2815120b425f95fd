# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs with trace lines, run natively: what is said where there is no tracefs, and lists that cannot be followed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kdelta.guest import binary, protocol
from kdelta.guest.jobs import case_jobs
from kdelta.model import Case, Effort

HARMLESS = ("probe one", "try way", "read trace_clock")  # also where a tracefs is within reach


@pytest.fixture(scope="module")
def program(guest_cache: Path) -> Path:
    return binary.build("x86_64", cache=guest_cache)


def _jobs(*lines: str) -> str:
    case = Case(workload="pidfd_open", params={"target": "self", "flags": "0", "held": "0", "targets": "1"})
    return case_jobs(
        {0: case}, mode="exact", efforts={0: Effort(repetitions=1)}, exact_ops={0: 4}, traces={0: lines}
    ).text()


def _records(program: Path, folder: Path, text: str) -> tuple[protocol.Record, ...]:
    (folder / "jobs").write_text(text, encoding="ascii")
    with (folder / "stream").open("wb") as file:
        argv = [str(program), "--native", "--jobs", str(folder / "jobs"), "--data", str(folder), "--fd"]
        subprocess.run([*argv, str(file.fileno())], pass_fds=[file.fileno()], check=True, timeout=60)
    stream = protocol.parse((folder / "stream").read_bytes())
    assert stream.state == "ok"
    return stream.records


def _done(records: tuple[protocol.Record, ...]) -> protocol.Done:
    (done,) = [record for record in records if isinstance(record, protocol.Done)]
    return done


def test_lines_follow_their_job() -> None:
    assert [line for line in _jobs(*HARMLESS).splitlines() if line.startswith("trace ")] == [
        "trace probe one",
        "trace try way",
        "trace read trace_clock",
    ]


@pytest.mark.skipif(os.path.exists("/sys/kernel/tracing/events"), reason="this machine shows its tracefs")
def test_a_kernel_that_shows_no_tracefs_is_unsupported(program: Path, tmp_path: Path) -> None:
    done = _done(_records(program, tmp_path, _jobs(*HARMLESS)))
    assert (done.state, done.why) == ("unsupported", "this kernel has no tracefs (CONFIG_FTRACE)")


def test_a_job_without_trace_lines_needs_no_tracefs(program: Path, tmp_path: Path) -> None:
    assert _done(_records(program, tmp_path, _jobs())).state == "ok"


@pytest.mark.parametrize(
    "line", ["", "read", "look events", "read /etc/passwd", "read ../../etc/passwd", "do a/../b x", "probe \x07"]
)
def test_a_line_that_is_none_or_leaves_the_tracefs_voids_the_list(program: Path, tmp_path: Path, line: str) -> None:
    records = _records(program, tmp_path, _jobs(line))
    (note,) = [record for record in records if isinstance(record, protocol.Note)]
    assert note.text.startswith("jobs: cannot parse the line")
    assert not any(isinstance(record, protocol.Done) for record in records)


def test_a_trace_line_before_any_job_voids_the_list(program: Path, tmp_path: Path) -> None:
    records = _records(program, tmp_path, "kdelta-jobs 1\ntrace read trace_clock\nend\n")
    assert any(isinstance(record, protocol.Note) for record in records)
