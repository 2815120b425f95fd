/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A workload for tests only: makes the guest panic, hang, print bytes that are
 * no text, or stop in the middle of a record.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "workload.h"

static void put(const char *path, const char *text, size_t size)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0) {
		(void)!write(fd, text, size);
		close(fd);
	}
}

static int misbehave_setup(struct wl *wl)
{
	static const char garbage[] = "\xff\xfe\x80kd1 \xc3\x28\n\n";
	static const char half[] = "kd1 3 0123abcd {\"t\":\"wi";

	if (wl_param_is(wl, "how", "panic"))
		put("/proc/sysrq-trigger", "c", 1);
	if (wl_param_is(wl, "how", "hang"))
		for (;;)
			pause();
	if (wl_param_is(wl, "how", "garbage")) {
		put("/dev/console", garbage, sizeof(garbage) - 1);
		put("/dev/ttyS1", garbage, sizeof(garbage) - 1);
		put("/proc/sysrq-trigger", "b", 1);
	}
	if (wl_param_is(wl, "how", "half")) {
		put("/dev/ttyS1", half, sizeof(half) - 1);
		sleep(1);
		put("/proc/sysrq-trigger", "b", 1);
	}
	return 0;
}

static void misbehave_op(struct wl_task *t)
{
	t->bytes++;
}

WORKLOAD_BATCH(misbehave_batch, misbehave_op)

static const struct workload misbehave = {
	.name = "misbehave",
	.setup = misbehave_setup,
	.op = misbehave_op,
	.batch = misbehave_batch,
};

WORKLOAD(misbehave);
