/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which CPU runs. QEMU 9.1 to 10.0 hand callbacks a wrong number with -icount:
 * that of the CPU which first translated the block (accel/tcg/plugin-gen.c,
 * gen_cpu_index(): a constant while CF_PARALLEL is off). So a CPU is known by
 * the base of its per-CPU area, which Linux keeps in the GS base, and while user
 * space runs in the other one. A later QEMU's numbers are held against that, and
 * are believed once they have agreed often enough on every CPU. Of those versions
 * no trial tells: CPUs that translate what they run themselves agree for long.
 */
#include <stdio.h>
#include <string.h>

#include "kdelta.h"
#include "qemu_api.h"
#include "values.h"

#define TRIAL_ENTRIES 4096 /* of each CPU, before QEMU's numbers are believed */
#define NUMBERS_RIGHT 5	   /* interface of plugins of QEMU 10.1 */
#define NOBODY UINT32_MAX

unsigned int cpu_now;

static unsigned int n_cpus = 1, n_known;
static struct cpu {
	uint64_t base;
	uint32_t theirs; /* QEMU's number */
	uint32_t agreed;
} cpus[CPUS_MAX];
static unsigned int ours[CPUS_MAX]; /* by QEMU's number */
static bool believed, refuted;
static uint32_t strangers;
static struct reg {
	struct qemu_plugin_register *handle; /* NULL is one too, from QEMU 11.1 on */
	bool there;
} gs, kernel_gs, general[X86_REGISTERS];
static GByteArray *value;

static void keep_register(const qemu_plugin_reg_descriptor *r)
{
	static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

	if (!strcmp(r->name, "gs_base"))
		gs = (struct reg){r->handle, true};
	else if (!strcmp(r->name, "k_gs_base"))
		kernel_gs = (struct reg){r->handle, true};
	for (unsigned int i = 0; i < X86_REGISTERS; i++)
		if (!strcmp(r->name, names[i]))
			general[i] = (struct reg){r->handle, true};
}

static void cpu_started(void)
{
	GArray *all = qemu_plugin_get_registers();
	size_t step = g_array_get_element_size(all);

	for (unsigned int i = 0; i < all->len; i++)
		keep_register((const void *)(all->data + i * step));
	g_array_free(all, 1);
}

bool cpus_open(uint64_t plugin, unsigned int n, int interface)
{
	n_cpus = n;
	refuted = interface < NUMBERS_RIGHT;
	if (n == 1)
		return true;
	if (!qemu_plugin_read_register || !qemu_plugin_get_registers) {
		fprintf(stderr, "kdelta plugin: with several CPUs QEMU 9.0 or later is needed\n");
		return false;
	}
	value = g_byte_array_new();
	on_cpu(plugin, cpu_started);
	return true;
}

static uint64_t read_register(struct reg r)
{
	uint64_t word = 0;

	g_byte_array_set_size(value, 0);
	if (!r.there)
		return 0;
	qemu_plugin_read_register(r.handle, value);
	if (value->len >= sizeof(word))
		memcpy(&word, value->data, sizeof(word));
	return word;
}

uint32_t cpu_register(unsigned int number)
{
	return (uint32_t)read_register(general[number]);
}

/* Right after the kernel was entered, before its SWAPGS, the bases are still those of user space. */
static uint64_t base_now(uint64_t pc)
{
	uint64_t first = read_register(pc >> 63 ? gs : kernel_gs);

	return first >> 63 ? first : read_register(pc >> 63 ? kernel_gs : gs);
}

static unsigned int known_by(uint64_t base)
{
	unsigned int i;

	for (i = 0; i < n_known; i++)
		if (cpus[i].base == base)
			return i;
	if (!(base >> 63) || n_known == n_cpus)
		return NOBODY;
	cpus[n_known] = (struct cpu){.base = base, .theirs = NOBODY};
	return n_known++;
}

static void hold_against(unsigned int n, uint32_t theirs)
{
	struct cpu *c = &cpus[n];
	unsigned int i;

	if (refuted)
		return;
	if (c->theirs == NOBODY && theirs < CPUS_MAX) {
		c->theirs = theirs;
		ours[theirs] = n;
		for (i = 0; i < n_known; i++)
			refuted |= i != n && cpus[i].theirs == theirs;
	}
	refuted |= c->theirs != theirs;
	c->agreed++;
	for (i = 0, believed = !refuted && n_known == n_cpus; i < n_known; i++)
		believed &= cpus[i].agreed >= TRIAL_ENTRIES;
}

bool cpus_enter(unsigned int vcpu, uint64_t pc, bool counts)
{
	unsigned int n = cpu_now;

	if (n_cpus == 1)
		return false;
	if (believed) {
		n = ours[vcpu];
	} else {
		n = known_by(base_now(pc));
		if (n == NOBODY) {
			strangers += counts;
			return false;
		}
		hold_against(n, vcpu);
	}
	if (n == cpu_now)
		return false;
	cpu_now = n;
	return true;
}

uint64_t cpu_base(unsigned int n)
{
	return cpus[n].base;
}

unsigned int cpus_number(void)
{
	return n_cpus;
}

/* Blocks of an open interval that ran nobody knows where. */
uint32_t cpus_strangers(void)
{
	return strangers;
}

bool cpus_believed(void)
{
	return believed;
}
