/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cache lines of the kernel that move between CPUs. Of each line it is known
 * who holds a copy and whether somebody has written it in this interval. A
 * transfer is a read of a line that another CPU wrote since the reader last held
 * it, or a write to a line of which another CPU holds a copy. That is coherence
 * alone: caches without end, no latencies, sequentially consistent.
 *
 * A locked instruction takes the line for itself with its load, as CPUs do: one
 * transfer. An ordinary read-modify-write can be two.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "callers.h"
#include "coherence.h"
#include "kdelta.h"
#include "qemu_api.h"
#include "sequences.h"
#include "table.h"

#define LINE_SHIFT 6
#define LINE_BYTES 64

struct access_site {
	struct block *block;
	uint64_t *slots; /* NULL: its accesses are counted elsewhere */
	uint64_t pc;
	bool locked;
	struct sequence_site *sequence; /* NULL: has nothing to do with any */
};

struct line {
	uint64_t number, unused;
	uint64_t holders;	   /* CPUs, a bit each */
	uint64_t users;		   /* all CPUs that came by in this interval */
	uint64_t touched, written; /* bytes, a bit each */
	uint64_t several;	   /* bytes that more than one CPU used */
	uint8_t first[LINE_BYTES]; /* who used a byte first */
	bool dirty;		   /* somebody wrote it */
	bool device;		   /* registers, not memory: no cache holds them */
	bool moved;
};

static struct table lines = {.item = sizeof(struct line)};
/* Transfers of one instruction on one address for one caller. */
struct moved {
	uint64_t address, by; /* by: the number of pc and caller */
	uint64_t cpus, reads, writes;
};

static struct table moved = {.item = sizeof(struct moved)};

static bool is_device(uint32_t info, uint64_t vaddr)
{
	struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, vaddr);

	return where && qemu_plugin_hwaddr_is_io(where);
}

static struct line *line_of(uint32_t info, uint64_t vaddr)
{
	size_t before = lines.n;
	struct line *l = table_item(&lines, vaddr >> LINE_SHIFT, 0);

	if (lines.n != before)
		l->device = is_device(info, vaddr);
	return l;
}

/* Which of the line's bytes are whose. */
static void use_bytes(struct line *l, unsigned int from, unsigned int n, bool writes)
{
	uint64_t mask = (n == LINE_BYTES ? 0 : 1ull << n) - 1;
	unsigned int i;

	mask <<= from;
	for (i = from; i < from + n; i++) {
		if (!(l->touched >> i & 1))
			l->first[i] = (uint8_t)cpu_now;
		else if (l->first[i] != cpu_now)
			l->several |= 1ull << i;
	}
	l->touched |= mask;
	if (writes)
		l->written |= mask;
	l->users |= 1ull << cpu_now;
}

static bool takes(struct line *l, bool alone)
{
	uint64_t me = 1ull << cpu_now;
	bool moves = alone ? l->holders & ~me : l->dirty && !(l->holders & me);

	l->holders = alone ? me : l->holders | me;
	l->dirty |= alone;
	return moves;
}

static void use(const struct access_site *s, uint32_t info, uint64_t vaddr, unsigned int n)
{
	bool writes = qemu_plugin_mem_is_store(info), alone = writes || s->locked;
	struct line *l = line_of(info, vaddr);
	struct moved *t;

	if (l->device)
		return;
	use_bytes(l, vaddr & (LINE_BYTES - 1), n, writes);
	if (!takes(l, alone) || !counting_now())
		return;
	l->moved = true;
	t = table_item(&moved, vaddr, pair_number(s->pc, callers_caller(s->block)));
	t->cpus |= 1ull << cpu_now;
	if (alone)
		t->writes++;
	else
		t->reads++;
}

