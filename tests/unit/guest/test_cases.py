# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases (guest/case.h) on this machine: registered as the host reads them, run, and told when they cannot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.errors import UserError
from kdelta.guest import binary, protocol
from kdelta.guest.jobs import case_jobs
from kdelta.model import Case, Effort, Mode
from kdelta.paths import shipped
from kdelta.spec import cases as grammar
from kdelta.spec import sources, suites
from kdelta.spec.workloads import catalogue

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")

GUEST = shipped("guest")
SHORT = Effort(warmup_windows=1, windows=1, window_ms=2, latency_ops=20, repetitions=2, limit_ms=20_000)
AWKWARD = r"""
#include "case.h"
#include <stdatomic.h>
#include <sys/mount.h>
static int ends[2];
static int undone, done;
CASE(fails, "an operation fails") { OK(close(-1)); }
CASE(expects, "an operation is not as expected") { EXPECT(getppid() < 0); }
CASE(setup_fails, "setup fails") { }
SETUP(setup_fails) { OK(open("missing", O_RDONLY)); }
CASE(needs, "the kernel has not got it") { }
SETUP(needs) { NEED("CONFIG_NOTHING", syscall(100000)); }
CASE(helper_fails, "the helper fails while the case waits for it") { char c; read(ends[0], &c, 1); }
SETUP(helper_fails) { OK(pipe(ends)); if (HELPER()) { usleep(20000); OK(close(-1)); } }
CASE(helper_ends, "a helper whose block ends") { OK(getppid()); }
SETUP(helper_ends) { if (HELPER()) { } }
CASE_N(number, "N is the number", 7, 8) { EXPECT(N == 7 || N == 8); done++; }
AFTER(number) { EXPECT(++undone == done); }
TEARDOWN(number) { EXPECT(done > 0 && undone == done); }
CASE(thread_fails, "a thread fails while the case waits for it") { pause(); }
static void *thread(void *arg) { struct wl_task *t = arg; usleep(20000); OK(close(-1)); return NULL; }
SETUP(thread_fails) { pthread_t p; EXPECT(!pthread_create(&p, NULL, thread, t)); }
CASE(each_thread, "threads of one process, set up once") { __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST); }
EVERY_CPU(each_thread, threads);
SETUP(each_thread) { EXPECT(!undone++); }
TEARDOWN(each_thread) { EXPECT(undone == 1 && done > 1); }
CASE(each_process, "processes in directories of their own, below that of what they share") {
	OK(access("../shared", F_OK)); OK(access("own", F_OK)); }
EVERY_CPU(each_process, processes);
SHARED(each_process) { OK(mkdir("shared", 0700)); }
SETUP(each_process) { OK(mkdir("own", 0700)); }
CASE(each_fails, "an operation of a thread fails") { OK(close(-1)); }
EVERY_CPU(each_fails, threads);
"""

Outcome = dict[str, tuple[str, str]]
Run = Callable[..., Outcome]


@pytest.fixture
def cache(guest_cache: Path) -> Path:
    return guest_cache


@pytest.fixture
def program(cache: Path) -> Path:
    return binary.build("x86_64", cache=cache)


def run(program: Path, folder: Path, cases: list[Case], mode: Mode = "timed") -> Outcome:
    """State and reason of each case, natively."""
    ops = dict.fromkeys(range(len(cases)), 3)
    efforts = dict.fromkeys(ops, SHORT)
    (folder / "jobs").write_text(case_jobs(dict(enumerate(cases)), mode=mode, efforts=efforts, exact_ops=ops).text())
    with (folder / "stream").open("wb") as file:
        argv: list[str | Path] = [
            program,
            "--native",
            "--jobs",
            folder / "jobs",
            "--data",
            folder,
            "--fd",
            str(file.fileno()),
        ]
        subprocess.run(argv, pass_fds=[file.fileno()], check=True, timeout=300)
    stream = protocol.parse((folder / "stream").read_bytes())
    assert (stream.state, stream.noise) == ("ok", ())
    return {cases[r.j].name: (r.state, r.why) for r in stream.records if isinstance(r, protocol.Done)}


def _listed(program: Path) -> list[tuple[str, int, str]]:
    said = subprocess.run([program, "--cases"], capture_output=True, text=True, check=True).stdout
    rows = (line.split("\t") for line in said.splitlines())
    return sorted((name, int(ops), title) for name, ops, title in rows)


def _read(own: list[Path]) -> list[tuple[str, int, str]]:
    found = catalogue(own).values()
    return sorted(
        (w.name, w.exact_ops, w.title) for w in found if sources.kind_of(w.source_path.read_text()) == "cases"
    )


def _numbered(row: tuple[str, int, str]) -> tuple[str, int, str]:
    """A row of the guest's with N in its title as the host shows it."""
    name, ops, title = row
    number = re.search(r"-(\d+)$", name)
    return name, ops, re.sub(r"\bN\b", number[1], title) if number else title


def test_the_host_reads_what_the_compiler_registers(program: Path, cache: Path, tmp_path: Path) -> None:
    assert [_numbered(row) for row in _listed(program)] == _read([])
    (tmp_path / "awkward.c").write_text(AWKWARD)
    own = binary.build("x86_64", [tmp_path], cache=cache)
    assert [_numbered(row) for row in _listed(own)] == _read([tmp_path])
    assert len(_listed(own)) == len(_listed(program)) + 12


