/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * With -icount sleep=off virtual time passes at once while all CPUs are halted:
 * QEMU's main loop adds what is left until the next timer (icount_start_warp_timer).
 * A CPU is halted from its HLT on, but what it executed is added to the clock a
 * little later, when it has left the CPU loop (icount_process_data, without QEMU's
 * lock; 7.2 to 10). A main loop that something wakes in between takes an old clock
 * for the present: the next tick comes late by up to some hundred ns, and the guest
 * is another one from there on (14 of 600 restored guests on a busy host, 20 of 50
 * whose monitor is asked all the time). So what was executed is added before the HLT.
 *
 * What is called of QEMU is no interface of plugins. Without it the clock is as QEMU has it.
 */
#include "kdelta.h"
#include "qemu_api.h"

static struct {
	void (*account)(void *cpu);
	void *(*cpu)(int index);
} qemu;

static void *cpus[CPUS_MAX];
static bool seen;

void idle_open(void)
{
	*(void **)&qemu.account = qemu_function("icount_update", NULL);
	*(void **)&qemu.cpu = qemu_function("qemu_get_cpu", NULL);
}

/* All of them, as QEMU's number may be wrong (cpus.c): one that does not run has nothing to add. */
static void halts(unsigned int vcpu, void *unused)
{
	(void)vcpu;
	(void)unused;
	for (int i = 0; !cpus[0] && i < CPUS_MAX && (cpus[i] = qemu.cpu(i)); i++)
		;
	for (int i = 0; i < CPUS_MAX && cpus[i]; i++)
		qemu.account(cpus[i]);
}

void idle_instrument(struct qemu_plugin_insn *insn)
{
	seen = true;
	if (qemu.account && qemu.cpu)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, halts, CB_NO_REGS, NULL);
}

bool idle_is_translated(void)
{
	return seen;
}
