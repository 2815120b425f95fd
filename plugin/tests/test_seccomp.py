# SPDX-License-Identifier: GPL-2.0-or-later
"""What a QEMU that forks for us may not do: the filters of plugin/seccomp.c, in a process of their own."""

import subprocess
from pathlib import Path

from kdelta.paths import shipped

PROBE = r"""
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

bool forks_only(void);
bool threads_only(void);

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	char *argv[] = {"true", NULL};
	pthread_t thread;

	printf("filter %d\n", forks_only());
	execv("/bin/true", argv);
	printf("exec refused, fork %d\n", fork() >= 0);
	printf("filter %d\n", threads_only());
	printf("thread %d\n", !pthread_create(&thread, NULL, nothing, NULL) && !pthread_join(thread, NULL));
	printf("fork %d\n", fork() >= 0);
	return 0;
}
"""


def test_no_program_is_executed_and_a_child_has_no_children(tmp_path: Path) -> None:
    source, probe = tmp_path / "probe.c", tmp_path / "probe"
    source.write_text(PROBE)
    plugin = shipped("plugin")
    words = ["gcc", "-std=gnu11", f"-I{plugin}", "-o", str(probe), str(source), str(plugin / "seccomp.c"), "-lpthread"]
    subprocess.run(words, check=True)
    said = subprocess.run(["stdbuf", "-oL", str(probe)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[:1] == ["filter 1"]
    assert sorted(said[1:]) == sorted(["exec refused, fork 1", "filter 1", "thread 1", "fork 0"] * 2)