# Exact intervals are preceded by rests, which pass at once in an emulated guest and take minutes here.
@pytest.mark.parametrize("mode", ["timed", pytest.param("exact", marks=pytest.mark.full)])
@pytest.mark.parametrize(("suite", "most"), [("syscalls", 50), ("contention", 20), ("unixbench", 6)])
def test_every_case_of_the_suite_runs_on_this_machine_or_names_what_it_needs(
    program: Path, tmp_path: Path, mode: Mode, suite: str, most: int
) -> None:
    known = catalogue()
    chosen = [case for case in grammar.of_suite(suites.suites()[suite], known) if case.workload.startswith(suite)]
    cases = [case for case in chosen if known[case.workload].counted is None]  # not programs
    done = run(program, tmp_path, cases, mode)
    assert list(done) == [case.name for case in cases]
    assert {name: (state, why) for name, (state, why) in done.items() if state not in ("ok", "unsupported")} == {}
    assert all("needs " in why for state, why in done.values() if state == "unsupported")
    assert [state for state, _ in done.values()].count("ok") > most


def test_cases_that_share_a_file_run_on_one_cpu(program: Path, tmp_path: Path) -> None:
    """access(2) of one file by a process alone failed: it sat beside the file, not below it."""
    known = catalogue()
    cases = [grammar.parse_case(f"contention/{name}", known)[0] for name in ("open_one", "access_one", "pread_one")]
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        done = run(program, tmp_path, cases)
    finally:
        os.sched_setaffinity(0, mine)
    assert done == dict.fromkeys((case.name for case in cases), ("ok", ""))


def test_a_failure_is_told_at_once_and_by_its_call(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "awkward.c").write_text(AWKWARD)
    text = str(tmp_path / "awkward.c")
    program = binary.build("x86_64", [tmp_path / "awkward.c"], cache=cache)
    done = run(program, tmp_path, grammar.parse_case(text, catalogue([tmp_path / "awkward.c"])))
    assert done["fails"] == ("failed", "operation of task 0 failed: close(-1): Bad file descriptor")
    assert done["expects"][1].startswith("operation of task 0 failed: getppid() < 0")
    assert done["setup_fails"][1] == 'setup: open("missing", O_RDONLY): No such file or directory'
    assert done["needs"] == ("unsupported", "needs CONFIG_NOTHING (syscall(100000): Function not implemented)")
    for name in ("helper_fails", "thread_fails"):
        assert done[name] == ("failed", "operation of task 0 failed: close(-1): Bad file descriptor"), name
    whole = ("helper_ends", "number-7", "number-8", "each_thread", "each_process")
    assert {done[name] for name in whole} == {("ok", "")}
    assert re.match(r"operation of task \d+ failed: close\(-1\): Bad file descriptor", done["each_fails"][1])


@pytest.mark.parametrize("mode", ["timed", "exact"])
def test_the_case_of_the_how_to_is_twenty_lines_and_runs(cache: Path, tmp_path: Path, mode: Mode) -> None:
    how_to = (GUEST.parent / "docs" / "how-to" / "add-a-workload.md").read_text()
    text = how_to.split("```c\n")[1].split("```")[0]
    assert text.count("\n") <= 20
    path = tmp_path / "pingpong.c"
    path.write_text(text)
    program = binary.build("x86_64", [path], cache=cache)
    done = run(program, tmp_path, grammar.parse_case(str(path), catalogue([path])), mode)
    assert done == {"epoll_pingpong": ("ok", "")}


def test_two_cases_of_one_name_are_refused_by_the_host_and_by_the_linker(cache: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.c").write_text('#include "case.h"\nCASE(twice, "x")\n{\n}\n')
    with pytest.raises(UserError, match=r"b\.c: twice is already in .*a\.c: rename it"):
        catalogue([tmp_path])
    with pytest.raises(UserError, match="multiple definition"):
        binary.build("x86_64", [tmp_path], cache=cache)


def test_a_loop_of_operations_has_nothing_but_calls_and_cold_branches(tmp_path: Path) -> None:
    source = GUEST / "suites" / "syscalls" / "waiting.c"
    argv = [
        "gcc",
        "-O2",
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-ffunction-sections",
        "-DCASE_SUITE=syscalls",
        "-c",
        str(source),
    ]
    subprocess.run([*argv, "-o", str(tmp_path / "o")], check=True)
    section = ".text.case_batch_syscalls_eventfd"
    argv = ["objdump", "-d", "-r", "-j", section, str(tmp_path / "o")]
    code = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"call.*\n.*R_X86_64_PL\w+\s+(\w+)", code)) == {"write", "read"}
    assert "case_broke" not in code


def test_a_header_or_data_file_that_changed_makes_another_guest(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text('#include "case.h"\n#include "part.inc"\nCASE(part, "x")\n{\n}\n')
    (tmp_path / "part.inc").write_text("static int x __attribute__((unused));\n")
    (tmp_path / "data.txt").write_text("1")
    data = [tmp_path / "data.txt"]
    first = binary.build("x86_64", [tmp_path], cache=cache, data=data)
    assert binary.build("x86_64", [tmp_path], cache=cache, data=data) == first
    (tmp_path / "part.inc").write_text("static int y __attribute__((unused));\n")
    second = binary.build("x86_64", [tmp_path], cache=cache, data=data)
    (tmp_path / "data.txt").write_text("2")
    assert len({first, second, binary.build("x86_64", [tmp_path], cache=cache, data=data)}) == 3
