/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * will-it-scale testcases as workloads. Built once as it is, for what all
 * testcases share, and once for each testcase with WIS_SYMBOL (its name as an
 * identifier) and WIS_NAME (its name as a string), for its registration.
 */
#include "wis.h"

#ifndef WIS_SYMBOL

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool as_processes; /* a case is a process of its own: set once, in setup */

/* The ABI knows no error here: the testcase cannot go on, so its task ends and the case fails. */
static void give_up(const char *what, int error)
{
	errno = error;
	perror(what);
	abort();
}

void new_task(void *(*func)(void *), void *arg)
{
	pid_t parent = getpid(), pid;
	pthread_t thread;
	int error;

	if (!as_processes) {
		error = pthread_create(&thread, NULL, func, arg);
		if (error)
			give_up("new_task: pthread_create", error);
		return;
	}
	pid = fork();
	if (pid < 0)
		give_up("new_task: fork", errno);
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		func(arg);
	_exit(0);
}

int wis_setup(struct wl *wl, const struct wis_testcase *test)
{
	wl->tasks = (unsigned int)wl_param_u64(wl, "tasks");
	wl->processes = wl_param_is(wl, "mode", "processes");
	as_processes = wl->processes;
	if (test->prepare)
		test->prepare(wl->tasks);
	return 0;
}

void wis_run(struct wl_task *t, volatile uint64_t *iterations, const struct wis_testcase *test)
{
	_Static_assert(sizeof(unsigned long long) == sizeof(*iterations), "the ABI's counter");

	/* The cast drops volatile: the testcase is a translation unit of its own and stores each count. */
	test->run((unsigned long long *)iterations, t->nr);
	errno = 0;
	wl_op_failed(t, "the testcase returned; the ABI requires an endless loop");
	for (;;)
		pause();
}

#else

#define PASTE(a, b, c) a##b##c
#define GLUE(a, b, c) PASTE(a, b, c)
#define SYMBOL(what) GLUE(wis_, WIS_SYMBOL, what)

void SYMBOL(_testcase)(unsigned long long *iterations, unsigned long nr);
void SYMBOL(_prepare)(unsigned long tasks) __attribute__((weak));
void SYMBOL(_cleanup)(void) __attribute__((weak));

static const struct wis_testcase test = {
	.run = SYMBOL(_testcase),
	.prepare = SYMBOL(_prepare),
	.cleanup = SYMBOL(_cleanup),
};

static int setup(struct wl *wl)
{
	return wis_setup(wl, &test);
}

static void free_run(struct wl_task *t, volatile uint64_t *iterations)
{
	wis_run(t, iterations, &test);
}

static void teardown(struct wl *wl)
{
	(void)wl;
	if (test.cleanup)
		test.cleanup();
}

static const struct workload wis = {
	.name = "wis/" WIS_NAME,
	.setup = setup,
	.free_run = free_run,
	.teardown = teardown,
};
WORKLOAD(wis);

#endif
