# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiling the guest program: what it is made of, what is cached, and what users are told when it fails."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.guest import binary, protocol
from kdelta.model import Arch
from kdelta.paths import shipped
from unit.guest.objects import with_objects

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")

ELF_MACHINE = {"x86_64": 0x3E, "arm64": 0xB7}
# Two testcases as will-it-scale has them: they define the same names, and one starts tasks of its own.
PLAIN = """
#include <unistd.h>
#include <sys/syscall.h>
char *testcase_description = "getppid in a loop";
int helper;
void worker(void) { helper++; }
void testcase(unsigned long long *iterations, unsigned long nr)
{
	while (1) {
		syscall(SYS_getppid);
		worker();
		(*iterations)++;
	}
}
"""
WITH_TASK = """
#define _GNU_SOURCE
#include <assert.h>
#include <unistd.h>
char *testcase_description = "ping pong with a task";
void new_task(void *(*task)(void *), void *arg);
struct args { int in, out; } helper;
static int prepared;
void *worker(void *arg)
{
	struct args *a = arg;
	char c;
	while (read(a->in, &c, 1) == 1 && write(a->out, &c, 1) == 1)
		;
	return 0;
}
void testcase_prepare(unsigned long nr_tasks) { prepared = nr_tasks == 1; }
void testcase_cleanup(void) { assert(prepared); }
void testcase(unsigned long long *iterations, unsigned long nr)
{
	int there[2], back[2];
	char c = 'x';
	assert(prepared && !pipe(there) && !pipe(back));
	helper.in = there[0];
	helper.out = back[1];
	new_task(worker, &helper);
	while (1) {
		assert(write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1);
		(*iterations)++;
	}
}
"""
OWN = """
#include <unistd.h>
#include "workload.h"
static void op(struct wl_task *t) { (void)t; getpid(); }
static const struct workload own = { .name = "own", .op = op };
WORKLOAD(own);
"""


@pytest.fixture
def cache(guest_cache: Path) -> Path:
    return guest_cache


def _folder(path: Path, **files: str) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)
    return path


def _states(program: Path, folder: Path, *jobs: str) -> dict[int, tuple[str, str, int]]:
    """State, reason and operations of each job, run on this machine."""
    lines = [f"job {i} {job} limit_ms=20000 warmup=1 windows=2 window_ms=5" for i, job in enumerate(jobs)]
    (folder / "jobs.txt").write_text("\n".join(["kdelta-jobs 1", *lines, "end", ""]))
    with (folder / "stream").open("wb") as file:
        argv = [
            str(program),
            "--native",
            "--jobs",
            str(folder / "jobs.txt"),
            "--data",
            str(folder),
            "--fd",
            str(file.fileno()),
        ]
        subprocess.run(argv, pass_fds=[file.fileno()], check=True, timeout=60)
    records = protocol.parse((folder / "stream").read_bytes()).records
    ops = {i: sum(r.ops for r in records if isinstance(r, protocol.Window) and r.j == i) for i in range(len(jobs))}
    return {r.j: (r.state, r.why, ops[r.j]) for r in records if isinstance(r, protocol.Done)}


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_a_static_program_is_made_for_each_architecture(cache: Path, arch: Arch) -> None:
    try:
        program = binary.build(arch, cache=cache)
    except HostError as error:
        pytest.skip(str(error))
    data = program.read_bytes()
    assert data[:4] == b"\x7fELF"
    assert int.from_bytes(data[18:20], "little") == ELF_MACHINE[arch]
    assert b"/lib64/ld-linux" not in data
    assert program.parent.parent == cache / "guest"


def test_every_workload_of_the_folder_is_in_it_and_no_test_helper(cache: Path) -> None:
    data = binary.build("x86_64", cache=cache).read_bytes()
    for source in (shipped("guest") / "workloads").glob("*.toml"):
        assert source.stem.encode() in data
    assert b"misbehave" not in data


def test_equal_sources_give_equal_bytes_and_are_compiled_once(cache: Path, tmp_path: Path) -> None:
    first = binary.build("x86_64", cache=cache)
    stamp = first.stat().st_mtime_ns
    assert binary.build("x86_64", cache=cache) == first
    assert first.stat().st_mtime_ns == stamp
    assert binary.build("x86_64", cache=tmp_path).read_bytes() == first.read_bytes()
    assert sorted(path.name for path in first.parent.iterdir()) == [binary.NAME, f"{binary.NAME}.sha256"]


