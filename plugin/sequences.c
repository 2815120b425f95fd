/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sequence counters (the kernel's seqcount_t and seqlock_t). Their readers are
 * code of the functions that read, so they are told by what they do. One begins
 * with a load of the counter and a test of its bit 0, mostly in a loop with a
 * PAUSE; it ends with another load, whose value is compared with the first one.
 * That load is followed through the registers to the comparison, within code
 * that has no branch, and both values are looked at there.
 *
 * A read is in vain where the word was written in this interval and the other
 * value is an even number that lies before its own: so far the counter was when
 * the read began. Which words are sequence counters is for the host to say, by
 * their types, or because their readers begin and end as said above.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "kdelta.h"
#include "qemu_api.h"
#include "sequences.h"
#include "table.h"

#define RECENT 4 /* loads, of a CPU, that wait for their comparison */

/* Per register: the load whose value it holds, or 0. */
struct held {
	uint64_t by[X86_REGISTERS];
};

/* Code goes on at `pc`, where a block ended that did not branch. */
struct open_end {
	uint64_t pc, zero;
	struct held held;
};

/* A test that the end of a turn parts from its branch is known from when it was not. */
struct tested {
	uint64_t pc, zero;
	bool pauses;
};

struct counted {
	uint64_t address, pc;
	uint64_t kind, times, failed;
};

/* A task found the word odd, and has not found it even since. */
struct waiting {
	uint64_t task, address;
	bool now;
};

static struct table open_ends = {.item = sizeof(struct open_end)};
static struct table tests = {.item = sizeof(struct tested)};
static struct table counts = {.item = sizeof(struct counted)};
static struct table waits = {.item = sizeof(struct waiting)};

static struct recent {
	struct {
		uint64_t pc, address;
	} loads[RECENT];
	unsigned int next;
} recent[CPUS_MAX];

static bool (*written)(uint64_t address);

bool sequences_known(void)
{
	return qemu_plugin_mem_get_value && qemu_plugin_read_memory_vaddr;
}

/* Whether the code at pc begins with PAUSE. */
static bool pauses(uint64_t pc)
{
	static const uint8_t pause[] = {0xf3, 0x90};
	static GByteArray *bytes;

	if (!bytes)
		bytes = g_byte_array_new();
	return qemu_plugin_read_memory_vaddr(pc, bytes, sizeof(pause)) &&
	       !memcmp(bytes->data, pause, sizeof(pause));
}

static struct sequence_site *site_of(const struct block *b, uint32_t k,
				     struct sequence_site **found)
{
	if (!found[k]) {
		found[k] = xalloc(1, sizeof(**found));
		found[k]->pc = b->insns[k].pc;
	}
	return found[k];
}

/* The load at pc, where it is one of this block; else it has been marked with its own. */
static void mark_load(const struct block *b, uint64_t pc, struct sequence_site **found)
{
	for (uint32_t k = 0; k < b->n; k++)
		if (b->insns[k].pc == pc)
			site_of(b, k, found)->loads = true;
}

static void find_comparison(const struct block *b, uint32_t k, struct held *held,
			    struct sequence_site **found)
{
	struct values v = b->insns[k].values;
	bool in_memory = v.role == VALUE_COMPARES_MEMORY;
	struct sequence_site *s;

	if (!in_memory && !held->by[v.a] && !held->by[v.b])
		return;
	s = site_of(b, k, found);
	s->compares = true;
	s->in_memory = in_memory;
	s->a = v.a;
	s->b = v.b;
	s->from_a = held->by[v.a];
	s->from_b = in_memory ? 0 : held->by[v.b];
	mark_load(b, s->from_a, found);
	mark_load(b, s->from_b, found);
}

/* What is held behind the k-th instruction. */
static void follow(const struct block *b, uint32_t k, struct held *held)
{
	const struct insn *i = &b->insns[k];

	switch (i->values.role) {
	case VALUE_UNKNOWN:
		memset(held, 0, sizeof(*held));
		break;
	case VALUE_WRITES:
		held->by[i->values.a] = 0;
		break;
	case VALUE_COPIES:
		held->by[i->values.a] = held->by[i->values.b];
		break;
	case VALUE_LOADS:
		held->by[i->values.a] = i->pc;
		break;
	default:
		break;
	}
}

/* What the k-th instruction tests was loaded; pauses: the block goes on there, and waits. */
static void find_test(const struct block *b, uint32_t k, const struct held *held,
		      struct sequence_site **found)
{
	const struct insn *i = &b->insns[k];
	struct tested *t;

	if (!held->by[i->values.a])
		return;
	t = table_item(&tests, i->pc, 0);
	if (k + 2 == b->n && b->kind == KIND_COND)
		t->pauses = pauses(b->target) || pauses(b->fall);
	site_of(b, k, found)->tests = true;
	found[k]->pauses = t->pauses;
	found[k]->a = i->values.a;
	found[k]->from_a = held->by[i->values.a];
	mark_load(b, found[k]->from_a, found);
}

void sequences_find(const struct block *b, struct sequence_site **found)
{
	const struct open_end *before = table_find(&open_ends, b->pc, 0);
	struct held held = before ? before->held : (struct held){0};

	for (uint32_t k = 0; k < b->n; k++) {
		uint8_t role = b->insns[k].values.role;

		if (role == VALUE_COMPARES || role == VALUE_COMPARES_MEMORY)
			find_comparison(b, k, &held, found);
		else if (role == VALUE_TESTS_ONE)
			find_test(b, k, &held, found);
		follow(b, k, &held);
	}
	for (int r = 0; r < X86_REGISTERS; r++) {
		if (!held.by[r] || b->kind != KIND_PLAIN)
			continue;
		mark_load(b, held.by[r], found);
		((struct open_end *)table_item(&open_ends, b->fall, 0))->held = held;
	}
}

static struct counted *count(uint64_t address, uint64_t pc, unsigned int kind)
{
	struct counted *c = table_item(&counts, address, pc);

	c->kind = kind;
	c->times++;
	return c;
}

/* A read ended: `value` of the word against the one it began with. */
static void check(const struct sequence_site *s, uint64_t address, uint32_t value, uint32_t begun)
{
	struct counted *c = count(address, s->pc, SEQUENCE_CHECK);

	c->failed += !(begun & 1) && (int32_t)(value - begun) > 0 && written(address);
}

/* The word that the last load at pc of this CPU was of; once. */
static uint64_t loaded(uint64_t pc)
{
	struct recent *r = &recent[cpu_now];

	for (unsigned int i = 0; pc && i < RECENT; i++)
		if (r->loads[i].pc == pc) {
			r->loads[i].pc = 0;
			return r->loads[i].address;
		}
	return 0;
}

static void keep_load(uint64_t pc, uint64_t address)
{
	struct recent *r = &recent[cpu_now];

	loaded(pc);
	r->loads[r->next].pc = pc;
	r->loads[r->next].address = address;
	r->next = (r->next + 1) % RECENT;
}

/* Loads of a reader that waits are one beginning. */
static void begin_read(const struct sequence_site *s, uint64_t address, uint32_t value)
{
	struct waiting *w = table_find(&waits, counting_task(), address);
	bool waited = w && w->now, odd = (value & 1) && written(address);
	struct counted *c;

	if (w)
		w->now = odd;
	if (waited)
		return;
	c = count(address, s->pc, SEQUENCE_BEGIN | (s->pauses ? SEQUENCE_PAUSE : 0));
	if (!odd)
		return;
	c->failed++;
	if (s->pauses)
		((struct waiting *)table_item(&waits, counting_task(), address))->now = true;
}

void sequences_access(const struct sequence_site *s, uint64_t address, uint32_t value)
{
	uint64_t first;

	if (s->loads)
		keep_load(s->pc, address);
	if (!s->compares || !counting_now())
		return;
	check(s, address, value, cpu_register(s->a));
	first = loaded(s->from_a);
	if (first)
		check(s, first, cpu_register(s->a), value);
}

void sequences_look(unsigned int vcpu, void *site)
{
	const struct sequence_site *s = site;
	uint64_t first, second;

	(void)vcpu;
	if (!counting_now())
		return;
	first = loaded(s->from_a);
	second = loaded(s->from_b);
	if (first && s->tests)
		begin_read(s, first, cpu_register(s->a));
	else if (first)
		check(s, first, cpu_register(s->a), cpu_register(s->b));
	if (second)
		check(s, second, cpu_register(s->b), cpu_register(s->a));
}

void sequences_begin(bool (*ask)(uint64_t address))
{
	written = ask;
	table_empty(&counts);
	table_empty(&waits);
	memset(recent, 0, sizeof(recent));
}

size_t sequences_counts(struct sequence_count **found)
{
	struct table words = {.item = 2 * sizeof(uint64_t)};
	size_t n = 0;

	for (const struct counted *c = NULL; (c = table_next(&counts, c));)
		if (c->failed)
			table_item(&words, c->address, 0);
	*found = xalloc(counts.n + 1, sizeof(**found));
	for (const struct counted *c = NULL; (c = table_next(&counts, c));)
		if (table_find(&words, c->address, 0))
			(*found)[n++] = (struct sequence_count){
				c->address, c->pc,     c->kind,
				c->times,   c->failed, slabs_place(c->address & -(uint64_t)64),
			};
	free(words.items);
	qsort(*found, n, sizeof(**found), table_order);
	return n;
}
