# SPDX-License-Identifier: GPL-2.0-or-later
"""Every shipped workload and the will-it-scale adapter on this machine: states, counts and figures, never times."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kdelta.guest import binary
from kdelta.guest.jobs import case_jobs
from kdelta.guest.metrics import repetitions, timed_runs
from kdelta.guest.protocol import Done, Record, Repetition, Task, Window, parse
from kdelta.model import Case, Effort, Mode, RunResult
from kdelta.paths import shipped
from kdelta.spec.cases import parse_case
from kdelta.spec.workloads import Workload, catalogue

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")

GUEST = shipped("guest")
WIS = Path(__file__).parents[2] / "data" / "wis"
SHORT = Effort(warmup_windows=1, windows=2, window_ms=10, latency_ops=100, repetitions=3, limit_ms=120_000)

EVERY_KNOB = (
    "pidfd_open:held=0|1",
    "pidfd_open:target=child,targets=8,held=0|1",
    "path_lookup:paths=recorded|hits|misses",
    "path_lookup:paths=depth,depth=1|16",
    "path_lookup:paths=symlinks,hops=0|8",
    "path_lookup:syscall=access|stat|openat,tasks=2,mode=threads|processes,directory=shared|own",
    "pipe:writers=2,readers=3,mode=threads|processes,pattern=stream|mix|herd|small_after_big",
    "pipe:message=1|1M,pipe_bytes=4096",
    "fork_vmas:vmas=64,pages=0|10,fill=zero|random",
    "thread_spawn:tasks=1|2,mode=threads|processes",
    "thread_spawn:detached=1,stack=0|64K",
    "thread_spawn:instead=fork",
)

Outcome = tuple[dict[str, RunResult], list[Record], dict[str, int]]
Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def known() -> dict[str, Workload]:
    return catalogue([WIS])


@pytest.fixture(scope="session")
def program(guest_cache: Path) -> Path:
    return binary.build("x86_64", cache=guest_cache, own=[WIS])


@pytest.fixture(scope="session")
def sanitized(guest_cache: Path) -> Path:
    """The same sources under the address and undefined-behaviour sanitizers, compiled by one worker for all."""
    target = guest_cache / "sanitized"
    with (guest_cache / "sanitized.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _compile_sanitized(target)
    return target


def _compile_sanitized(target: Path) -> None:
    sources = [*(GUEST.glob("*.c")), *GUEST.glob("workloads/*.c"), *GUEST.glob("suites/syscalls/*.c")]
    flags = ["-g1", "-O0", "-std=gnu11", "-D_GNU_SOURCE", "-pthread", "-DCASE_SUITE=syscalls"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *flags, *map(str, sources), "-lm", "-o", str(target)], check=True)


def _cases(texts: Sequence[str], known: dict[str, Workload]) -> list[Case]:
    return [case for text in texts for case in parse_case(text, known)]


@pytest.fixture
def run(known: dict[str, Workload], tmp_path: Path) -> Run:
    """Run cases; the results by name, all records, and the index of each case."""

    def call(program: Path, *texts: str, mode: Mode = "timed", wrapper: Sequence[str] = ()) -> Outcome:
        cases = _cases(texts, known)
        indexes = range(len(cases))
        exact_ops = {i: max(1, known[cases[i].workload].exact_ops) for i in indexes}
        text = case_jobs(
            dict(enumerate(cases)), mode=mode, efforts=dict.fromkeys(indexes, SHORT), exact_ops=exact_ops
        ).text()
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        (folder / "jobs").write_text(text)
        with (folder / "stream").open("wb") as file:
            argv: list[str | Path] = [
                *wrapper,
                program,
                "--native",
                "--jobs",
                folder / "jobs",
                "--data",
                GUEST / "data",
            ]
            subprocess.run([*argv, "--fd", str(file.fileno())], pass_fds=[file.fileno()], check=True, timeout=300)
        stream = parse((folder / "stream").read_bytes())
        assert (stream.state, stream.noise) == ("ok", ())
        metrics = {i: known[cases[i].workload].metrics if mode == "timed" else () for i in indexes}
        runs = timed_runs(stream.records, list(indexes), metrics, ("ok", ""))
        return (
            {case.label: result for case, result in zip(cases, runs, strict=True)},
            list(stream.records),
            {case.label: i for i, case in enumerate(cases)},
        )

    return call


def _bad(runs: dict[str, RunResult]) -> dict[str, str]:
    return {name: f"{r.state}: {r.why}" for name, r in runs.items() if r.state != "ok"}


@pytest.mark.full
def test_every_knob_runs_on_this_kernel(program: Path, run: Run) -> None:
    runs, _, _ = run(program, *EVERY_KNOB)
    assert _bad(runs) == {}
    assert all(series.values for r in runs.values() for series in r.series)


def test_every_metric_of_a_default_case_has_a_value(program: Path, run: Run, known: dict[str, Workload]) -> None:
    runs, _, _ = run(program, "pidfd_open", "path_lookup", "pipe", "fork_vmas", "thread_spawn")
    assert _bad(runs) == {}
    for name, result in runs.items():
        conditional = {"slab_per_name", "kernel_per_vma"}  # only with names; only where nobody else gives memory back
        assert {m.name for m in known[name].metrics} - conditional == {s.metric for s in result.series} - conditional


def test_no_workload_breaks_a_rule_that_the_sanitizers_check(sanitized: Path, run: Run) -> None:
    _, records, jobs = run(sanitized, *EVERY_KNOB, mode="exact")
    ended = {r.j: f"{r.state}: {r.why}" for r in records if isinstance(r, Done)}
    assert {label: end for label, job in jobs.items() if (end := ended.get(job)) != "ok: "} == {}
    runs, _, _ = run(sanitized, "pipe:readers=2", "thread_spawn:tasks=2,mode=threads")
    assert _bad(runs) == {}


def test_no_case_breaks_a_rule_that_the_sanitizers_check(sanitized: Path, run: Run, known: dict[str, Workload]) -> None:
    """Four parts of them at once: each case waits for ticks of the clock."""
    labels = [case.label for case in _cases(["syscalls/*"], known)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda part: run(sanitized, *labels[part::4], mode="exact")[1], range(4)))
    states = [record.state for records in done for record in records if isinstance(record, Done)]
    assert len(states) == len(labels)
    assert set(states) <= {"ok", "unsupported"}


def test_the_sources_compile_for_arm64(guest_cache: Path) -> None:
    if shutil.which("aarch64-linux-gnu-gcc") is None:
        pytest.skip("no aarch64-linux-gnu-gcc: kdelta doctor names the package")
    program = binary.build("arm64", cache=guest_cache, own=[WIS])
    assert program.read_bytes()[18:20] == b"\xb7\x00"  # EM_AARCH64


def test_the_shipped_workloads_mark_the_intervals_that_they_were_asked_for(
    program: Path, run: Run, known: dict[str, Workload]
) -> None:
    texts = ["pidfd_open", "path_lookup", "path_lookup:tasks=2", "pipe", "fork_vmas:vmas=64", "thread_spawn:tasks=2"]
    texts += [f"pipe:writers=2,readers=2,mode=processes,pattern={p}" for p in ("mix", "herd", "small_after_big")]
    _, records, index = run(program, *texts, mode="exact")
    assert [(r.state, r.why) for r in records if isinstance(r, Done)] == [("ok", "")] * len(index)
    for name, i in index.items():
        assert len(repetitions(records, i)) == (SHORT.repetitions if len(os.sched_getaffinity(0)) == 1 else 1), name
    counted = {name: repetitions(records, i)[0].ops for name, i in index.items()}
    ops = known["pipe"].exact_ops
    assert (counted["pipe"], counted["pipe:writers=2,readers=2,mode=processes,pattern=mix"]) == (ops, 2 * ops)


# path_lookup


def test_a_sweep_is_205_lookups_of_which_118_fail_and_symlinks_are_crossed(program: Path, run: Run) -> None:
    runs, _, _ = run(program, "path_lookup:paths=recorded|hits|misses", "path_lookup:paths=symlinks,hops=0|3")
    facts = {name: (r.facts["lookups"], r.facts["enoent"], r.facts["links_crossed"]) for name, r in runs.items()}
    assert facts["path_lookup"] == (205, 118, 21)
    assert facts["path_lookup:paths=hits"][:2] == (205, 0)
    assert facts["path_lookup:paths=misses"][:2] == (205, 205)
    assert facts["path_lookup:paths=symlinks,hops=0"] == (205, 0, 0)
    assert facts["path_lookup:paths=symlinks,hops=3"] == (205, 0, 3 * 205)


def test_names_keep_their_results_where_chroot_is_refused(program: Path, run: Run) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to give up CAP_SYS_CHROOT")
    drop = ["setpriv", "--bounding-set=-sys_chroot"]
    runs, _, _ = run(program, "path_lookup", "path_lookup:tasks=2,directory=own", wrapper=drop)
    assert _bad(runs) == {}
    assert {r.facts["chroot"] for r in runs.values()} == {0}


def test_the_recorded_set_is_what_it_says(known: dict[str, Workload]) -> None:
    folder = GUEST / "data" / "path_lookup"
    lines = [line.split(" ", 2) for line in (folder / "paths.txt").read_text().splitlines()]
    assert [len(lines), len({p for _, _, p in lines})] == [205, 205]
    assert sum(kind == "miss" for kind, _, _ in lines) == 118
    assert sum(int(links) for _, links, _ in lines) == 21
    components = [len([c for c in path.split("/") if c]) for _, _, path in lines]
    assert sum(components) / len(components) > 4
    made = {line.split(" ")[1] for line in (folder / "tree.txt").read_text().splitlines()}
    assert {os.path.dirname(p) for p in made} <= made | {"/"}
    assert known["path_lookup"].parts_per_op == 205


def test_a_tree_that_differs_from_the_data_fails_the_case(
    program: Path, known: dict[str, Workload], tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("the tree is verified under chroot, which needs root")
    shutil.copytree(GUEST / "data", tmp_path / "data")
    paths = tmp_path / "data" / "path_lookup" / "paths.txt"
    paths.write_text(paths.read_text().replace("hit 0 ", "hit 1 ", 1))
    (case,) = parse_case("path_lookup", known)
    text = case_jobs({0: case}, mode="timed", efforts={0: SHORT}, exact_ops={0: 1}).text()
    (tmp_path / "jobs").write_text(text)
    with (tmp_path / "stream").open("wb") as file:
        argv: list[str | Path] = [program, "--native", "--jobs", tmp_path / "jobs", "--data", tmp_path / "data"]
        subprocess.run([*argv, "--fd", str(file.fileno())], pass_fds=[file.fileno()], check=True, timeout=60)
    stream = parse((tmp_path / "stream").read_bytes())
    (result,) = timed_runs(stream.records, [0], {0: known["path_lookup"].metrics}, ("ok", ""))
    assert result.state == "failed"
    assert "the data says" in result.why


# pidfd_open, pipe, fork_vmas


def test_nothing_is_left_of_targets_that_have_exited(program: Path, run: Run) -> None:
    runs, records, _ = run(program, "pidfd_open:target=child,targets=4")
    (result,) = runs.values()
    opened = sum(record.ops for record in records if isinstance(record, Window))
    assert result.facts["objects_left"] < opened / 4  # a leak leaves one or more for each; others use this machine too


def test_only_writers_are_counted(program: Path, run: Run) -> None:
    _, records, _ = run(program, "pipe:writers=2,readers=3")
    assert [r.k for r in records if isinstance(r, Task)] == [0, 1]


def test_a_pipe_that_the_kernel_refuses_fails_with_the_remedy(program: Path, run: Run) -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv to give up CAP_SYS_RESOURCE")
    drop = ["setpriv", "--bounding-set=-sys_resource"] if os.geteuid() == 0 else []
    runs, _, _ = run(program, "pipe:pipe_bytes=1G", wrapper=drop)
    (result,) = runs.values()
    assert result.state == "failed"
    assert "/proc/sys/fs/pipe-max-size" in result.why


def test_mappings_do_not_merge_and_are_counted(program: Path, run: Run) -> None:
    runs, _, _ = run(program, "fork_vmas:vmas=1|600|4000")
    assert _bad(runs) == {}
    assert sorted(r.facts["mappings"] for r in runs.values()) == [1, 600, 4000]


def test_names_are_set_or_the_missing_config_is_named(program: Path, run: Run) -> None:
    runs, _, _ = run(program, "fork_vmas:vmas=64,names=same|distinct|longest")
    for result in runs.values():
        assert result.state in ("ok", "unsupported")
        assert result.state == "ok" or "CONFIG_ANON_VMA_NAME" in result.why


def test_more_mappings_than_the_sysctl_allows_fail_with_the_remedy(program: Path, run: Run) -> None:
    if int(Path("/proc/sys/vm/max_map_count").read_text()) > 65536:
        pytest.skip("vm.max_map_count allows the largest case here")
    runs, _, _ = run(program, "fork_vmas:vmas=65536")
    (result,) = runs.values()
    assert result.state == "failed"
    assert "vm.max_map_count" in result.why


# thread_spawn


def test_a_loop_that_maps_nothing_says_so(program: Path, run: Run) -> None:
    runs, _, _ = run(program, "thread_spawn:tasks=1|2,mode=processes,detached=0|1,stack=0|64K")
    assert _bad(runs) == {}
    assert {r.facts["maps_changed"] for r in runs.values()} == {0}


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
@pytest.mark.parametrize("case", ["thread_spawn", "thread_spawn:detached=1"])
def test_no_thread_costs_an_mmap_or_munmap_after_warm_up(program: Path, run: Run, tmp_path: Path, case: str) -> None:
    log = tmp_path / "strace"
    calls = "trace=clone3,clone,mmap,munmap,mremap"
    run(program, case, wrapper=["strace", "-f", "-e", calls, "-o", str(log)])
    lines = log.read_text().splitlines()
    threads = [i for i, line in enumerate(lines) if "CLONE_THREAD" in line]
    assert len(threads) > 164  # 64 of warm-up, 100 latencies
    loop = lines[threads[70] : threads[-1]]
    assert [line for line in loop if re.search(r"\b(mmap|munmap|mremap)\(", line)] == []


def test_stacks_that_libc_would_unmap_are_refused_or_made_smaller(program: Path, run: Run) -> None:
    case = "thread_spawn:tasks=8,mode=threads"
    runs, _, _ = run(program, f"{case},stack=8M", case, f"{case},detached=1", f"{case},stack=64K")
    refused, fitting, detached, asked = runs.values()
    assert refused.state == "failed"
    assert "set stack=16K" in refused.why
    assert [r.state for r in (fitting, detached, asked)] == ["ok"] * 3
    assert [r.facts["stack_bytes"] for r in (fitting, detached, asked)] == [4 << 20, 1 << 20, 64 << 10]


# will-it-scale


def test_unmodified_testcases_run_as_threads_and_processes(program: Path, run: Run) -> None:
    runs, records, index = run(
        program, "wis/tick:tasks=1|2,mode=threads|processes", "wis/ping-pong:tasks=2,mode=threads|processes"
    )
    assert _bad(runs) == {}
    for name, i in index.items():
        tasks = [r for r in records if isinstance(r, Task) and r.j == i]
        assert len(tasks) == (2 if "tasks=2" in name else 1)
        assert any(task.ops > 0 for task in tasks), "a busy host may leave one of them without a CPU"


def test_a_testcase_that_returns_fails_and_leaves_no_process(program: Path, run: Run) -> None:
    runs, _, _ = run(program, "wis/clash:tasks=2,mode=threads|processes")
    assert {r.state for r in runs.values()} == {"failed"}
    assert all("the testcase returned" in r.why for r in runs.values())


def test_loops_that_never_return_have_intervals_of_counted_operations(program: Path, run: Run) -> None:
    texts = ("wis/tick:tasks=1|2,mode=threads|processes", "wis/ping-pong:mode=threads|processes")
    _, records, index = run(program, *texts, mode="exact")
    assert [r.state for r in records if isinstance(r, Done)] == ["ok"] * 6
    assert all(min(r.ops for r in records if isinstance(r, Repetition) and r.j == i) > 0 for i in index.values())


def test_a_testcase_that_returns_fails_when_counted_too(program: Path, run: Run) -> None:
    _, records, _ = run(program, "wis/clash", mode="exact")
    assert [r.state for r in records if isinstance(r, Done)] == ["failed"]
