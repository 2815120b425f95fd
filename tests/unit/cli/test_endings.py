# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends from outside: told to end, no memory, a full disk: one clear line, no promise of what was not saved."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from kdelta.cli import _session, main, review
from kdelta.cli._ending import HAD, THE_SAME, Endings, Terminated, going_on, notes, out_of_memory
from kdelta.errors import HostError, KdeltaError
from kdelta.experiment import prepare
from kdelta.kernel import resolve
from kdelta.machine.qmp import Monitor
from kdelta.model.progress import Quiet
from kdelta.store.store import Store
from unit.store.store_builders import experiment

PROGRAM = [sys.executable, "-c", "from kdelta.cli.main import main; main()"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_is_as_ctrl_c_and_says_how_to_go_on(number: signal.Signals, tmp_path: Path) -> None:
    env = {**os.environ, "KDELTA_STATE": str(tmp_path)}
    # nohup(1) has its children ignore SIGHUP, and they are right to go on
    argv = ["env", "--default-signal", *PROGRAM, "run", "--case", "pidfd_open", "--boots", "500"]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stderr is not None
            said = ""
            while "boots 0/500" not in said:
                line = run.stderr.readline()
                assert line, said
                said += line
            run.send_signal(number)
            said += run.communicate(timeout=60)[1]
        finally:
            run.kill()
    assert run.returncode == 128 + number, said
    last = said.splitlines()[-1]
    assert "Traceback" not in said and last.startswith(f"kdelta: ended by {number.name}: "), said
    assert "continue with: kdelta resume 2" in last


def test_ctrl_c_while_a_measurement_is_prepared_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU is probed and the guest's program compiled then, which takes seconds."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "prepare", interrupt)
    with Store(f"sqlite:///{tmp_path}/kdelta.sqlite") as store:
        session = _session.Session(store, quiet=True)
        made = session.begin(experiment(), 0)
        with pytest.raises(KeyboardInterrupt) as ending:
            session.run(made, Quiet())
    assert ending.value.__notes__ == [f"no boot was finished; continue with: kdelta resume {made.id}"]


def test_an_ending_says_how_to_go_on_as_who_is_closest_to_it_knows() -> None:
    for closer, told in ((), "the same command"), (("kdelta resume X",), "kdelta resume X"):
        with pytest.raises(KeyboardInterrupt) as ending, going_on("the same command"):
            stopped = KeyboardInterrupt()
            for note in closer:
                stopped.add_note(note)
            raise stopped
        assert notes(ending.value) == [told]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("reach debian:6.12", THE_SAME),
        ("run src:debian:6.12 --case pidfd_open", HAD),
        ("compare debian:6.12 debian:7.0 --exact --case pidfd_open", HAD),
        ("review x.patch --tree debian:6.12", THE_SAME),
    ],
)
def test_ctrl_c_while_kernels_are_built_or_mapped_says_that_what_was_is_kept(
    words: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    Path("x.patch").write_text("--- a/fs/a.c\n+++ b/fs/a.c\n@@ -1 +1 @@\n-a\n+b\n")
    monkeypatch.setattr(resolve, "resolve_all", interrupt)
    monkeypatch.setattr(review, "_measure", interrupt)
    assert main.run(words.split()) == 130
    assert capsys.readouterr().err.splitlines()[-1] == f"kdelta: interrupted: {kept}"


@pytest.mark.parametrize(("ending", "code"), [(KeyboardInterrupt(), 130), (Terminated(signal.SIGTERM), 143)])
def test_what_python_wraps_an_ending_in_is_still_one(
    ending: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python 3.11 does so where it comes while a class is made, as it did once in 200 kills (test_kills.py)."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("Error calling __set_name__ on 'cached_property' instance") from ending

    monkeypatch.setattr(main.program, "main", fail)
    assert main.run(["doctor"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"kdelta: {str(ending) or 'interrupted'}"


def fails_with(error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(main.program, "main", fail)
    assert main.run(["doctor"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return str(line)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("libopenblas.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_no_memory_is_one_line(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fails_with(error, monkeypatch, capsys).startswith("kdelta: out of memory: ")


@pytest.mark.parametrize("setting", ["KDELTA_CACHE", "KDELTA_STATE"])
def test_a_folder_of_kdelta_that_may_not_be_written_names_its_setting(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(setting, str(tmp_path))
    refused = PermissionError(errno.EACCES, "Permission denied", f"{tmp_path}/guest")
    line = fails_with(refused, monkeypatch, capsys)
    remedy = f"set {setting} to a directory that you can write to"
    assert line == f"kdelta: {tmp_path}/guest: Permission denied; {remedy}"
    elsewhere = PermissionError(errno.EACCES, "Permission denied", "/elsewhere")
    assert fails_with(elsewhere, monkeypatch, capsys) == "kdelta: /elsewhere: Permission denied"


def test_a_full_disk_is_one_line_that_promises_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = fails_with(OSError(errno.ENOSPC, "No space left on device", "/var/x"), monkeypatch, capsys)
    assert line == "kdelta: /var/x: the disk is full: free some space, then run the same command again"


def test_another_runtime_error_is_a_bug_and_shown_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(main.program, "main", fail)
    with pytest.raises(RuntimeError):
        main.run(["doctor"])
    assert out_of_memory(KdeltaError("x")) is False


def test_a_qemu_that_ended_is_not_waited_for(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(HostError, match="QEMU ended before its monitor answered"):
        Monitor(tmp_path / "none.sock", deadline=started + 1e6, alive=lambda: False)


def test_nobody_reads_any_more(tmp_path: Path) -> None:
    env = {**os.environ, "KDELTA_STATE": str(tmp_path)}
    with subprocess.Popen([*PROGRAM, "cases"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_traceback_and_no_other_file(closed: str, tmp_path: Path) -> None:
    env = {**os.environ, "KDELTA_STATE": str(tmp_path)}
    words = ["sh", "-c", f'"$@" {closed}', "sh", *PROGRAM, "history"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lost = ">&-" in closed.replace("2>&-", "")
    told = "kdelta: standard output is closed: nothing was printed\n" if lost and "2>&-" not in closed else ""
    assert (done.returncode, done.stderr) == (2 if lost else 0, told)
    assert done.stdout.startswith("No experiment yet") != lost
    assert not any(b"No experiment" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_signals_that_come_at_once_are_one_ending() -> None:
    now = [100.0]
    endings = Endings(clock=lambda: now[0])
    with pytest.raises(KeyboardInterrupt):
        endings.interrupt(signal.SIGINT, None)
    for _ in range(5):
        now[0] += 0.3
        if now[0] < 101:
            endings.interrupt(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):  # who insists, ends what hangs
        endings.interrupt(signal.SIGINT, None)


def test_how_to_go_on_is_told_where_another_ending_came_during_the_clean_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """timeout(1) sends its signal twice: the second one's exception had no notes."""

    def twice(*_: object, **__: object) -> None:
        first = Terminated(signal.SIGTERM)
        first.add_note("2 finished boots are kept; continue with: kdelta resume X")
        try:
            raise first
        finally:
            try:
                raise Terminated(signal.SIGTERM)
            except Terminated as second:
                raise click.exceptions.Abort from second

    monkeypatch.setattr(main.program, "main", twice)
    assert main.run(["doctor"]) == 143
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "kdelta: ended by SIGTERM: 2 finished boots are kept; continue with: kdelta resume X"


def test_a_second_ctrl_c_is_no_traceback_of_a_library(tmp_path: Path) -> None:
    """SQLAlchemy logs whatever comes while it closes a connection."""
    program = (
        "import logging, sys\n"
        "from kdelta.cli import main\n"
        "def fail(*_, **__):\n"
        "    try:\n"
        "        raise KeyboardInterrupt\n"
        "    except KeyboardInterrupt:\n"
        "        logging.getLogger('sqlalchemy').error('closing', exc_info=True)\n"
        "        raise\n"
        "main.program.main = fail\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "kdelta: interrupted\n")


@pytest.mark.parametrize("read", ["enum", "click"])  # the module signal reads enum
@pytest.mark.parametrize("ignored", [False, True])
def test_ctrl_c_while_the_program_is_still_read(ignored: bool, read: str, tmp_path: Path) -> None:
    """Python's traceback stood there; a job in the background, which ignores SIGINT, goes on."""
    program = (
        "import os, sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {read!r}: os.kill(os.getpid(), {signal.SIGINT.value})\n"
        "sys.meta_path.insert(0, Slow())\n"
        "sys.argv = ['kdelta', 'history']\n"
        "from kdelta.cli._start import main\n"
        "main()\n"
    )
    argv = ["env", "--ignore-signal=INT" if ignored else "--default-signal=INT", sys.executable, "-c", program]
    env = {**os.environ, "KDELTA_STATE": str(tmp_path)}
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    assert done.stderr == ""
    assert done.returncode == (0 if ignored else -signal.SIGINT)
