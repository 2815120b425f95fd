/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * At the mark STOP a machine of several CPUs stops, to be kept as a snapshot: at this
 * instruction, and at this instant of its clock.
 *
 * A watchdog cannot do that. With several CPUs QEMU has a timer of its own (rr_start_kick_timer,
 * accel/tcg/tcg-accel-ops-rr.c), so that the watchdog's may run in the vCPUs' thread; the main loop
 * then finds all CPUs idle once more, and lets the clock jump to the next timer before it stops
 * them (main_loop_wait(), icount_start_warp_timer()): 50 ms, if the guest has no other, and whether
 * that timer has run by then is chance (QEMU 10.0.2). A guest woke before the turns of its CPUs
 * were short, and counted one transfer instead of 92. No CPU is idle while it waits in here.
 *
 * What is called of QEMU is no interface of plugins. Without it the guest goes on, and sets its watchdog.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "kdelta.h"
#include "qemu_api.h"

#define RUN_STATE_PAUSED 4 /* qapi/run-state.json; seen to stop 10.0.2 and 11.1.3 */
#define TURN_US 200
#define TURNS_MOST 50000

static struct {
	void (*prepare)(void);
	void (*request)(int state);
	void (*lock)(const char *file, int line);
	void (*unlock)(void);
	bool (*can_run)(void *cpu);
	void *(*cpu)(int index);
} qemu;

void stop_open(void)
{
	*(void **)&qemu.prepare = qemu_function("qemu_system_vmstop_request_prepare", NULL);
	*(void **)&qemu.request = qemu_function("qemu_system_vmstop_request", NULL);
	*(void **)&qemu.can_run = qemu_function("cpu_can_run", NULL);
	*(void **)&qemu.cpu = qemu_function("qemu_get_cpu", NULL);
	*(void **)&qemu.lock = qemu_function("bql_lock_impl", "qemu_mutex_lock_iothread_impl");
	*(void **)&qemu.unlock = qemu_function("bql_unlock", "qemu_mutex_unlock_iothread");
}

/*
 * Returns when the main loop has told all CPUs to stop (pause_all_vcpus()): it keeps QEMU's lock
 * until then. This one leaves at the end of the block of the mark.
 */
void stop_here(void)
{
	int turn;

	if (!qemu.prepare || !qemu.request || !qemu.can_run || !qemu.cpu || !qemu.lock ||
	    !qemu.unlock)
		return;
	qemu.prepare();
	qemu.request(RUN_STATE_PAUSED);
	for (turn = 0; turn < TURNS_MOST && qemu.can_run(qemu.cpu(0)); turn++)
		usleep(TURN_US);
	qemu.lock(__FILE__, __LINE__);
	qemu.unlock();
}
