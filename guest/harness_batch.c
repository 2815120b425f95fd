/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One life of a case for the leak check: set up, a fixed number of operations
 * of each counted task, torn down. Nothing is timed or counted here; the supervisor
 * reads the kernel's object counts between two lives.
 */
#include "harness.h"

static void inline_life(struct harness *h)
{
	const struct workload *def = h->wl.def;
	struct wl_task *t = &h->slots[0].t;

	if (def->task_setup && def->task_setup(t)) {
		set_error(h, STATE_FAILED, "task_setup failed");
		return;
	}
	run_ops(def, t, h->job->ops);
	if (def->finish)
		def->finish(t);
	if (def->task_teardown)
		def->task_teardown(t);
}

static void batch_loop(struct harness *h, struct slot *s)
{
	if (s->t.counted)
		run_ops(h->wl.def, &s->t, h->job->ops);
	else
		tasks_background(h, s);
}

static bool all_left(struct harness *h)
{
	return atomic_load(&h->counted_left) >= h->counted;
}

void batch_life(struct harness *h)
{
	if (h->wl.def->free_run) {
		set_error(h, STATE_UNSUPPORTED,
			  "a loop that never returns has no number of operations: it cannot be "
			  "checked for leaks");
		return;
	}
	if (tasks_inline(h)) {
		inline_life(h);
		return;
	}
	if (tasks_start(h, batch_loop))
		return;
	tasks_phase(h, PHASE_RUN);
	tasks_wait(h, all_left);
	if (!case_failed(h))
		tasks_stop(h);
}
