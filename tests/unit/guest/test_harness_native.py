# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest program, compiled and run on this machine: its pure parts against oracles, its streams line by line."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.guest import binary, protocol
from kdelta.guest.metrics import histogram
from kdelta.paths import shipped
from unit.guest.scratch import scratch_left

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")

GUEST = shipped("guest")
HELPERS = tuple(sorted((GUEST / "tests" / "workloads").glob("*.c")))
LINE = re.compile(r"kd1 (\d+) ([0-9a-f]{8}) (\{.*\})")
TIMED = "warmup=1 windows=3 window_ms=5 latency_ops=200"
Run = Callable[..., list[dict[str, object]]]


@pytest.fixture(scope="session")
def program(guest_cache: Path) -> Path:
    return binary.build("x86_64", HELPERS, cache=guest_cache)


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """The pure parts under the address and undefined-behaviour sanitizers."""
    target = tmp_path_factory.mktemp("probe") / "probe"
    sources = [GUEST / name for name in ("tests/probe.c", "stream.c", "hdr.c", "jobs.c", "harness_kbest.c")]
    flags = ["-g", "-O1", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *flags, *map(str, sources), "-lm", "-o", str(target)], check=True)

    def call(*words: str, given: bytes = b"") -> str:
        done = subprocess.run([target, *words], input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout.decode("utf-8", "replace")

    return call


def _stream(program: Path, folder: Path, text: str) -> bytes:
    (folder / "jobs").write_text(text, encoding="ascii")
    with (folder / "stream").open("wb") as file:
        argv = [
            str(program),
            "--native",
            "--jobs",
            str(folder / "jobs"),
            "--data",
            str(folder),
            "--fd",
            str(file.fileno()),
        ]
        subprocess.run(argv, pass_fds=[file.fileno()], check=True, timeout=120)
    return (folder / "stream").read_bytes()


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    """Run job lines; every line of the stream is checked on its own before its records are returned."""

    def call(*jobs: str, mode: str = "timed") -> list[dict[str, object]]:
        lines = ["kdelta-jobs 1", f"set mode {mode}", "set seed 7"]
        lines += [f"job {index} {job}" for index, job in enumerate(jobs)]
        raw = _stream(program, tmp_path, "\n".join([*lines, "end", ""]))
        records = []
        for seq, line in enumerate(raw.decode("ascii").splitlines()):
            match = LINE.fullmatch(line)
            assert match, line
            assert int(match[1]) == seq
            assert int(match[2], 16) == zlib.crc32(f"{seq} {match[3]}".encode())
            records.append(json.loads(match[3]))
        assert records[0]["t"] == "hello"
        assert records[-1] == {"t": "end", "records": len(records) - 1}
        assert protocol.parse(raw).state == "ok"
        return records

    return call


def _of(records: list[dict[str, object]], kind: str, job: int = 0) -> list[dict[str, object]]:
    return [r for r in records if r["t"] == kind and r.get("j") == job]


def _done(records: list[dict[str, object]], job: int = 0) -> tuple[object, str]:
    (done,) = _of(records, "done", job)
    return done["state"], str(done["why"])


def _misbehave(how: str, tasks: int = 1, mode: str = "threads", extra: str = "") -> str:
    return f"misbehave how={how} tasks={tasks} mode={mode} limit_ms=20000 {TIMED} {extra}"


# The pure parts, against implementations that are not ours.


def test_the_checksum_is_that_of_zlib(probe: Callable[..., str]) -> None:
    for data in (b"", b"a", b'12 {"t":"note","text":"x"}', bytes(range(256)) * 9):
        assert int(probe("crc", given=data), 16) == zlib.crc32(data)


def test_base64_is_the_standard_one(probe: Callable[..., str]) -> None:
    for length in range(1, 9):
        data = bytes(range(250, 250 + length)) if length < 6 else os.urandom(length)
        assert base64.b64decode(probe("base64", given=data).strip(), validate=True) == data


def test_strings_survive_as_ascii_json(probe: Callable[..., str]) -> None:
    for text in ('plain "quoted" \\ back', "tab\tnew\nline\x01\x7f", "käse 😀 \u07ff\uffff"):
        assert json.loads(probe("json", given=text.encode())) == text


def test_bytes_that_are_not_utf8_become_replacement_characters(probe: Callable[..., str]) -> None:
    for data in (b"a\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xe2\x82"):
        assert "\ufffd" in json.loads(probe("json", given=data))


def test_values_that_are_no_numbers_are_null(probe: Callable[..., str]) -> None:
    assert [probe("number", given=v).strip() for v in (b"nan", b"-inf", b"1.5")] == ["null", "null", "1.5"]


@pytest.mark.parametrize("seed", range(4))
def test_a_histogram_reads_back_with_the_same_percentiles(probe: Callable[..., str], seed: int) -> None:
    rng = random.Random(seed)
    values = [min(60 * 10**9, int(rng.lognormvariate(7 + 4 * seed, 2)) + 1) for _ in range(500)]
    read = histogram(base64.b64decode(probe("hdr", *map(str, values))))
    assert read.get_total_count() == len(values)
    for percent in (1, 50, 90, 99, 100):
        true = sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]
        assert read.get_value_at_percentile(percent) == pytest.approx(true, rel=1e-3, abs=1)


