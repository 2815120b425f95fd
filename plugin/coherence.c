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
#include "coherence.h"
#include "kdelta.h"
#include "qemu_api.h"

#define LINE_SHIFT 6
#define LINE_BYTES 64
#define ROOM_FIRST 4096

struct access_site {
	struct block *block;
	uint64_t *slots; /* NULL: its accesses are counted elsewhere */
	uint64_t pc;
	bool locked;
};

/* A hash table of items that start with their key of two words; 0, 0 is a free place. */
struct table {
	char *items;
	size_t item, n, room;
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
static struct table transfers = {.item = sizeof(struct transfer)};

static uint64_t *place(const struct table *t, uint64_t a, uint64_t b)
{
	size_t at = (size_t)(((a ^ b << 21) * 0x9e3779b97f4a7c15) >> 20);

	for (;; at++) {
		uint64_t *key = (void *)(t->items + (at & (t->room - 1)) * t->item);

		if ((key[0] == a && key[1] == b) || !(key[0] | key[1]))
			return key;
	}
}

static void grow(struct table *t)
{
	struct table old = *t;

	t->room = t->room ? t->room * 2 : ROOM_FIRST;
	t->items = xalloc(t->room, t->item);
	for (size_t i = 0; i < old.room; i++) {
		uint64_t *key = (void *)(old.items + i * old.item);

		if (key[0] | key[1])
			memcpy(place(t, key[0], key[1]), key, t->item);
	}
	free(old.items);
}

/* The item of this key, zeroed but for it when it is new. */
static void *item_of(struct table *t, uint64_t a, uint64_t b)
{
	uint64_t *key;

	if (2 * t->n >= t->room)
		grow(t);
	key = place(t, a, b);
	if (!(key[0] | key[1])) {
		t->n++;
		key[0] = a;
		key[1] = b;
	}
	return key;
}

static void empty(struct table *t)
{
	if (t->n)
		memset(t->items, 0, t->room * t->item);
	t->n = 0;
}

static bool is_device(uint32_t info, uint64_t vaddr)
{
	struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, vaddr);

	return where && qemu_plugin_hwaddr_is_io(where);
}

static struct line *line_of(uint32_t info, uint64_t vaddr)
{
	size_t before = lines.n;
	struct line *l = item_of(&lines, vaddr >> LINE_SHIFT, 0);

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
	struct transfer *t;

	if (l->device)
		return;
	use_bytes(l, vaddr & (LINE_BYTES - 1), n, writes);
	if (!takes(l, alone) || !counting_now())
		return;
	l->moved = true;
	t = item_of(&transfers, vaddr, s->pc);
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
}

void lines_instrument(struct qemu_plugin_insn *insn, struct block *b, uint32_t k)
{
	struct insn *what = &b->insns[k];
	struct access_site *s;

	if (!b->sites)
		b->sites = xalloc(b->n, sizeof(*b->sites));
	s = &b->sites[k];
	*s = (struct access_site){
		.block = b,
		.slots = what->kind == KIND_REP ? NULL : b->count[k],
		.pc = what->pc,
		.locked = what->locked,
	};
	qemu_plugin_register_vcpu_mem_cb(insn, access_cb, CB_NO_REGS, MEM_RW, s);
}

void lines_begin(void)
{
	empty(&lines);
	empty(&transfers);
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	if (x[0] != y[0])
		return (x[0] > y[0]) - (x[0] < y[0]);
	return (x[1] > y[1]) - (x[1] < y[1]);
}

static size_t collect_transfers(struct transfer **found)
{
	size_t n = 0;

	*found = xalloc(transfers.n + 1, sizeof(**found));
	for (size_t i = 0; i < transfers.room; i++) {
		const struct transfer *t = &((const struct transfer *)transfers.items)[i];

		if (t->address | t->pc)
			(*found)[n++] = *t;
	}
	qsort(*found, n, sizeof(**found), by_address);
	return n;
}

static size_t collect_lines(struct moved_line **found)
{
	size_t n = 0;

	*found = xalloc(lines.n + 1, sizeof(**found));
	for (size_t i = 0; i < lines.room; i++) {
		const struct line *l = &((const struct line *)lines.items)[i];

		if (l->number && l->moved)
			(*found)[n++] = (struct moved_line){
				.address = l->number << LINE_SHIFT,
				.users = l->users,
				.written = l->written,
				.shared = l->several & l->written,
			};
	}
	qsort(*found, n, sizeof(**found), by_address);
	return n;
}

void lines_end(uint32_t id)
{
	struct transfer *t;
	struct moved_line *l;
	size_t n_transfers, n_lines;

	if (!lines_wanted())
		return;
	n_transfers = collect_transfers(&t);
	n_lines = collect_lines(&l);
	lines_output(id, t, n_transfers, l, n_lines);
	free(t);
	free(l);
}
