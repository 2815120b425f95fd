/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <time.h>

#include "harness.h"

#define REST_NS 60000000u
#define GRID_NS 128000000u
/* Once turns are short (machine/turns.py) idle time costs: five ticks at 250 Hz, two grace periods of RCU. */
#define REST_SEVERAL_NS 20000000u
#define GRID_SEVERAL_NS 16000000u
#define TICK_NS 4000000u /* CONFIG_HZ=250 */

/*
 * Before each interval the task sleeps, so that RCU hands back what the last
 * one freed and timers and work queues run: else an interval counts how full
 * the slabs happened to be. It sleeps to an instant that the seed says, and that
 * does not hang on how long the steps before it took: to the millisecond that is
 * chance on any machine. Emulated idle time passes at once (sleep=off).
 */
static void rest_from(struct harness *h, uint64_t until, uint64_t grid)
{
	struct timespec t;

	crng_renew();
	until += perturb_ns(h->wl.seed, h->rests++, grid);
	t = (struct timespec){(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR &&
	       !case_failed(h))
		;
}

void exact_rest(struct harness *h)
{
	bool several = several_cpus(h);
	uint64_t rest = several ? REST_SEVERAL_NS : REST_NS;
	uint64_t grid = several ? GRID_SEVERAL_NS : GRID_NS;

	rest_from(h, (now_ns() + rest) / grid * grid + grid, grid);
}

void exact_rest_counted(struct harness *h)
{
	if (now_ns() + REST_SEVERAL_NS < h->turns_ns)
		rest_from(h, h->turns_ns, TICK_NS);
	else
		exact_rest(h);
}
