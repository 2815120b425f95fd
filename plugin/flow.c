/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From one block to the next. A conditional branch ends its block and leads to
 * its target or to the address after it. A REP instruction ends its block too,
 * and QEMU re-enters it once per iteration: it leads to itself until it is
 * finished. If neither comes next, an interrupt or a fault came between: the
 * block is put aside until a return from interrupt leads to one of the two.
 */
#include <string.h>

#include "blocks.h"
#include "callers.h"
#include "kdelta.h"
#include "qemu_api.h"

#define ASIDE_MAX 32

struct passage {
	struct block *from;
	bool rep_started; /* the REP at the block's end was reached */
};

static struct block nowhere = {.kind = KIND_PLAIN};

/* Of each CPU. */
static struct flow {
	struct passage now;
	struct passage aside[ASIDE_MAX];
	unsigned int n_aside;
	unsigned int rep_step; /* accesses of the iteration under way */
} flows[CPUS_MAX] = {{.now = {.from = &nowhere}}};
static struct flow *here = flows;

static bool inside(const struct block *b, uint64_t pc)
{
	return pc > b->pc && pc < b->fall;
}

static bool leads_to(const struct passage *p, uint64_t pc)
{
	return pc == p->from->fall || pc == p->from->target;
}

/* Control went from the end of p to pc. True: a REP goes on there. */
static bool settle(const struct passage *p, uint64_t pc)
{
	struct block *b = p->from;

	if (pc != b->target || pc == b->fall)
		return false;
	if (b->kind == KIND_REP)
		return p->rep_started;
	b->count[b->n - 1][SLOT_ONE]++;
	block_touch(b);
	return false;
}

static void put_aside(const struct passage *p)
{
	if (here->n_aside == ASIDE_MAX) /* the oldest belongs to a task that never came back */
		memmove(here->aside, here->aside + 1, --here->n_aside * sizeof(*here->aside));
	here->aside[here->n_aside++] = *p;
}

/* After a return from interrupt to pc: who was interrupted there? */
static bool take_up(uint64_t pc)
{
	for (unsigned int i = here->n_aside; i-- > 0;) {
		struct passage p = here->aside[i];
		bool leads = leads_to(&p, pc);

		if (!leads && !inside(p.from, pc))
			continue;
		memmove(here->aside + i, here->aside + i + 1,
			(--here->n_aside - i) * sizeof(*here->aside));
		return leads && settle(&p, pc);
	}
	return false;
}

static bool arrive(const struct passage *p, uint64_t pc)
{
	if (p->from->kind == KIND_IRET)
		return take_up(pc);
	if (leads_to(p, pc))
		return settle(p, pc);
	if (!inside(p->from, pc)) /* else QEMU only cut the block short */
		put_aside(p);
	return false;
}

static void count_rep(struct block *b)
{
	b->count[b->n - 1][SLOT_ONE]++;
	hold_executed++;
	here->now.rep_started = true;
}

/*
 * An inline counter at the first instruction would tell the same, and QEMU takes
 * longer to translate it. An access to a device that a block of its own executes
 * starts in neither (QEMU: CF_MEMI_ONLY).
 */
static void start(struct block *b)
{
	b->count[0][SLOT_STARTS] += b->counted;
	block_touch(b);
}

/* Most ways from a block to the next one, without what few of them need; false where the rest is to be looked at. */
static inline bool passes(struct block *left, const struct block *b)
{
	if (counting_switched || b->kind == KIND_REP || b->listed || calls_wanted())
		return false;
	if (left->kind == KIND_COND && b->pc == left->target && b->pc != left->fall) {
		left->count[left->n - 1][SLOT_ONE]++;
		block_touch(left);
		return true;
	}
	return left->kind == KIND_PLAIN || (left->kind == KIND_COND && b->pc == left->fall);
}

void flow_enter(unsigned int vcpu, void *block)
{
	struct block *b = block;
	struct passage left = here->now;
	bool goes_on = false;

	(void)vcpu;
	if (passes(left.from, b)) {
		here->now.from = b;
		start(b);
		return;
	}
	if (b == here->now.from && b->kind == KIND_REP && b->n == 1 && here->now.rep_started &&
	    !counting_switched) {
		here->rep_step = 0; /* the next iteration of a REP */
		start(b);
		return;
	}
	here->now.from = b;
	if (left.from->kind != KIND_PLAIN)
		goes_on = arrive(&left, b->pc);
	if (calls_wanted())
		calls_leave(left.from);
	if (counting_switched) {
		uint64_t named = counting_switch();

		if (named)
			calls_rename(named);
	}
	if (calls_wanted())
		calls_enter(left.from, b, goes_on);
	if (b->listed)
		callers_enter(left.from, b);
	start(b);
	if (b->kind == KIND_REP) {
		here->now.rep_started = goes_on;
		here->rep_step = 0;
		if (b->n == 1 && !goes_on)
			count_rep(b);
	}
}

void flow_rep_starts(unsigned int vcpu, void *block)
{
	(void)vcpu;
	count_rep(block);
}

void flow_rep_access(unsigned int vcpu, uint32_t info, uint64_t vaddr, void *block)
{
	struct block *b = block;
	const struct insn *rep = block_last(b);

	(void)vcpu;
	(void)vaddr;
	if (qemu_plugin_mem_is_store(info) != rep->rep_stores ||
	    ++here->rep_step < rep->rep_accesses)
		return;
	here->rep_step = 0;
	b->count[b->n - 1][SLOT_TWO] += rep->rep_width;
}

struct block *flow_current(void)
{
	return here->now.from;
}

void flow_to_cpu(unsigned int n)
{
	here = &flows[n];
	if (!here->now.from)
		here->now.from = &nowhere;
}
