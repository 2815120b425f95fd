/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What marks do: ARCHITECTURE.md, "Contract: marks". */
#include "blocks.h"
#include "coherence.h"
#include "kdelta.h"

/* In the trailer of the output. */
enum { FLAG_OPEN = 1, FLAG_ABANDONED = 2, FLAG_BLIND = 4, FLAG_BARE = 8, FLAG_LONG = 16 };

static struct {
	bool abandoned;
	bool blind; /* opened for others before any task switch was seen */
	bool bare;  /* opened before ARM, or after QUIET */
	uint32_t id, next_id;
} interval;

static struct {
	void (*arm)(void), (*quiet)(void);
	bool is_quiet, armed;
} translation;

static bool rehearsal; /* from REHEARSE to ORDER nothing that is said counts */

void marks_translate_with(void (*arm)(void), void (*quiet)(void))
{
	translation.arm = arm;
	translation.quiet = quiet;
}

/*
 * While all is quiet, code that is new to QEMU has no callbacks. So ARM is only
 * seen where it was translated before: the guest has to have been there once.
 */
static void be_quiet(bool quiet)
{
	if (quiet == translation.is_quiet)
		return;
	translation.is_quiet = quiet;
	if (!quiet) {
		counting_start_over();
		calls_start_over();
	}
	if (translation.armed)
		return;
	translation.armed = !quiet;
	if (quiet)
		translation.quiet();
	else
		translation.arm();
}

static void begin(bool for_others)
{
	turns_check();
	interval.abandoned |= counting_is_open();
	blocks_drop_sums();
	interval.id = interval.next_id;
	interval.next_id = 0;
	interval.bare |= translation.is_quiet;
	interval.blind |= !counting_open(for_others);
	hold_begin();
	lines_begin();
	touched_begin();
	calls_begin();
}

static void end(void)
{
	struct record *records;
	size_t n;

	if (!counting_close())
		return;
	turns_check();
	hold_end(interval.id);
	lines_end(interval.id);
	n = interval_records(&records);
	output_interval(interval.id, records, n);
	calls_end(interval.id);
	if (!lines_wanted())
		touched_end(interval.id);
	blocks_drop_sums();
}

static void follow(uint16_t mark)
{
	bool arg = mark & 1;

	if (rehearsal && mark >> 12 != MARK_ORDER)
		return;
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
	case MARK_ARM:
		be_quiet(false);
		break;
	case MARK_QUIET:
		be_quiet(true);
		break;
	case MARK_REHEARSE:
		rehearsal = true;
		break;
	case MARK_ORDER:
		rehearsal = false;
		order_mark(arg);
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
	(void)vcpu;
	interval.bare |= !rehearsal && (uintptr_t)mark >> 12 == MARK_BEGIN;
	follow((uint16_t)(uintptr_t)mark);
}

void mark_halts(unsigned int vcpu, void *unused)
{
	(void)vcpu;
	(void)unused;
	counting_idle();
	block_touch(flow_current());
}

uint32_t marks_flags(void)
{
	return (counting_is_open() ? FLAG_OPEN : 0) | (interval.abandoned ? FLAG_ABANDONED : 0) |
	       (interval.blind ? FLAG_BLIND : 0) | (interval.bare ? FLAG_BARE : 0) |
	       (turns_were_long() ? FLAG_LONG : 0);
}
