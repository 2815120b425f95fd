/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks of translated code with their counters; which ran since the last mark. */
#ifndef KDELTA_BLOCKS_H
#define KDELTA_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kdelta.h"
#include "values.h"

/*
 * Counters of one instruction in one block. What slots one and two mean depends on the kind:
 *   KIND_COND  taken, unused
 *   KIND_REP   executions, bytes
 *   others     loads, stores (QEMU before 9: all accesses, stores; see interval.c)
 */
enum slot { SLOT_STARTS, SLOT_ONE, SLOT_TWO, SLOTS };

struct insn {
	uint64_t pc;
	uint8_t size;
	uint8_t kind;
	uint8_t last; /* enum last_access; on several CPUs not told */
	uint16_t mark;
	bool locked;
	bool no_loads;
	bool bare; /* makes no access: none is counted */
	bool tame; /* the next instruction of the block starts as often as this one */
	bool pair; /* shows each access twice */
	bool halts;
	bool switches; /* takes the next task's stack: see counting.c */
	bool saves;    /* keeps the previous one's */
	bool leaves;   /* maybe to a program: see calls.c */
	bool enters;   /* a program's system call instruction: see calls.c */
	bool calls;
	bool returns;
	bool doubtful; /* the last of its block, and maybe not in the code at all: see plugin.c */
	bool split;    /* slot one holds loads alone */
	bool noted;    /* so does it here, since touched.c counts its accesses beside its lines */
	bool rep_stores;
	uint8_t rep_accesses;
	uint8_t rep_width;
	struct values values; /* on several CPUs, of the kernel: see sequences.c */
	uint64_t *slots;      /* its counters in this block */
};

struct block {
	/* What each entry looks at (flow.c), in one cache line of the host's. */
	uint64_t pc;
	uint64_t target; /* of the last instruction: where it branches or jumps to; REP: itself */
	uint64_t fall;	 /* address after the last instruction */
	uint64_t (*count)[SLOTS]; /* QEMU adds here */
	struct insn *insns;
	uint32_t n;
	uint32_t entry;	 /* calls.c: which entry into the kernel starts here, or 0 */
	uint32_t listed; /* callers.c: in which function that acts for its caller, or 0 */
	uint8_t kind;	 /* of the last instruction */
	bool aside;	 /* a program's, and it holds the mark ASIDE: no row is made of it */
	uint8_t counted; /* 1: flow.c counts the starts of the first instruction; 0: it is a mark */
	bool touched;	 /* ran since the counters were cleared: in the list `ran` */
	bool summed;	 /* in the list `in_interval` */

	struct block *next; /* in its hash bucket */
	uint64_t hash;
	uint64_t function; /* stacks.c: where the function starts that it is in; 0: none is known */
	uint8_t role;	   /* stacks.c: enum function_role */
	uint64_t shortfall; /* calls.c: see there */
	uint64_t rep_taken; /* calls.c: of the REP at its end, bytes that have been accounted for */
	struct access_site *sites; /* coherence.c: one for each instruction, or NULL */
	uint64_t (*sum)[SLOTS];	   /* of the open interval, NULL until first needed */
};

static inline struct insn *block_last(const struct block *b)
{
	return &b->insns[b->n - 1];
}

/*
 * How often the instruction behind the k-th started, which did so `starts` times.
 * It has no counter (see instrument.c) where what the k-th did tells.
 */
static inline uint64_t starts_behind(const struct block *b, uint64_t (*count)[SLOTS], uint32_t k,
				     uint64_t starts)
{
	const struct insn *insn = &b->insns[k];

	if (insn[1].doubtful)
		return count[k + 1][SLOT_STARTS];
	if (insn->tame) /* nothing can come in between */
		return starts;
	switch (insn->last) {
	case LAST_LOAD: /* with each QEMU slot one has the loads of what never stores */
		return count[k][SLOT_ONE];
	case LAST_STORE:
		return count[k][SLOT_TWO];
	default:
		return count[k + 1][SLOT_STARTS];
	}
}

/* NULL on failure is impossible, running out of memory ends QEMU with a message. */
struct block *block_get(uint64_t pc, const struct insn *insns, uint32_t n, uint64_t hash,
			uint64_t target);
void block_touch_slow(struct block *b);
static inline void block_touch(struct block *b)
{
	if (!b->touched)
		block_touch_slow(b);
}
/* From now on blocks of one instruction are touched by who counts in them: see blocks.c. */
void blocks_touch_no_singles(void);
void blocks_clear(void);  /* counters to zero, nothing has run */
void blocks_absorb(void); /* add the counters to the interval's sums, then clear */
void blocks_drop_sums(void);
void blocks_each_summed(void (*fn)(const struct block *b, void *arg), void *arg);

#endif
