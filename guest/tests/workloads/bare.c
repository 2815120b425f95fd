/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bare loop of getppid(2) between two clock reads, and the same operation
 * under the harness in the same process: what the harness costs. The one
 * workload that reads a clock, for tests only.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

#define ROUNDS 400
#define CALLS 15000

static inline void op(struct wl_task *t)
{
	(void)t;
	syscall(SYS_getppid);
}

WORKLOAD_BATCH(batch, op)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least of many short rounds on each side, alternating: what disturbs one disturbs both. */
static int figures(struct wl *wl)
{
	struct wl_task t = {.wl = wl};
	double bare = 1e18, under = 1e18;
	int i, k;

	for (i = 0; i < ROUNDS; i++) {
		double start = now(), passed;

		for (k = 0; k < CALLS; k++)
			syscall(SYS_getppid);
		passed = now() - start;
		bare = passed < bare ? passed : bare;
		start = now();
		wl->def->batch(&t, CALLS);
		passed = now() - start;
		under = passed < under ? passed : under;
	}
	wl_value(wl, "bare_ns", bare / CALLS);
	wl_value(wl, "batch_ns", under / CALLS);
	return 0;
}

static const struct workload bare = {
	.name = "bare",
	.op = op,
	.batch = batch,
	.figures = figures,
};
WORKLOAD(bare);
