# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of this machine in guests: counted from exec to the last wait, told what they lack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.store.store import Store

# A terminal (devpts), as of script(1); a name as bash has for <(...); a user namespace, which no chroot may have.
COUNT = r"""#!/bin/sh
exec 3<>/dev/ptmx
test -e /dev/fd/3 && unshare -U true || exit 9
for i in $(seq "$1"); do cat words.txt; done
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("one\ntwo\n")
    (script := tmp_path / "count.sh").write_text(COUNT)
    script.chmod(0o755)
    return tmp_path


def test_what_a_program_starts_is_counted(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--json", "-q", "--")
    got = json.loads(kdelta(*run, "./count.sh", "11").stdout)
    (row,) = (row for row in got["results"] if row["metric"] == "instructions")  # the script names seq and cat
    assert (row["case"], row["state"]) == ("count.sh 11", "ok"), row
    assert got["found"] == {"count.sh 11": f"{folder}: 2 files and directories, 0.0 MiB"}
    assert 11 * 200_000 < row["baseline"] < 11 * 2_000_000  # fork, exec and exit of cat and of the shell
    assert kdelta("report", "last", "--printed", "0.0").stdout == "one\ntwo\n" * 11


def test_what_runs_between_the_runs_is_not_counted(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    """`cp a b` with `--between 'rm b'` had the instructions of both, and an unlinkat(2) among its system calls."""
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--json", "-q")
    found = []
    for between in ((), ("--between", "cat words.txt")):
        got = json.loads(kdelta(*run, *between, "--", "true").stdout)
        found += [row["baseline"] for row in got["results"] if row["metric"] == "instructions"]
    assert found[1] == pytest.approx(found[0], rel=0.02)  # both would be twice as many


def test_a_program_that_lacks_a_file_is_told_how_to_pack_it(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "elsewhere").mkdir()
    os.chdir(folder / "elsewhere")  # the fixture leads back
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--json", "-q")
    done = kdelta(*run, "--", "../count.sh", "1", check=3)
    row = json.loads(done.stdout)["results"][0]
    assert row["state"] == "failed"
    assert "exit status 1, not 0: cat: words.txt: No such file" in row["why"].replace("/usr/bin/", "")
    assert "--follow or --file packs what it needs" in row["why"]
    assert ": failed: count.sh ended with exit status 1" in row["why"]
    assert done.stderr.startswith("kdelta: no kernel could be measured: count.sh 1: ")
    assert done.stderr.count("failed") == 1


def test_what_it_lacked_may_stand_before_its_last_lines(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    """make -j2 says that it waits for others, and last which target it was."""
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "-q", "--tree", ".")
    said = kdelta(*run, "--", "sh", "-c", "no-such-tool; echo it waits >&2; echo it ends >&2; exit 2", check=3).stderr
    assert "it waits / it ends; --follow or --file packs what it needs" in said


@pytest.mark.parametrize(
    ("words", "ended"),
    [
        pytest.param(  # the kernel says nothing more to it
            "b = []\nwhile True: b.append(bytes(1 << 24))", "was killed by SIGKILL", marks=pytest.mark.full
        ),
        ("bytearray(8 << 30)", "ended with exit status 1, not 0: MemoryError"),
    ],
)
def test_a_program_that_needs_more_memory_is_told_how_to_give_it(  # type: ignore[no-untyped-def]
    kdelta, folder: Path, words: str, ended: str
) -> None:
    (folder / "fill.py").write_text(words)
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--memory", "256", "-q")
    said = kdelta(*run, "--", shutil.which("python3", path=os.defpath) or "python3", "fill.py", check=3).stderr
    assert f"{ended}; the guest is out of memory" in said and "--memory SIZE gives it more" in said
    assert "--follow" not in said


def test_a_program_whose_output_has_no_room_left_did_not_do_its_work(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    """It goes on where write(2) fails, and had a figure: two kernels that took as much of it were the same."""
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--memory", "256", "-q")
    said = kdelta(*run, "--", "sh", "-c", "head -c 200M /dev/zero 2>/dev/null; true", check=3).stderr
    assert "what it prints is more than the guest's files have room for: --memory SIZE" in said


RUNS = """
#include <time.h>
int main(int words, char **word)
{
	struct timespec begun, now;
	volatile int spun = 0;
	int left = 800;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		for (int i = 0; i < 20000; i++)
			spun++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (words > 1 ? --left : (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < 90);
	return 0;
}
"""


def test_a_program_that_runs_by_the_clock_has_a_shorter_run_where_that_goes_faster(  # type: ignore[no-untyped-def]
    kdelta, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDELTA_STATE", str(folder / "state"))
    subprocess.run(["gcc", "-O1", "-static", "-xc", "-", "-o", "runs"], input=RUNS.encode(), check=True)
    found = {}
    for words in (["./runs"], ["./runs", "so", "often"]):
        run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "-q", "--")
        kdelta(*run, *words)
        with Store() as store:
            (row,) = store.facts(store.experiment("last").id)
        found[len(words)] = row.facts["faster_clock_cpu"]
    assert 0.90 < found[1] < 0.93 and 0.99 < found[3] < 1.02, found


WRITES = """#!/bin/sh
set -e
echo two >> folder/file; echo > new
cat link
"""


@pytest.mark.full
def test_a_program_that_writes_where_it_runs_finds_a_fresh_copy_each_time(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "folder").mkdir()
    (folder / "folder" / "file").write_text("one\n")
    (folder / "link").symlink_to("folder/file")
    (folder / "write.sh").write_text(WRITES)
    (folder / "write.sh").chmod(0o755)
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "-q", "--tree", ".")
    done = kdelta(*run, "--", "./write.sh", check=3)
    assert "Read-only file s" in done.stderr and "with --writable" in done.stderr  # long words are cut
    kdelta(*run, "--writable", "--expect-status", "0", "--", "./write.sh")
    assert kdelta("report", "last", "--printed", "0.0").stdout == "one\ntwo\n"


KNOWN = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A filter that refuses getuid(2): it comes to no function of a system call. */
static int refused(int n)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getuid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	int found = 0;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){4, steps});
	while (n--)
		found += syscall(SYS_getuid) == -1;
	return found;
}

/* fork(2) of newer C libraries blocks signals in its caller: a SIGCHLD would wake this one, to pause again. */
static void *waits(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, 0);
	pause();
	return arg;
}

int main(void)
{
	char byte;
	pthread_t other;
	int fd = open("/dev/zero", O_RDONLY);

	if (pthread_create(&other, 0, waits, 0))
		return 2;
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getppid);
	for (int i = 0; i < 300; i++)
		if (read(fd, &byte, 1) != 1)
			return 1;
	for (int i = 0; i < 7; i++) {
		if (!fork())
			_exit(0);
		wait(0);
	}
	return refused(50) != 50;
}
"""


def test_every_system_call_is_counted_and_they_add_up(kdelta, folder: Path) -> None:  # type: ignore[no-untyped-def]
    subprocess.run(["gcc", "-O1", "-static", "-xc", "-", "-o", "known"], input=KNOWN.encode(), check=True)
    run = ("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--json", "-q", "--", "./known")
    got = json.loads(kdelta(*run).stdout)
    (whole,) = (row["baseline"] for row in got["results"] if row["metric"] == "instructions")
    rows = {row["name"]: row["baseline"] for row in got["system_calls"][0]["rows"]}
    calls = {name: rows[name]["calls"] for name in ("getppid", "read", "clone", "wait4", "execve", "exit_group")}
    assert calls == {"getppid": 1000, "read": 300, "clone": 7, "wait4": 7, "execve": 1, "exit_group": 8}
    assert sum(row["instructions"] for row in rows.values()) == whole
    assert "[not assigned]" not in rows
    assert rows["[unnamed system call]"]["calls"] == 50, "refused by a filter; there were 0 of them"
    assert (rows["pause"]["calls"], rows["[end of killed tasks]"]["calls"]) == (1, 1)
    assert rows["pause"]["instructions"] < 5_000 < rows["[end of killed tasks]"]["instructions"], "what exit made it do"
    assert 1000 * 100 < rows["getppid"]["instructions"] < 1000 * 1000


@pytest.mark.full
@pytest.mark.skipif(shutil.which("perf") is None, reason="no perf: kdelta doctor names the package")
def test_a_suites_program_costs_what_its_operations_cost(kdelta) -> None:  # type: ignore[no-untyped-def]
    cases = ("--case", "getppid", "--case", "perf/syscall-basic")  # which calls getppid(2), behind millions of start-up
    got = json.loads(
        kdelta("run", "--kernel", "debian:6.12/cloud", "--exact", "--boots", "1", "--json", "-q", *cases).stdout
    )
    found = {row["case"]: row["baseline"] for row in got["results"] if row["metric"] == "instructions"}
    assert 0.95 < found["perf/syscall-basic"] / found["getppid"] < 1.05, found
