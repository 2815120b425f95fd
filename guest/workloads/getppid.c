/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cheapest system call that does something: what entering the kernel costs. */
#include <sys/syscall.h>
#include <unistd.h>

#include "../workload.h"

static inline void op(struct wl_task *t)
{
	(void)t;
	syscall(SYS_getppid);
}

WORKLOAD_BATCH(batch, op)

static int setup(struct wl *wl)
{
	wl->tasks = (unsigned int)wl_param_u64(wl, "tasks");
	wl->processes = wl_param_is(wl, "mode", "processes");
	return 0;
}

static const char *const params[] = {"tasks", "mode", NULL};

static const struct workload getppid_workload = {
	.name = "getppid",
	.setup = setup,
	.op = op,
	.batch = batch,
	.params = params,
};
WORKLOAD(getppid_workload);
