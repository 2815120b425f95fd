/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks of translated code. A block translated twice (QEMU drops its
 * translations now and then) finds its counters again by address and content.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "kdelta.h"

#define POOL_BYTES (1u << 20)
#define LINE_BYTES 64

struct list {
	struct block **items;
	size_t n, room;
};

static struct block **buckets;
static size_t n_buckets, n_blocks;

/*
 * An access to a device is executed by itself in a block of one instruction that
 * counts memory only and enters without a callback (QEMU: CF_MEMI_ONLY). So
 * blocks of one instruction are looked at always.
 */
static struct list ran, singles, in_interval;

static void append(struct list *l, struct block *b)
{
	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 1024;
		struct block **items = xalloc(room, sizeof(*items));

		if (l->n)
			memcpy(items, l->items, l->n * sizeof(*items));
		free(l->items);
		l->items = items;
		l->room = room;
	}
	l->items[l->n++] = b;
}

/* Zeroed pieces that live as long as QEMU does; from the size of a cache line of the host's on they begin one. */
static void *pool_alloc(size_t size)
{
	static char *pool;
	static size_t left;
	size_t align = size < LINE_BYTES ? 8 : LINE_BYTES, skip = -(uintptr_t)pool & (align - 1);
	void *p;

	size = (size + 7) & ~(size_t)7;
	if (size + skip > left) {
		left = size + LINE_BYTES > POOL_BYTES ? size + LINE_BYTES : POOL_BYTES;
		pool = xalloc(1, left);
		skip = -(uintptr_t)pool & (align - 1);
	}
	p = pool + skip;
	pool += skip + size;
	left -= skip + size;
	return p;
}

static void grow_table(void)
{
	size_t n = n_buckets ? n_buckets * 2 : 1u << 16;
	struct block **table = xalloc(n, sizeof(*table));

	for (size_t i = 0; i < n_buckets; i++) {
		struct block *b = buckets[i];

		while (b) {
			struct block *next = b->next;

			b->next = table[b->hash & (n - 1)];
			table[b->hash & (n - 1)] = b;
			b = next;
		}
	}
	free(buckets);
	buckets = table;
	n_buckets = n;
}

struct block *block_get(uint64_t pc, const struct insn *insns, uint32_t n, uint64_t hash,
			uint64_t target)
{
	const struct insn *last = &insns[n - 1];
	struct block *b;

	if (n_blocks >= n_buckets)
		grow_table();
	for (b = buckets[hash & (n_buckets - 1)]; b; b = b->next)
		if (b->hash == hash && b->pc == pc && b->n == n)
			return b;
	b = pool_alloc(sizeof(*b));
	b->pc = pc;
	b->hash = hash;
	b->n = n;
	b->kind = last->kind == KIND_MARK ? KIND_PLAIN : last->kind;
	b->counted = insns->kind != KIND_MARK;
	for (uint32_t i = 0; i < n; i++)
		b->aside |= insns[i].mark >> 12 == MARK_ASIDE && !(insns[i].pc >> 63);
	b->fall = last->pc + last->size;
	b->target = last->kind == KIND_REP ? last->pc : target;
	b->insns = pool_alloc(n * sizeof(*insns));
	memcpy(b->insns, insns, n * sizeof(*insns));
	b->count = pool_alloc(n * sizeof(*b->count));
	for (uint32_t i = 0; i < n; i++)
		b->insns[i].slots = b->count[i];
	b->next = buckets[hash & (n_buckets - 1)];
	buckets[hash & (n_buckets - 1)] = b;
	n_blocks++;
	if (n == 1)
		append(&singles, b);
	return b;
}

void block_touch_slow(struct block *b)
{
	b->touched = true;
	append(&ran, b);
}

static bool has_counts(const struct block *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		for (int s = 0; s < SLOTS; s++)
			if (b->count[i][s])
				return true;
	return false;
}

/* Where every access is a callback, it touches its block. */
static bool singles_touched;

void blocks_touch_no_singles(void)
{
	singles_touched = true;
}

static void touch_singles(void)
{
	if (singles_touched)
		return;
	for (size_t i = 0; i < singles.n; i++)
		if (has_counts(singles.items[i]))
			block_touch(singles.items[i]);
}

void blocks_clear(void)
{
	touch_singles();
	for (size_t i = 0; i < ran.n; i++) {
		struct block *b = ran.items[i];

		memset(b->count, 0, b->n * sizeof(*b->count));
		b->shortfall = 0;
		b->rep_taken = 0;
		b->touched = false;
	}
	ran.n = 0;
}

void blocks_absorb(void)
{
	touch_singles();
	for (size_t i = 0; i < ran.n; i++) {
		struct block *b = ran.items[i];

		if (!b->summed) {
			b->summed = true;
			append(&in_interval, b);
		}
		if (!b->sum)
			b->sum = pool_alloc(b->n * sizeof(*b->sum));
		for (uint32_t k = 0; k < b->n; k++)
			for (int s = 0; s < SLOTS; s++)
				b->sum[k][s] += b->count[k][s];
	}
	blocks_clear();
}

void blocks_drop_sums(void)
{
	for (size_t i = 0; i < in_interval.n; i++) {
		struct block *b = in_interval.items[i];

		memset(b->sum, 0, b->n * sizeof(*b->sum));
		b->summed = false;
	}
	in_interval.n = 0;
}

void blocks_each_summed(void (*fn)(const struct block *b, void *arg), void *arg)
{
	for (size_t i = 0; i < in_interval.n; i++)
		fn(in_interval.items[i], arg);
}
