# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload ``program`` on this machine, and the form of the command line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.cli.main import run as kdelta
from kdelta.guest import binary, packing, protocol
from kdelta.guest.jobs import case_jobs
from kdelta.model import Effort, Mode
from kdelta.spec.program import Program

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")
SHORT = Effort(warmup_windows=1, windows=2, window_ms=1, latency_ops=1, repetitions=2, limit_ms=3_000)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    packing.pack.cache_clear()


def run(guest_cache: Path, folder: Path, program: Program, mode: Mode = "timed") -> tuple[str, str, list[str]]:
    """State, reason and the kept output."""
    case = packing.pack(program, folder, native=True)
    jobs = case_jobs({0: case}, mode=mode, efforts={0: SHORT}, exact_ops={0: 1})
    (folder / "jobs").write_text(jobs.text())
    (data := folder / "data" / packing.SPEC).mkdir(parents=True)
    ((name, spec),) = packing.of_cases([case])[0].items()
    (folder / "data" / name).symlink_to(spec)
    with (folder / "stream").open("wb") as file:
        argv: list[str | Path] = [
            binary.build("x86_64", cache=guest_cache),
            "--native",
            "--jobs",
            folder / "jobs",
            "--data",
            data.parent,
        ]
        subprocess.run([*argv, "--fd", str(file.fileno())], pass_fds=[file.fileno()], check=True, timeout=60)
    records = protocol.parse((folder / "stream").read_bytes()).records
    (done,) = (r for r in records if isinstance(r, protocol.Done))
    return done.state, done.why, [r.text for r in records if isinstance(r, protocol.Output)]


@pytest.mark.parametrize("mode", ["timed", "exact"])
def test_a_program_runs_with_all_that_goes_with_it(guest_cache: Path, tmp_path: Path, mode: Mode) -> None:
    (tmp_path / "in").write_text("from stdin\n")
    (tmp_path / "sub").mkdir()
    script = 'test -e ../ready || exit 1; pwd; cat; echo "$MINE" >&2; exit 3'
    program = Program(
        argv=("sh", "-c", script),
        setup=f"touch {tmp_path}/ready",
        between=f"touch {tmp_path}/between",
        stdin="in",
        env=("MINE=mine",),
        cwd="sub",
        expect_status=3,
    )
    state, why, said = run(guest_cache, tmp_path, program, mode)
    assert (state, why) == ("ok", "")
    assert said == [str(tmp_path / "sub"), "from stdin", "mine"]
    assert (tmp_path / "between").exists()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("printf '\\nthe last word\\n' >&2; exit 5", "ended with exit status 5, not 0: the last word"),
        ("printf 'old\\nx: cannot open\\nfailed\\n\\n' >&2; exit 5", "not 0: x: cannot open / failed"),
        ("printf 'Trace:\\n  raise x\\nError: x' >&2; exit 5", "not 0: Error: x"),
        ("head -c 1200 /dev/zero | tr '\\0' a >&2; echo >&2; echo end >&2; exit 5", "not 0: end"),
        ("printf 'mount: no type x.\\n       dmesg(1) may have more.\\n' >&2; exit 5", "not 0: mount: no type x."),
        ("printf 'E: x\\n\\tat a\\n\\tat b\\n' >&2; exit 5", "not 0: E: x"),
        (f"echo {'n' * 150} >&2; echo {'o' * 90} >&2; exit 5", f"not 0: {'n' * 63}... / {'o' * 90}"),
        (f"echo why >&2; echo {'o' * 300} >&2; exit 5", f"not 0: {'o' * 156}..."),
        ("kill -SEGV $$", "was killed by SIGSEGV"),
        ("kill -40 $$", "was killed by signal 40"),
    ],
)
def test_a_run_that_goes_wrong_says_how(guest_cache: Path, tmp_path: Path, script: str, why: str) -> None:
    state, said, _ = run(guest_cache, tmp_path, Program(argv=("sh", "-c", script)))
    assert state == "failed"
    assert said.endswith(why)


