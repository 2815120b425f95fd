/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which CPU runs. QEMU from 9.1 on hands callbacks a wrong number with -icount:
 * that of the CPU which first translated the block (accel/tcg/plugin-gen.c,
 * gen_cpu_index(): a constant while CF_PARALLEL is off; 11.1.3 still does). So a
 * CPU is known by the base of its per-CPU area, which Linux keeps in the GS base,
 * and while user space runs in the other one. No trial tells whether a QEMU's
 * numbers are right: CPUs that translate what they run themselves agree for long.
 */
#include <stdio.h>
#include <string.h>

#include "kdelta.h"
#include "qemu_api.h"
#include "values.h"

#define NOBODY UINT32_MAX

unsigned int cpu_now;

static unsigned int n_cpus = 1, n_known;
static uint64_t bases[CPUS_MAX];
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

bool cpus_open(uint64_t plugin, unsigned int n)
{
	n_cpus = n;
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
		if (bases[i] == base)
			return i;
	if (!(base >> 63) || n_known == n_cpus)
		return NOBODY;
	bases[n_known] = base;
	return n_known++;
}

bool cpus_enter(uint64_t pc, bool counts)
{
	unsigned int n;

	if (n_cpus == 1)
		return false;
	n = known_by(base_now(pc));
	if (n == NOBODY) {
		strangers += counts;
		return false;
	}
	if (n == cpu_now)
		return false;
	cpu_now = n;
	return true;
}

uint64_t cpu_base(unsigned int n)
{
	return bases[n];
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
