/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What marks do: ARCHITECTURE.md, "Contract: marks". */
#include "blocks.h"
#include "kdelta.h"

/* In the trailer of the output. */
enum { FLAG_OPEN = 1, FLAG_ABANDONED = 2, FLAG_BLIND = 4 };

static struct {
	bool abandoned;
	bool blind; /* opened for others before any task switch was seen, or before ARM */
	uint32_t id, next_id;
} interval;

static void (*arm)(void); /* NULL once it has happened */

void marks_arm_with(void (*how)(void))
{
	arm = how;
}

static void begin(bool for_others)
{
	interval.abandoned |= counting_is_open();
	blocks_drop_sums();
	interval.id = interval.next_id;
	interval.next_id = 0;
	interval.blind |= !counting_open(for_others);
	hold_begin();
	calls_begin();
}

static void end(void)
{
	struct record *records;
	size_t n;

	if (!counting_close())
		return;
	hold_end(interval.id);
	n = interval_records(&records);
	output_interval(interval.id, records, n);
	calls_end(interval.id);
	blocks_drop_sums();
}

static void follow(uint16_t mark)
{
	bool arg = mark & 1;

	switch (mark >> 12) {
	case MARK_BEGIN:
		begin(arg);
		break;
	case MARK_END:
		end();
		break;
	case MARK_PAUSE:
		counting_pause(arg);
		break;
	case MARK_RESUME:
		counting_resume();
		break;
	case MARK_NIBBLE:
		interval.next_id = interval.next_id << 4 | (mark & 0xf);
		break;
	case MARK_FORGET:
		counting_forget();
		break;
	default:
		break;
	}
}

/*
 * The block that holds the mark has counted what precedes the mark, and will
 * count what follows: the counters start from zero in between, and the mark
 * itself is where the rows of that block are cut (see add_insn()).
 */
void mark_counted(unsigned int vcpu, void *insn)
{
	const struct insn *what = insn;
	struct block *b = flow_current();

	(void)vcpu;
	b->count[what - b->insns]
		[SLOT_STARTS]++; /* here, so that it falls on the side of what precedes the mark */
	counting_cut();
	follow(what->mark);
	block_touch(b);
}

void mark_uncounted(unsigned int vcpu, void *mark)
{
	unsigned int op = (unsigned int)(uintptr_t)mark >> 12;

	(void)vcpu;
	if (counting_switched)
		counting_switch();
	if (op == MARK_ARM && arm) {
		arm();
		arm = NULL;
		return;
	}
	interval.blind |= op == MARK_BEGIN;
	follow((uint16_t)(uintptr_t)mark);
}

uint32_t marks_flags(void)
{
	return (counting_is_open() ? FLAG_OPEN : 0) | (interval.abandoned ? FLAG_ABANDONED : 0) |
	       (interval.blind ? FLAG_BLIND : 0);
}
