/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks that the counting plugin sees when it translates them (ARCHITECTURE.md,
 * "Contract: marks"). They need no privilege and do nothing on any CPU, so one
 * binary serves timed and exact mode.
 */
#ifndef KDELTA_MARK_H
#define KDELTA_MARK_H

#include <stdint.h>

#define MARK_OP_BEGIN 1
#define MARK_OP_END 2
#define MARK_OP_PAUSE 3
#define MARK_OP_RESUME 4
#define MARK_OP_NIBBLE 5
#define MARK_OP_EPOCH 6
#define MARK_OP_FORGET 7
#define MARK_OP_ARM 8
#define MARK_OP_QUIET 9
#define MARK_OP_ORDER 10
#define MARK_OP_REHEARSE 11
#define MARK_OP_STOP 12
#define MARK_OP_ASIDE 13
#define MARK_SEED 1 /* of ORDER: what is told is a seed, not a job list */
#define MARK_ALONE \
	1 /* of PAUSE: the caller's work alone is left out; of BEGIN: the caller's is not counted */

#if defined(__x86_64__)
/* nopl imm32(%rax,%rax,1) */
#define MARK(op, arg)                                                    \
	__asm__ __volatile__(".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long %c0" \
			     :                                           \
			     : "i"(0x4b4d0000 | (op) << 12 | (arg))      \
			     : "memory")
#elif defined(__aarch64__)
#define MARK(op, arg) __asm__ __volatile__("movz xzr, #%c0" : : "i"((op) << 12 | (arg)) : "memory")
#else
#error "no marks for this architecture"
#endif

#define MARK_NIBBLE_CASE(n)              \
	case n:                          \
		MARK(MARK_OP_NIBBLE, n); \
		break

/* A mark's operand is a constant, so one of sixteen is chosen by a branch. */
static inline void mark_nibble(unsigned int value)
{
	switch (value & 15) {
		MARK_NIBBLE_CASE(0);
		MARK_NIBBLE_CASE(1);
		MARK_NIBBLE_CASE(2);
		MARK_NIBBLE_CASE(3);
		MARK_NIBBLE_CASE(4);
		MARK_NIBBLE_CASE(5);
		MARK_NIBBLE_CASE(6);
		MARK_NIBBLE_CASE(7);
		MARK_NIBBLE_CASE(8);
		MARK_NIBBLE_CASE(9);
		MARK_NIBBLE_CASE(10);
		MARK_NIBBLE_CASE(11);
		MARK_NIBBLE_CASE(12);
		MARK_NIBBLE_CASE(13);
		MARK_NIBBLE_CASE(14);
		MARK_NIBBLE_CASE(15);
	}
}

/* Says the id of the next interval, most significant nibble first. */
static inline void mark_id(uint32_t id)
{
	int shift;

	for (shift = 28; shift >= 0; shift -= 4)
		mark_nibble(id >> shift);
}

#endif
