/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workloads that do what workloads must not, for tests only: never in the shipped binary. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

static void op(struct wl_task *t)
{
	struct wl *wl = t->wl;

	if (wl_param_is(wl, "how", "hang"))
		for (;;)
			pause();
	if (wl_param_is(wl, "how", "crash"))
		raise(SIGSEGV);
	if (wl_param_is(wl, "how", "exit"))
		exit(7);
	if (wl_param_is(wl, "how", "fail")) {
		errno = ENOSPC;
		wl_op_failed(t, "write of a \"quoted\" \xff name");
	}
	if (wl_param_is(wl, "how", "done"))
		t->done = true;
	if (wl_param_is(wl, "how", "crash_one") && t->nr == 1)
		raise(SIGABRT);
}

/* A grandchild that outlives its parent and keeps the record pipe open. */
static void leave_orphan(void)
{
	pid_t pid = fork();

	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	if (!fork())
		for (;;)
			pause();
	_exit(0);
}

static int litter(struct wl *wl)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/left behind", wl_tmpdir(wl));
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	if (fd < 0)
		return wl_fail(wl, "%s", path);
	close(fd);
	return 0;
}

static int setup(struct wl *wl)
{
	wl->tasks = (unsigned int)wl_param_u64(wl, "tasks");
	wl->processes = wl_param_is(wl, "mode", "processes");
	if (wl_param_is(wl, "how", "unsupported"))
		return wl_unsupported(wl, "syscall %s (v9.9)", "make_coffee");
	if (wl_param_is(wl, "how", "orphan"))
		leave_orphan();
	if (wl_param_is(wl, "how", "missing"))
		wl_param(wl, "nowhere");
	return litter(wl);
}

static int figures(struct wl *wl)
{
	struct wl_kstat k;

	wl_kstat_settled(&k);
	wl_value(wl, "slab_bytes", (double)k.slab_bytes);
	wl_value(wl, "not_a_number", 0.0 / 0.0);
	return wl_param_is(wl, "how", "bad_figures") ? wl_fail(wl, "figures went wrong") : 0;
}

static const struct workload misbehave = {
	.name = "misbehave",
	.setup = setup,
	.op = op,
	.figures = figures,
};
WORKLOAD(misbehave);
