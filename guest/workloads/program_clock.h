/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a program runs until the clock says so: such a one takes less CPU time where the clock goes faster, any other
 * as much. So its first run, which is never counted, has a clock that goes as much faster as adjtimex(2) lets it. CPU
 * time is told by sched_clock(), which nobody adjusts.
 */
#ifndef KDELTA_PROGRAM_CLOCK_H
#define KDELTA_PROGRAM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/timex.h>

#define TICK_USUAL 10000 /* us, of 100 a second, whatever CONFIG_HZ is */
#define TICK_FASTER 11000
#define CPU_LEAST_US \
	10000 /* of less, what one run finds in caches and the other does not may be as much */

struct clocked {
	unsigned int runs;
	bool faster;
	uint64_t cpu_us[2]; /* of the run by the faster clock, and of the next */
	uint64_t before_us;
};

static inline bool clock_tick(long tick)
{
	struct timex t = {.modes = ADJ_TICK, .tick = tick};

	return adjtimex(&t) >= 0;
}

/* Of all that have been waited for. */
static inline uint64_t children_cpu_us(void)
{
	struct rusage r;

	if (getrusage(RUSAGE_CHILDREN, &r))
		return 0;
	return ((uint64_t)r.ru_utime.tv_sec + (uint64_t)r.ru_stime.tv_sec) * 1000000u +
	       (uint64_t)r.ru_utime.tv_usec + (uint64_t)r.ru_stime.tv_usec;
}

/* Before a run; @mine: the clock is that of a guest. */
static inline void clocked_begin(struct clocked *c, bool mine)
{
	if (mine && !c->runs)
		c->faster = clock_tick(TICK_FASTER);
	c->before_us = children_cpu_us();
}

static inline void clocked_end(struct clocked *c)
{
	if (c->runs < 2)
		c->cpu_us[c->runs] = children_cpu_us() - c->before_us;
	if (!c->runs++ && c->faster)
		clock_tick(TICK_USUAL);
}

/* After the second run, once: the CPU time of the first in parts of its own; 0 where there is nothing to say. */
static inline double clocked_share(const struct clocked *c)
{
	bool known = c->faster && c->runs == 2 && c->cpu_us[1] >= CPU_LEAST_US;

	return known ? (double)c->cpu_us[0] / (double)c->cpu_us[1] : 0;
}

#endif
