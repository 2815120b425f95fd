/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that act for their callers: those that take and release locks, and
 * their slow paths. How often each was entered and from where, and for whom it
 * runs: the call outside of all such functions (release_task and not
 * _raw_write_lock_irq). The host lists them (kernel_knowledge.c). Who calls is
 * the block that came before, so neither registers nor the stack are read.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "callers.h"
#include "kdelta.h"
#include "table.h"

/* For whom a task runs one of them. */
struct running {
	uint64_t task, listed;
	uint64_t caller;
};

struct counted {
	uint64_t entry, from; /* from: the number of site and caller */
	uint64_t times;
};

struct pair {
	uint64_t a, b;
	uint64_t number;
};

static struct listed {
	uint64_t low, high;
} * listed;
static uint32_t n_listed;

static struct table running = {.item = sizeof(struct running)};
static struct table counted = {.item = sizeof(struct counted)};
static struct table pairs = {.item = sizeof(struct pair)};
static uint64_t (*pair_words)[2]; /* by number */
static size_t pairs_room;

uint64_t pair_number(uint64_t a, uint64_t b)
{
	struct pair *p = table_item(&pairs, a, b);

	if (p->number)
		return p->number;
	if (pairs.n >= pairs_room) {
		size_t room = pairs_room ? pairs_room * 2 : 4096;
		uint64_t(*more)[2] = xalloc(room, sizeof(*more));

		if (pairs_room)
			memcpy(more, pair_words, pairs_room * sizeof(*more));
		free(pair_words);
		pair_words = more;
		pairs_room = room;
	}
	p->number = pairs.n;
	pair_words[p->number - 1][0] = a;
	pair_words[p->number - 1][1] = b;
	return p->number;
}

const uint64_t *pair_of(uint64_t number)
{
	return pair_words[number - 1];
}

bool callers_add(uint64_t low, uint64_t high)
{
	struct listed *more;

	if (low >= high || (n_listed && low < listed[n_listed - 1].high))
		return false;
	more = xalloc(n_listed + 1, sizeof(*more));
	if (n_listed)
		memcpy(more, listed, n_listed * sizeof(*listed));
	free(listed);
	listed = more;
	listed[n_listed++] = (struct listed){low, high};
	return true;
}

static int by_place(const void *key, const void *item)
{
	uint64_t pc = *(const uint64_t *)key;
	const struct listed *l = item;

	return pc < l->low ? -1 : pc >= l->high;
}

uint32_t callers_listed(uint64_t pc)
{
	const struct listed *l =
		n_listed ? bsearch(&pc, listed, n_listed, sizeof(*listed), by_place) : NULL;

	return l ? (uint32_t)(l - listed) + 1 : 0;
}

uint64_t callers_caller(const struct block *b)
{
	const struct running *r =
		b->listed ? table_find(&running, counting_task(), b->listed) : NULL;

	return r ? r->caller : 0;
}

/* Only a branch, call or jump leads to a function's start; else an interrupt has just ended there. */
static bool leads(const struct block *left)
{
	return left->n && left->kind != KIND_IRET;
}

void callers_enter(const struct block *left, const struct block *b)
{
	uint64_t site, caller;
	struct counted *c;
	struct running *r;

	if (!b->listed || b->pc != listed[b->listed - 1].low || left->listed == b->listed ||
	    !counting_is_open())
		return;
	site = leads(left) ? block_last(left)->pc : 0;
	caller = left->listed ? callers_caller(left) : site;
	r = table_item(&running, counting_task(), b->listed);
	r->caller = caller;
	if (!counting_now())
		return;
	c = table_item(&counted, b->pc, site | caller ? pair_number(site, caller) : 0);
	c->times++;
}

void callers_begin(void)
{
	table_empty(&running);
	table_empty(&counted);
}

size_t callers_counts(struct entry_count **found)
{
	size_t n = 0;

	*found = xalloc(counted.n + 1, sizeof(**found));
	for (const struct counted *c = NULL; (c = table_next(&counted, c));) {
		static const uint64_t unknown[2];
		const uint64_t *from = c->from ? pair_of(c->from) : unknown;

		(*found)[n++] = (struct entry_count){c->entry, from[0], from[1], c->times};
	}
	qsort(*found, n, sizeof(**found), table_order);
	return n;
}