def test_a_run_that_never_ends_is_hung_and_children_left_behind_are_waited_for(
    guest_cache: Path, tmp_path: Path
) -> None:
    assert run(guest_cache, tmp_path, Program(argv=("sleep", "1000")))[0] == "hung"
    (other := tmp_path / "other").mkdir()
    late = Program(argv=("sh", "-c", "(sleep 0.2; echo late) & exit 0"))
    assert run(guest_cache, other, late) == ("ok", "", ["late"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("compare", "debian:6.12", "debian:7.0", "ls"), "put -- before it, as in -- ls"),
        (("compare", "debian:6.12", "debian:7.0", "ls", "-lQ"), "put -- before it, as in -- ls"),
        (("compare", "debian:6.12", "debian:7.0", "--"), "there is no program behind --"),
        (("compare", "debian:6.12", "debian:7.0", "--", "no-such-program"), "it is not on this machine's PATH"),
        (("compare", "debian:6.12", "debian:7.0", "--", "A=1", "ls"), "a variable is set by --env A=1"),
        (("compare", "debian:6.12", "debian:7.0", "--", "ls /etc | wc"), "run by -- sh -c 'ls /etc | wc'"),
        (("run", "--cold"), "--cold goes with a program"),
        (("sweep", "debian:6.1..7.3", "ls"), "put -- before it, as in -- ls"),
    ],
)
def test_a_form_that_cannot_be_leads_to_the_right_one(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    assert kdelta(list(words)) == 1
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "debian:6.12", "--what", "syscalls"),
        ("leaks", "debian:6.12"),
        ("bisect", "src:.@v6.11", "src:.@v6.12"),
        ("run", "--kernel", "debian:6.12", "--exact"),
    ],
    ids=lambda words: words[0],
)
def test_every_measurement_takes_a_program(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert kdelta([*words, "--", "no-such-program"]) == 1
    assert "no-such-program: it is not on this machine's PATH" in capsys.readouterr().err
    assert kdelta([*words, "--cold"]) == 1
    assert "--cold goes with a program" in capsys.readouterr().err


def test_output_that_is_no_text_is_kept_and_harms_no_record(guest_cache: Path, tmp_path: Path) -> None:
    program = Program(argv=("printf", r"\000\377\033\nkd1 0 00000000 {}\nthe end\n"))
    state, _, printed = run(guest_cache, tmp_path, program)
    assert state == "ok"
    assert printed[0].startswith("?") and printed[1:] == ["kd1 0 00000000 {}", "the end"]


def test_what_is_said_to_standard_error_is_kept_beside_long_output(guest_cache: Path, tmp_path: Path) -> None:
    program = Program(argv=("sh", "-c", "seq 5000; echo the only complaint >&2"))
    state, _, printed = run(guest_cache, tmp_path, program)
    assert (state, printed[0], printed[-1]) == ("ok", "1", "the only complaint")


def test_a_signal_may_be_how_it_ends(guest_cache: Path, tmp_path: Path) -> None:
    """A shell's status of it, which is what $? has."""
    program = Program(argv=("sh", "-c", "kill -TERM $$"), expect_status=128 + 15)
    assert run(guest_cache, tmp_path, program)[0] == "ok"


def test_a_program_may_signal_its_process_group(guest_cache: Path, tmp_path: Path) -> None:
    """It was that of the harness: "the case was killed by SIGKILL (out of memory?)"."""
    program = Program(argv=("sh", "-c", "trap '' TERM; kill 0"))
    assert run(guest_cache, tmp_path, program)[:2] == ("ok", "")


@pytest.mark.parametrize("signal", ["KILL", "TERM"])
def test_who_ends_the_case_is_no_lack_of_memory(guest_cache: Path, tmp_path: Path, signal: str) -> None:
    """As kill(-1, SIGKILL) does in a guest; it was "killed by SIGKILL (out of memory?)"."""
    state, why, _ = run(guest_cache, tmp_path, Program(argv=("sh", "-c", f"kill -{signal} $PPID; sleep 9")))
    assert state == "failed"
    assert why.startswith(f"the case was killed by SIG{signal}, by a process, perhaps its own: ")


def test_of_a_program_that_never_ends_nothing_is_left_on_this_machine(guest_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "sleep").symlink_to(shutil.which("sleep") or "")
    script = f"{tmp_path}/sleep 1001 & {tmp_path}/sleep 1002; true"
    assert run(guest_cache, tmp_path, Program(argv=("sh", "-c", script)))[0] == "hung"
    said = [one.read_bytes() for one in Path("/proc").glob("[0-9]*/cmdline") if one.exists()]
    assert not [one for one in said if str(tmp_path).encode() in one]
