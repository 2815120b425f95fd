/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Its first operation takes 20 ms, as on a host that takes the CPU away; all others take some ns. */
#include <time.h>

#include "workload.h"

static void slow_start_op(struct wl_task *t)
{
	if (!t->bytes++)
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

WORKLOAD_BATCH(slow_start_batch, slow_start_op)

static const struct workload slow_start = {
	.name = "slow_start",
	.op = slow_start_op,
	.batch = slow_start_batch,
};

WORKLOAD(slow_start);
