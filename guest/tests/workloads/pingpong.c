/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two tasks that wait for each other, one counted: the stop protocol's hard case. For tests only. */
#include <errno.h>
#include <unistd.h>

#include "workload.h"

static int to[2], from[2];
static unsigned long afters;

static int setup(struct wl *wl)
{
	wl->tasks = 2;
	wl->processes = wl_param_is(wl, "mode", "processes");
	if (pipe(to) || pipe(from))
		return wl_fail(wl, "pipe");
	return 0;
}

static void close_ends(bool server)
{
	close(server ? to[1] : to[0]);
	close(server ? from[0] : from[1]);
}

static int task_setup(struct wl_task *t)
{
	t->counted = t->nr == 0;
	if (t->wl->processes)
		close_ends(!t->counted);
	return 0;
}

static void started(struct wl *wl)
{
	if (wl->processes) {
		close_ends(true);
		close_ends(false);
	}
}

static void op(struct wl_task *t)
{
	char byte = 'x';

	if (t->counted) {
		if (write(to[1], &byte, 1) != 1 || read(from[0], &byte, 1) != 1)
			wl_op_failed(t, "a round trip");
		t->bytes++;
	} else if (read(to[0], &byte, 1) != 1) {
		t->done = true;
	} else if (write(from[1], &byte, 1) != 1) {
		wl_op_failed(t, "an answer");
	}
}

static void after(struct wl_task *t)
{
	(void)t;
	afters++;
}

static void finish(struct wl_task *t)
{
	if (t->counted)
		close(to[1]);
}

static const struct workload pingpong = {
	.name = "pingpong",
	.setup = setup,
	.task_setup = task_setup,
	.started = started,
	.op = op,
	.finish = finish,
};
WORKLOAD(pingpong);

static const struct workload pingpong_after = {
	.name = "pingpong_after",
	.setup = setup,
	.task_setup = task_setup,
	.started = started,
	.op = op,
	.after = after,
	.finish = finish,
};
WORKLOAD(pingpong_after);
