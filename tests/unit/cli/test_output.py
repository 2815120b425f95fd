# SPDX-License-Identifier: GPL-2.0-or-later
"""What an answer means for the exit code."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kdelta.cli import _output
from kdelta.errors import GuestError, HostError


@pytest.mark.parametrize("state", ["lost", "panicked", "hung", "failed"])
def test_where_nothing_could_be_measured_the_first_reason_is_said(state: str) -> None:
    with pytest.raises(GuestError, match=f"^no kernel could be measured: crash: {state}: was killed by SIGSEGV$"):
        _output.refuse_all_lost([("crash", state, "was killed by SIGSEGV"), ("ls", "hung", "")], "measured")


def test_how_it_ended_is_said_once() -> None:
    with pytest.raises(GuestError, match=r"^no kernel could be measured: ls: A, B: failed: x$"):
        _output.refuse_all_lost([("ls", "failed", "A, B: failed: x")], "measured")


@pytest.mark.parametrize("other", ["ok", "unsupported"])
def test_what_is_measured_or_was_never_there_is_no_error(other: str) -> None:
    _output.refuse_all_lost([("crash", "failed", "x"), ("pipe", other, "")], "measured")
    _output.refuse_all_lost([], "measured")


def test_a_program_that_lacks_a_file_is_told_how_to_pack_it() -> None:
    why = "operation of task 0 failed: git ended with exit status 128, not 0: fatal: not a git repository"
    told = _output._unpacked({"pack": "0" * 64}, why)
    assert "--follow, --tree DIR" in told and "--expect-status 128" in told
    assert _output._unpacked({}, why) == ""
    said = _output._unpacked({"pack": "0" * 64}, why + "; --follow or --file packs what it needs")
    assert said == " (if it ends so here too, --expect-status 128)"
    memory = why + "; the guest is out of memory, files included: --memory SIZE gives it more"
    assert _output._unpacked({"pack": "0" * 64}, memory) == said
    assert _output._unpacked({"pack": "0" * 64}, "timed out after 60000 ms") == ""


def test_no_exit_status_is_offered_for_a_setup() -> None:
    """``--setup false`` was to be mended by ``--expect-status 1``, which is the program's; ``--between`` likewise."""
    setup = "setup: false ended with exit status 1, not 0"
    for why in (setup, setup.replace("setup", "between"), "7.3: failed: setup: sh was killed by SIGSEGV"):
        assert "--expect-status" not in _output._unpacked({"pack": "0" * 64}, why)
    assert "--follow" in _output._unpacked({"pack": "0" * 64}, "setup: false ended with exit status 1, not 0")


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("x ended with exit status 2, not 0: cannot create folder/file: Read-only file s", "with --writable"),
        ("sqlite3 ended with exit status 8, not 0: attempt to write a readonly database (8)", "with --writable"),
        ("x ended with exit status 2, not 0: Read-only file system; it may write in $TMPDIR, /t", ""),
        ("x ended with exit status 1, not 0: temp-path must be readable and writeable", "with --writable"),
        ("x ended with exit status 2, not 0: oops", "--follow"),
        ("x ended with exit status 1, not 0: mkdir: File exists", "--between removes"),
        ("bash was killed by SIGSEGV", "(if it ends so here too, --expect-status 139)"),
        ("bash was killed by SIGABRT: assertion failed", "--expect-status 134)"),
        ("x was killed by SIGILL", "build it without -march=native; if it ends so here too, --expect-status 132)"),
        ("bash was killed by signal 40", "--expect-status 168)"),
        ("the case was killed by SIGKILL (out of memory?)", ""),  # that is not the program
        ("x was killed by SIGKILL; the guest is out of memory, files included: --memory SIZE gives it more", ""),
        (
            "sh ended with exit status 32, not 0: mount: /m: unknown filesystem type 'overlay'.",
            "guests load no modules",
        ),
        ("net ended with exit status 1, not 0: connect: Network is unreachable", "no network but their own"),
        ("curl ended with exit status 6, not 0: curl: (6) Could not resolve host: a", "no network but their own"),
        ("stty ended with exit status 1, not 0: 'standard input': Inappropriate ioctl for device", "script -eqc"),
        ("git ended with exit status 128, not 0: fatal: destination path 'a' already exists", "--between removes"),
    ],
)
def test_a_program_that_failed_is_told_what_it_may_lack(why: str, told: str) -> None:
    said = _output._unpacked({"pack": "x"}, why)
    assert told in said and bool(said) == bool(told)


def test_a_report_that_does_not_fit_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(HostError, match="No space left"):
        _output.write("text", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()