def test_histogram_values_outside_the_range_count_as_its_ends(probe: Callable[..., str]) -> None:
    read = histogram(base64.b64decode(probe("hdr", "0", "1", "60000000000", "99000000000")))
    assert read.get_total_count() == 4
    assert read.get_min_value() == 1
    assert read.get_max_value() == pytest.approx(60e9, rel=1e-3)


def test_an_empty_histogram_is_a_header(probe: Callable[..., str]) -> None:
    assert len(base64.b64decode(probe("hdr"))) == 40


@pytest.mark.parametrize(
    ("samples", "figure"),
    [
        ("104 100 103 101 102 900", "100"),  # five neighbours within 5 % from the start
        ("10 100 101 102 103 104 105", "101"),  # the sample after a gap is not a member
        ("100 101 102 103", "none"),
        ("1 2 4 8 16 32 64", "none"),
        ("0 0 0 0 0", "0"),
        ("", "none"),
    ],
)
def test_k_best_is_that_of_lebench(probe: Callable[..., str], samples: str, figure: str) -> None:
    assert probe("kbest", *samples.split()).strip() == figure


def test_a_job_list_is_read_as_written(probe: Callable[..., str]) -> None:
    text = (
        b"kdelta-jobs 1\nset mode exact   # or timed\nset seed 3\nset settle_ms 20\nset snapshot 1\n"
        b"set scatter 4\nset turns_ms 7\nset port hvc0\n"
        b"job 5 pipe limit_ms=100 reps=3 ops=9 cgroup=child message=64 name=a=b\nend\n"
    )
    assert probe("jobs", given=text).splitlines() == [
        "exact=1 snapshot=1 seed=3 scatter=4 settle_ms=20 turns_ms=7 port=hvc0",
        "job 5 pipe limit_ms=100 reps=3 ops=9 child=1 message=64 name=a=b bad=",
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"job 0 w limit_ms=1x", "limit_ms=1x is not a number in 1..86400000"),
        (b"job 0 w reps=257", "reps=257 is not a number in 0..256"),
        (b"job 0 w ops=0", "ops=0 is not a number"),
        (b"job 0 w ops=99999999999999999999", "is not a number"),
        (b"job 0 w word", "word is not key=value"),
        (b"job 0 w =x", "=x is not key=value"),
        (b"job 0 w a=1 a=2", "parameter a is given twice"),
        (b"job 0 w cgroup=both", "cgroup=both is neither root nor child"),
    ],
)
def test_a_job_that_cannot_run_is_kept_with_its_reason(probe: Callable[..., str], line: bytes, reason: str) -> None:
    assert reason in probe("jobs", given=b"kdelta-jobs 1\n" + line + b"\nend\n").split("bad=")[1]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"end\n",
        b"kdelta-jobs 2\nend\n",
        b"kdelta-jobs 1\njob 0 w\n",
        b"kdelta-jobs 1\njob 0 w\nend",
        b"kdelta-jobs 1\nset mode quick\nend\n",
        b"kdelta-jobs 1\nset colour red\nend\n",
        b"kdelta-jobs 1\nset port ../tty\nend\n",
        b"kdelta-jobs 1\njob x w\nend\n",
        b"kdelta-jobs 1\njob 0\nend\n",
        b"kdelta-jobs 1\njob 0 w\njob 0 v\nend\n",
        b"kdelta-jobs 1\nhello\nend\n",
        b"kdelta-jobs 1\n\0end\n",
    ],
)
def test_a_list_that_cannot_be_believed_is_refused_as_a_whole(probe: Callable[..., str], text: bytes) -> None:
    assert probe("jobs", given=text).startswith("refused jobs: ")