static void access_cb(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *udata)
{
	const struct access_site *s = udata;
	unsigned int n = 1u << qemu_plugin_mem_size_shift(info), here;

	(void)vcpu;
	if (s->slots) {
		s->slots[qemu_plugin_mem_is_store(info) ? SLOT_TWO : SLOT_ONE]++;
		block_touch(s->block);
	}
	if (!counting_is_open() || !(vaddr >> 63))
		return;
	here = LINE_BYTES - (vaddr & (LINE_BYTES - 1));
	use(s, info, vaddr, n < here ? n : here);
	if (n > here)
		use(s, info, vaddr + here, n - here);
	if (s->sequence)
		sequences_access(s->sequence, vaddr, qemu_plugin_mem_get_value(info).data.u32);
}

/* Whether somebody wrote the byte in this interval. */
static bool written(uint64_t address)
{
	const struct line *l = table_find(&lines, address >> LINE_SHIFT, 0);

	return l && l->written >> (address & (LINE_BYTES - 1)) & 1;
}

void lines_translate(struct qemu_plugin_tb *tb, struct block *b)
{
	struct sequence_site **found;

	if (!b->sites)
		b->sites = xalloc(b->n, sizeof(*b->sites));
	if (!sequences_known() || !(b->pc >> 63))
		return;
	found = xalloc(b->n, sizeof(*found));
	for (uint32_t k = 0; k < b->n; k++)
		found[k] = b->sites[k].sequence;
	sequences_find(b, found);
	for (uint32_t k = 0; k < b->n; k++) {
		b->sites[k].sequence = found[k];
		if (found[k] && (found[k]->tests || found[k]->compares) && !found[k]->in_memory)
			qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, k),
							       sequences_look, CB_R_REGS, found[k]);
	}
	free(found);
}

void lines_instrument(struct qemu_plugin_insn *insn, struct block *b, uint32_t k)
{
	struct insn *what = &b->insns[k];
	struct access_site *s;

	s = &b->sites[k];
	*s = (struct access_site){
		.block = b,
		.slots = what->kind == KIND_REP ? NULL : b->count[k],
		.pc = what->pc,
		.locked = what->locked,
		.sequence = s->sequence,
	};
	qemu_plugin_register_vcpu_mem_cb(
		insn, access_cb, s->sequence && s->sequence->compares ? CB_R_REGS : CB_NO_REGS,
		MEM_RW, s);
}

void lines_begin(void)
{
	table_empty(&lines);
	table_empty(&moved);
	callers_begin();
	sequences_begin(written);
}

static size_t collect_transfers(struct transfer **found)
{
	size_t n = 0;

	*found = xalloc(moved.n + 1, sizeof(**found));
	for (const struct moved *m = NULL; (m = table_next(&moved, m));) {
		const uint64_t *by = pair_of(m->by);

		(*found)[n++] = (struct transfer){
			m->address, by[0], by[1], m->cpus, m->reads, m->writes,
		};
	}
	qsort(*found, n, sizeof(**found), table_order);
	return n;
}

static size_t collect_lines(struct moved_line **found)
{
	size_t n = 0;

	*found = xalloc(lines.n + 1, sizeof(**found));
	for (const struct line *l = NULL; (l = table_next(&lines, l));)
		if (l->moved)
			(*found)[n++] = (struct moved_line){
				.address = l->number << LINE_SHIFT,
				.users = l->users,
				.written = l->written,
				.shared = l->several & l->written,
				.place = slabs_place(l->number << LINE_SHIFT),
			};
	qsort(*found, n, sizeof(**found), table_order);
	return n;
}

void lines_end(uint32_t id)
{
	struct lines_found found = {0};

	if (!lines_wanted())
		return;
	slabs_read(&found.vmemmap, &found.direct);
	found.n_transfers = collect_transfers(&found.transfers);
	found.n_lines = collect_lines(&found.lines);
	found.n_entries = callers_counts(&found.entries);
	found.n_sequences = sequences_counts(&found.sequences);
	lines_output(id, &found);
	free(found.transfers);
	free(found.lines);
	free(found.entries);
	free(found.sequences);
}
