/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Distinct cache lines of the kernel's data that an interval touches, by the
 * instruction that touched each first. No cache: a line counts once however
 * often it is used, and it is not asked where it was before. One CPU; what
 * several share is coherence.c.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "kdelta.h"
#include "qemu_api.h"
#include "table.h"

#define LINE_SHIFT 6
#define LINE_BYTES (1u << LINE_SHIFT)
#define WIDEST_BYTES 16 /* of one access (QEMU: MO_128) */
#define LATEST 1024	/* lines that need no look into the table */

struct seen {
	uint64_t number, unused;
};

struct first {
	uint64_t pc, unused;
	uint64_t lines;
};

static struct table seen = {.item = sizeof(struct seen)};
static struct table first = {.item = sizeof(struct first)};
static uint64_t latest[LATEST];

static bool is_device(uint32_t info, uint64_t vaddr)
{
	struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, vaddr);

	return where && qemu_plugin_hwaddr_is_io(where);
}

static void touch(uint32_t info, uint64_t vaddr, uint64_t pc)
{
	uint64_t number = vaddr >> LINE_SHIFT, *known = &latest[number % LATEST];
	size_t before = seen.n;

	if (*known == number)
		return;
	*known = number;
	table_item(&seen, number, 0);
	if (seen.n != before && !is_device(info, vaddr))
		((struct first *)table_item(&first, pc, 0))->lines++;
}

static void access_at(uint32_t info, uint64_t vaddr, uint64_t pc)
{
	uint64_t last;

	if (!counting_now() || !(vaddr >> 63))
		return;
	touch(info, vaddr, pc);
	if ((vaddr & (LINE_BYTES - 1)) <= LINE_BYTES - WIDEST_BYTES)
		return;
	last = vaddr + (1u << qemu_plugin_mem_size_shift(info)) - 1;
	if ((vaddr ^ last) >> LINE_SHIFT)
		touch(info, last, pc);
}

static void access_cb(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *pc)
{
	(void)vcpu;
	access_at(info, vaddr, (uint64_t)pc);
}

/*
 * QEMU 7.2 translates one callback in half the time of one and two inline counters
 * beside it. Not for the last instruction of a block: see drop_strays(). From 9.0 on
 * an atomic access would be one store here, and is a load and a store inline.
 */
static void noted_cb(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *udata)
{
	const struct insn *what = udata;

	(void)vcpu;
	what->slots[qemu_plugin_mem_is_store(info) ? SLOT_TWO : SLOT_ONE]++;
	access_at(info, vaddr, what->pc);
}

/* Of an instruction that never stores. */
static void noted_load_cb(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *udata)
{
	const struct insn *what = udata;

	(void)vcpu;
	what->slots[SLOT_ONE]++;
	access_at(info, vaddr, what->pc);
}

void touched_instrument(struct qemu_plugin_insn *insn, struct insn *what)
{
	if (what->noted && what->kind != KIND_REP)
		qemu_plugin_register_vcpu_mem_cb(insn,
						 what->last == LAST_LOAD ? noted_load_cb : noted_cb,
						 CB_NO_REGS, MEM_RW, what);
	else if (what->pc >> 63)
		qemu_plugin_register_vcpu_mem_cb(insn, access_cb, CB_NO_REGS, MEM_RW,
						 (void *)what->pc);
}

void touched_begin(void)
{
	table_empty(&seen);
	table_empty(&first);
	memset(latest, 0, sizeof(latest));
}

void touched_end(uint32_t id)
{
	struct touched_record *out = xalloc(first.n + 1, sizeof(*out));
	size_t n = 0;

	for (const struct first *f = NULL; (f = table_next(&first, f));)
		out[n++] = (struct touched_record){f->pc, f->lines, 0};
	qsort(out, n, sizeof(*out), table_order);
	output_touched(id, out, n);
	free(out);
}