def test_garbage_never_crashes_the_parser(probe: Callable[..., str]) -> None:
    rng = random.Random(1)
    pieces = [
        b"kdelta-jobs 1\n",
        b"set ",
        b"job ",
        b"0 ",
        b"w ",
        b"a=b ",
        b"=",
        b"\n",
        b"end\n",
        b"\0",
        b"\xff",
        b"x" * 300,
    ]
    for _ in range(60):
        text = b"kdelta-jobs 1\n" + b"".join(rng.choices(pieces, k=rng.randrange(30)))
        assert probe("jobs", given=text)


# Timed mode.


def test_one_task_gives_windows_of_a_fixed_size_and_a_histogram(run: Run) -> None:
    records = run(f"getppid tasks=1 mode=threads {TIMED}")
    windows = _of(records, "win")
    assert [(w["i"], w["warm"]) for w in windows] == [(0, 1), (1, 0), (2, 0), (3, 0)]
    assert len({w["ops"] for w in windows}) == 1
    (task,) = _of(records, "task")
    assert task["ops"] == sum(int(str(w["ops"])) for w in windows[1:])
    assert task["ns"] == sum(int(str(w["ns"])) for w in windows[1:])
    (hist,) = _of(records, "hist")
    read = histogram(base64.b64decode(str(hist["b64"])))
    assert hist["count"] == read.get_total_count() == 200
    assert [v["name"] for v in _of(records, "val")] in ([], ["kbest_ns"])
    assert _done(records) == ("ok", "")


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_several_tasks_run_free_and_are_counted_each(run: Run, mode: str) -> None:
    records = run(f"getppid tasks=3 mode={mode} {TIMED}")
    assert _done(records) == ("ok", "")
    assert [t["k"] for t in _of(records, "task")] == [0, 1, 2]
    assert all(int(str(w["ops"])) > 0 and int(str(w["ns"])) >= 5_000_000 for w in _of(records, "win"))
    assert [h["count"] for h in _of(records, "hist")] == [600]


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("workload", ["pingpong", "pingpong_after"])
def test_tasks_that_wait_for_each_other_are_stopped(run: Run, mode: str, workload: str) -> None:
    records = run(f"{workload} mode={mode} {TIMED}")
    assert _done(records) == ("ok", "")
    assert [t["k"] for t in _of(records, "task")] == [0]
    assert all(w["bytes"] == w["ops"] or mode for w in _of(records, "win"))
    assert [h["count"] for h in _of(records, "hist")] == [200]


def test_hello_says_what_the_clock_costs(run: Run) -> None:
    hello = run()[0]
    assert hello["proto"] == 1
    assert hello["port"] == "fd"
    assert 0 < float(str(hello["clock_read_least_ns"])) <= float(str(hello["clock_read_ns"]))
    assert float(str(hello["clock_step_ns"])) > 0


# Exact mode.


@pytest.mark.parametrize(("job", "ops"), [("getppid tasks=1 mode=threads", 5), ("getppid tasks=2 mode=processes", 10)])
def test_exact_repetitions_carry_their_interval_ids(run: Run, job: str, ops: int) -> None:
    records = run("nothing_here", f"{job} reps=3 ops=5", mode="exact")
    found = [(r["r"], r["id"], r["ops"]) for r in _of(records, "rep", 1)]
    assert found == [(0, 256, ops), (1, 257, ops), (2, 258, ops)][: len(found)]
    assert found, "one that took as long as the round before it ends a case, by chance also here"
    assert _of(records, "win", 1) == _of(records, "hist", 1) == []
    assert _done(records, 1) == ("ok", "")


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("workload", ["pingpong", "pingpong_after"])
def test_exact_tasks_with_a_peer_that_is_not_counted_end(run: Run, mode: str, workload: str) -> None:
    records = run(f"{workload} mode={mode} reps=2 ops=4", mode="exact")
    assert {r["ops"] for r in _of(records, "rep")} == {4}  # once on several CPUs, twice on one
    assert _done(records) == ("ok", "")


def test_marks_are_in_the_machine_code(program: Path) -> None:
    code = program.read_bytes()
    for op, arg in [(1, 0), (2, 0), (3, 0), (4, 0), *((5, nibble) for nibble in range(16))]:
        mark = b"\x0f\x1f\x84\x00" + (0x4B4D0000 | op << 12 | arg).to_bytes(4, "little")
        assert mark in code, (op, arg)


