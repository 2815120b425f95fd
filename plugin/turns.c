/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the turns of several CPUs are short while operations are counted. The
 * host has a timer see to it (machine/turns.py), which runs out again within one
 * period, whatever else the guest waits for. A guest that counted before it was
 * set (stop.c) looked right in the report, with one transfer instead of 92.
 *
 * QEMU is asked by a thread of our own: one that runs a CPU may ask for the time
 * between two blocks only ("Bad icount read", accel/tcg/icount-common.c), and what
 * it lacks is less than a turn. The main loop may have taken the timer off its list
 * for a moment, so it is looked at several times. What is long is far from what is
 * short: without that timer the next one is a tick of some CPU, ms away; and QEMU
 * 11.1.3 makes no period shorter than 1 us.
 *
 * What is called of QEMU is no interface of plugins. Without it nothing is checked,
 * and the user is told (experiment/emulator.py). What could not be looked at, is long.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "kdelta.h"
#include "qemu_api.h"

#define CLOCK_OF_GUEST 1 /* QEMU_CLOCK_VIRTUAL, include/qemu/timer.h */
#define ALL_TIMERS (-1)	 /* QEMU_TIMER_ATTR_ALL */
#define LOOKS 20
#define SHORT_NS 10000 /* whatever the period */
#define LOOK_US 500

static int64_t (*next_timer_ns)(int clock, int timers);
static int64_t most_ns; /* 0: nothing is checked */
static bool were_long;

void turns_open(const char *period)
{
	*(void **)&next_timer_ns = qemu_function("qemu_clock_deadline_ns_all", NULL);
	if (next_timer_ns)
		most_ns = 2 * atoll(period) > SHORT_NS ? 2 * atoll(period) : SHORT_NS;
}

static void *look(void *found)
{
	int64_t *next = found;

	for (int i = 0; i < LOOKS; i++) {
		*next = next_timer_ns(CLOCK_OF_GUEST, ALL_TIMERS);
		if (*next >= 0 && *next <= most_ns)
			break;
		usleep(LOOK_US);
	}
	return NULL;
}

void turns_check(void)
{
	int64_t next = -1;
	pthread_t thread;

	if (!most_ns)
		return;
	if (!pthread_create(&thread, NULL, look, &next))
		pthread_join(thread, NULL);
	were_long |= next < 0 || next > most_ns;
}

bool turns_were_long(void)
{
	return were_long;
}
