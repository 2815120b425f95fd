/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the ticks of the kernel's timer are: exact intervals begin right after one. */
#include <time.h>

#include "harness.h"

#define TICK_LEAST_NS 1000
#define TICK_PERIOD_MOST_NS 12000000 /* CONFIG_HZ=100, and some */
#define TICK_WAKES_NS 100000
#define TICK_NEAR_NS 150000 /* timers are late by up to 50 us, as the kernel likes (timerslack) */

/* The clock that the tick itself moves on. */
static uint64_t ticked_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Where others have turns between two looks, a gap is no sign. The ticks of all
 * CPUs come at once (skew_tick=0, the kernel's default).
 */
static void tick_of_all(void)
{
	uint64_t start = now_ns(), last = ticked_ns();

	while (ticked_ns() == last && now_ns() - start < TICK_PERIOD_MOST_NS)
		;
}

/* Where an earlier tick is known, the time until shortly before the next one is slept through. */
static void sleep_until_near(uint64_t tick)
{
	uint64_t now = now_ns(), next;
	struct timespec period, t;

	clock_getres(CLOCK_MONOTONIC_COARSE, &period);
	if (!tick || period.tv_sec || !period.tv_nsec)
		return;
	next = now + (uint64_t)period.tv_nsec - (now - tick) % (uint64_t)period.tv_nsec;
	if (next - now < 2 * TICK_NEAR_NS)
		return;
	next -= TICK_NEAR_NS;
	t = (struct timespec){(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void tick_of_one(uint64_t earlier)
{
	uint64_t start, now, last;

	sleep_until_near(earlier);
	start = now = now_ns();
	do {
		last = now;
		now = now_ns();
	} while (now - last < TICK_LEAST_NS && now - start < TICK_PERIOD_MOST_NS);
}

/*
 * Right after a tick of the kernel's timer: whether one falls into a short
 * interval would else be chance. It shows as a gap between two looks at the clock.
 * What the tick has woken (a grace period of RCU, deferrable work such as the
 * flush of cgroup statistics) waits for the CPU: it has it before the interval,
 * not when the interval first blocks.
 *
 * The tick need not move the kernel's coarse clock, which advances by whole periods of a phase of
 * its own: a wake-up may have moved it since the tick before (timekeeping_advance(),
 * kernel/time/timekeeping.c). Then the first write of an interval updated no time of an inode, under
 * every seed of one boot and under none of another of the same kernel (context_switch-32 of 6.12:
 * 0.65 %). So it is the next tick.
 */
uint64_t exact_after_tick(const struct harness *h)
{
	uint64_t before = ticked_ns();

	if (several_cpus(h)) {
		tick_of_all();
	} else {
		tick_of_one(h->tick_ns);
		if (ticked_ns() == before)
			tick_of_one(h->tick_ns);
	}
	nanosleep(&(struct timespec){.tv_nsec = TICK_WAKES_NS}, NULL);
	return steady_ns();
}

uint64_t exact_tick(void)
{
	tick_of_one(0);
	return now_ns();
}