# What goes wrong has a state and a reason, and the stream stays whole.


def test_a_workload_that_hangs_is_killed_at_its_limit(run: Run) -> None:
    records = run(
        _misbehave("hang", extra="").replace("limit_ms=20000", "limit_ms=300"), f"getppid tasks=1 mode=threads {TIMED}"
    )
    assert _done(records) == ("hung", "timed out after 300 ms")
    assert _of(records, "win") == []
    assert _done(records, 1) == ("ok", "")


@pytest.mark.parametrize(
    ("job", "state", "why"),
    [
        (_misbehave("crash"), "failed", "the case was killed by SIGSEGV"),
        (_misbehave("crash", 2), "failed", "the case was killed by SIGSEGV"),
        (_misbehave("crash_one", 2, "processes"), "failed", "task 1 was killed by SIGABRT"),
        (_misbehave("exit"), "failed", "the case exited with status 7 and without a result"),
        (_misbehave("exit", 2, "processes"), "failed", "exited with status 7"),
        (_misbehave("fail"), "failed", 'write of a "quoted" \ufffd name: No space left on device'),
        (_misbehave("fail", 2, "processes"), "failed", "No space left on device"),
        (_misbehave("done"), "failed", "ran out of work before the first window"),
        (_misbehave("done", 2), "failed", "ran out of work before the first window"),
        (_misbehave("unsupported"), "unsupported", "syscall make_coffee (v9.9)"),
        (_misbehave("missing"), "failed", "parameter nowhere is missing in the job"),
        (_misbehave("bad_figures"), "failed", "figures went wrong"),
        (_misbehave("ok", 0), "failed", "0 tasks: 1 to 4096 are possible"),
        ("nothing_here", "failed", "this guest has no workload nothing_here"),
        (f"getppid tasks=1 mode=threads colour=red {TIMED}", "failed", "workload getppid has no parameter colour"),
        ("getppid limit_ms=soon", "failed", "limit_ms=soon is not a number"),
    ],
)
def test_what_goes_wrong_has_a_state_and_a_reason(run: Run, job: str, state: str, why: str) -> None:
    records = run(job)
    assert _done(records)[0] == state
    assert why in _done(records)[1]
    assert _of(records, "win") == []


def test_a_child_left_behind_ends_with_its_case(run: Run) -> None:
    records = run(_misbehave("orphan"))
    assert _done(records) == ("ok", "")


def test_a_figure_that_is_no_number_is_a_note_and_no_value(run: Run) -> None:
    records = run(_misbehave("ok"))
    assert "slab_bytes" in [v["name"] for v in _of(records, "val")]
    assert "not_a_number" not in [v["name"] for v in _of(records, "val")]
    assert [r["text"] for r in records if r["t"] == "note"] == ["job 0: not_a_number was not measured"]


def test_scratch_directories_are_removed(run: Run) -> None:
    before = scratch_left(limit_s=0.0)  # of a harness that somebody killed
    run(_misbehave("ok"), _misbehave("crash"))
    assert scratch_left(before) == []


def test_a_job_list_cut_off_is_a_note_and_an_end(program: Path, tmp_path: Path) -> None:
    stream = protocol.parse(_stream(program, tmp_path, "kdelta-jobs 1\njob 0 getppid"))
    assert stream.state == "ok"
    assert [type(r).__name__ for r in stream.records] == ["Hello", "Note", "End"]


def test_a_full_disk_under_the_stream_is_an_error(program: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("kdelta-jobs 1\nend\n")
    with open("/dev/full", "wb") as full:
        words = ("--native", "--jobs", tmp_path / "jobs", "--data", tmp_path, "--fd", full.fileno())
        argv = [str(program), *map(str, words)]
        done = subprocess.run(argv, pass_fds=[full.fileno()], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr


@pytest.mark.full
def test_the_harness_costs_at_most_two_percent_of_the_cheapest_call(run: Run) -> None:
    ratios = []
    for _ in range(5):
        records = run("bare warmup=2 windows=400 window_ms=2 latency_ops=0 limit_ms=60000")
        bare = next(float(str(v["v"])) for v in _of(records, "val") if v["name"] == "bare_ns")
        ratios.append(min(int(str(w["ns"])) / int(str(w["ops"])) for w in _of(records, "win")[2:]) / bare)
    assert statistics.median(ratios) <= 1.02