def test_a_damaged_program_is_compiled_again(tmp_path: Path) -> None:
    with_objects(tmp_path)
    made = binary.build("x86_64", cache=tmp_path)
    whole = made.read_bytes()
    made.write_bytes(whole[: len(whole) // 2])
    assert binary.build("x86_64", cache=tmp_path).read_bytes() == whole


def test_a_warning_that_a_newer_compiler_knows_stops_nobody_but_the_check(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(shipped("guest"), tmp_path / "guest")
    (tmp_path / "guest" / "new.c").write_text("static int unused;\n")
    monkeypatch.setattr(binary, "shipped", lambda name: tmp_path / name)
    assert binary.build("x86_64", cache=cache).is_file()
    with pytest.raises(HostError, match="unused"):
        binary.build("x86_64", cache=cache, warnings=binary.STRICT)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_an_object_may_be_kept_on_another_file_system(tmp_path: Path) -> None:
    """As where /tmp is memory (Debian 13): "Invalid cross-device link"."""
    source, kept = tmp_path / "one.c", tmp_path / "one.o"
    source.write_text("int one;\n")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        unit, target = binary._Unit(source, ()), Path(memory) / "0.o"
        assert binary._object(binary.toolchain("x86_64"), unit, target, kept, pytest.fail) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.c", "one.o", "one.o.sha256"]


def test_a_users_file_costs_its_own_compilation_alone(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary.build("x86_64", cache=cache)
    compiled: list[str] = []
    compile_one = binary._compile

    def noted(tools: binary.Toolchain, unit: binary._Unit, target: Path, log: Callable[[str], None]) -> str | None:
        compiled.append(unit.source.name)
        return compile_one(tools, unit, target, log)

    monkeypatch.setattr(binary, "_compile", noted)
    binary.build(
        "x86_64", [_folder(tmp_path / "mine", alone__c=OWN.replace("own", "alone"), alone__toml="")], cache=cache
    )
    assert compiled == ["alone.c"]


def test_testcases_of_will_it_scale_run_unmodified_as_processes_and_threads(cache: Path, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "wis", getppid1__c=PLAIN, pong1__c=WITH_TASK, notes__c="int unrelated;\n")
    program = binary.build("x86_64", cache=cache, own=[folder])
    jobs = [f"wis/{name} tasks=1 mode={mode}" for name in ("getppid1", "pong1") for mode in ("processes", "threads")]
    done = _states(program, tmp_path, *jobs)
    assert [state for state, _, _ in done.values()] == ["ok"] * 4, done
    assert all(ops > 0 for _, _, ops in done.values())


def test_a_workload_of_the_users_own_is_compiled_with_them(cache: Path, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "mine", own__c=OWN, own__toml="")
    done = _states(binary.build("x86_64", cache=cache, own=[folder]), tmp_path, "own")
    assert done[0][0] == "ok"


def test_a_testcase_that_does_not_compile_is_the_users_error_with_file_and_line(cache: Path, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "wis", broken__c=PLAIN.replace("(*iterations)++;", "iterations +;"))
    with pytest.raises(UserError, match=r"broken\.c:12:\d+: error:") as caught:
        binary.build("x86_64", cache=cache, own=[folder])
    log = Path(str(caught.value).rsplit("(", 1)[1].rstrip(")"))
    assert "broken.c" in log.read_text()


def test_a_testcase_that_does_not_link_is_the_users_error(cache: Path, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "wis", lost__c=PLAIN.replace("helper++;", "nowhere_defined();"))
    with pytest.raises(UserError, match="nowhere_defined"):
        binary.build("x86_64", cache=cache, own=[folder])


def test_testcases_whose_names_cannot_be_told_apart_are_refused(cache: Path, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "wis")
    for name in ("a-b.c", "a.b.c"):
        (folder / name).write_text(PLAIN)
    with pytest.raises(UserError, match="too similar to"):
        binary.build("x86_64", cache=cache, own=[folder])
    (folder / "a-b.c").rename(folder / 'a"b.c')
    with pytest.raises(UserError, match="rename it"):
        binary.build("x86_64", cache=cache, own=[folder])


def test_a_folder_that_is_not_there_is_the_users_error(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such directory"):
        binary.build("x86_64", cache=cache, own=[tmp_path / "nowhere"])


def test_a_missing_compiler_names_its_package(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(HostError, match="apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"):
        binary.build("arm64", cache=cache)


def test_a_cache_that_cannot_be_written_is_the_hosts_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="KDELTA_CACHE"):
        binary.build("x86_64", cache=tmp_path / "file")
