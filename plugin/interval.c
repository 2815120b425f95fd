/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From counters of blocks to one record per address.
 *
 * QEMU counts an instruction when it starts. One that faults and is executed
 * again starts twice, but completed once, and once is what is reported:
 *  - inside a block, an instruction completed as often as the next one started;
 *  - at the end of a block there is no next one, but an instruction that
 *    accesses memory completed as often as it made its (last) access;
 *  - an access to a device starts in one block and completes in a block of its
 *    own, which counts accesses only: there accesses stand for executions too.
 * An instruction without accesses that ends a block counts as often as it
 * started; that includes those that always raise an exception (int3, ud2, svc).
 * Loads and stores are the accesses made, also by an attempt that then faulted.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "kdelta.h"

/* What is known of one address, added up over the blocks that contain it. */
struct row {
	uint64_t pc;
	uint64_t starts;
	uint64_t completed; /* inside a block */
	uint64_t ends;	    /* starts as the last instruction of a block */
	uint64_t loads, stores;
	uint64_t loads_at_end, stores_at_end;
	uint64_t branches, rep_executions, rep_bytes;
	bool locked;
	uint8_t kind;
};

static struct row *rows;
static size_t n_rows, room;

static struct row *new_row(void)
{
	if (n_rows == room) {
		room = room ? room * 2 : 1u << 14;
		struct row *more = xalloc(room, sizeof(*more));

		if (n_rows)
			memcpy(more, rows, n_rows * sizeof(*rows));
		free(rows);
		rows = more;
	}
	memset(&rows[n_rows], 0, sizeof(*rows));
	return &rows[n_rows++];
}

/*
 * QEMU 7.2 charges what an interrupt reads and pushes (five of each, or one
 * read more) to the instruction that ended the block before it. By itself that
 * instruction makes one load and one store at most; those that make more are
 * helpers (split), which do not end blocks, save iret.
 */
static bool holds_strays(uint64_t starts, uint64_t loads, uint64_t stores)
{
	uint64_t less = loads < stores ? loads : stores, more = loads + stores - less;

	return less && (more > starts || 2 * less < more || 2 * more < starts);
}

/*
 * Then it is taken to have completed each time. Of a return, a jump or a call it is known
 * which access is its own; else that is what the stray ones leave apart.
 */
static void drop_strays(struct row *r, const struct insn *insn)
{
	int64_t apart = (int64_t)(r->loads - r->stores);
	int64_t half = (int64_t)(r->starts + 1) / 2;
	bool both = apart < half && -apart < half && r->loads >= r->starts;
	bool loads = both || apart >= half, stores = both || -apart >= half;

	if (insn->last == LAST_LOAD || (insn->last == LAST_STORE && insn->calls)) {
		loads = insn->last == LAST_LOAD && r->loads >= r->starts;
		stores = insn->last == LAST_STORE && r->stores >= r->starts;
	}
	r->loads = loads ? r->starts : 0;
	r->stores = stores ? r->starts : 0;
}

static void fill_accesses(struct row *r, const struct insn *insn, const uint64_t *sum, bool at_end)
{
	/* QEMU before 9: slot one holds all accesses (see plugin.c). */
	r->stores = sum[SLOT_TWO];
	if (!insn->no_loads)
		r->loads =
			insn->split || insn->noted ? sum[SLOT_ONE] : sum[SLOT_ONE] - sum[SLOT_TWO];
	if (insn->pair) {
		r->loads /= 2;
		r->stores /= 2;
	}
	if (insn->kind == KIND_IRET) { /* never stores */
		r->loads -= r->stores;
		r->stores = 0;
	}
	if (at_end && !insn->split && holds_strays(r->starts, r->loads, r->stores))
		drop_strays(r, insn);
	if (at_end) {
		r->loads_at_end = r->loads;
		r->stores_at_end = r->stores;
	}
}

static void add_insn(const struct block *b, uint32_t k, bool at_end, uint64_t starts,
		     uint64_t next_starts)
{
	const struct insn *insn = &b->insns[k];
	const uint64_t *sum = b->sum[k];
	struct row *r;

	if (insn->kind == KIND_MARK || !(starts | sum[SLOT_ONE] | sum[SLOT_TWO]))
		return;
	r = new_row();
	r->pc = insn->pc;
	r->kind = insn->kind;
	r->locked = insn->locked;
	r->starts = starts;
	if (at_end)
		r->ends = starts;
	else
		r->completed = next_starts;
	switch (insn->kind) {
	case KIND_COND:
		r->branches = sum[SLOT_ONE];
		break;
	case KIND_REP:
		r->rep_executions = sum[SLOT_ONE];
		r->rep_bytes = sum[SLOT_TWO];
		break;
	default:
		fill_accesses(r, insn, sum, at_end);
	}
}

static void add_block(const struct block *b, void *arg)
{
	uint64_t starts = b->sum[0][SLOT_STARTS], next = 0;
	uint32_t n = b->n;

	(void)arg;
	if (b->aside)
		return;
	if (b->insns[n - 1].doubtful && !b->sum[n - 1][SLOT_STARTS])
		n--;
	for (uint32_t k = 0; k < n; k++, starts = next) {
		bool at_end = k + 1 == n;

		if (!at_end)
			next = starts_behind(b, b->sum, k, starts);
		add_insn(b, k, at_end, starts, next);
	}
}

static int by_pc(const void *a, const void *b)
{
	uint64_t x = ((const struct row *)a)->pc, y = ((const struct row *)b)->pc;

	return (x > y) - (x < y);
}

static void add_row(struct row *to, const struct row *r)
{
	to->starts += r->starts;
	to->completed += r->completed;
	to->ends += r->ends;
	to->loads += r->loads;
	to->stores += r->stores;
	to->loads_at_end += r->loads_at_end;
	to->stores_at_end += r->stores_at_end;
	to->branches += r->branches;
	to->rep_executions += r->rep_executions;
	to->rep_bytes += r->rep_bytes;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How often the instruction completed; see the head of this file. */
static uint64_t executions(const struct row *r)
{
	/* The last access of a read-modify-write is its store. */
	uint64_t accesses = r->stores ? r->stores : r->loads;
	uint64_t at_end = r->stores ? r->stores_at_end : r->loads_at_end;
	uint64_t inside = accesses - at_end, each = 1;

	if (r->kind == KIND_REP)
		return r->rep_executions;
	if (!accesses || (r->completed && !inside))
		return r->completed + r->ends;
	if (r->completed)
		each = (inside + r->completed - 1) / r->completed;
	return min(r->starts, r->completed + at_end / each);
}

static bool to_record(const struct row *r, struct record *out)
{
	uint64_t done = executions(r);
	uint64_t any = 0;

	*out = (struct record){
		.pc = r->pc,
		.c = {done, r->loads, r->stores, r->locked ? done : 0, r->branches,
		      r->rep_executions, r->rep_bytes},
	};
	for (int i = 0; i < COUNTERS; i++)
		any |= out->c[i];
	return any;
}

size_t interval_records(struct record **records)
{
	static struct record *out;
	size_t n = 0;

	n_rows = 0;
	blocks_each_summed(add_block, NULL);
	qsort(rows, n_rows, sizeof(*rows), by_pc);
	free(out);
	out = xalloc(n_rows + 1, sizeof(*out));
	for (size_t i = 0; i < n_rows;) {
		struct row total = rows[i];
		size_t k = i + 1;

		for (; k < n_rows && rows[k].pc == total.pc; k++)
			add_row(&total, &rows[k]);
		n += to_record(&total, &out[n]);
		i = k;
	}
	*records = out;
	return n;
}
