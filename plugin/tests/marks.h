/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks for the assembler: ARCHITECTURE.md, "Contract: marks". */
/* clang-format off */
#ifdef __x86_64__
#define MARK(op, arg) .byte 0x0f, 0x1f, 0x84, 0x00; .word ((op) << 12) | (arg); .word 0x4b4d
#else
#define MARK(op, arg) movz xzr, #((op) << 12 | (arg))
#endif
/* An id of 32 bits is spelled by eight marks. */
#define ID(v)                                                                   \
	MARK(5, ((v) >> 28) & 15); MARK(5, ((v) >> 24) & 15); MARK(5, ((v) >> 20) & 15); \
	MARK(5, ((v) >> 16) & 15); MARK(5, ((v) >> 12) & 15); MARK(5, ((v) >> 8) & 15);  \
	MARK(5, ((v) >> 4) & 15); MARK(5, (v) & 15)
#define BEGIN(id) ID(id); MARK(1, 0)
#define END MARK(2, 0)
#define PAUSE MARK(3, 0)
#define RESUME MARK(4, 0)
#define BEGIN_FOR_OTHERS(id) ID(id); MARK(1, 1)
#define PAUSE_ALONE MARK(3, 1)
#define FORGET MARK(7, 0)
#define ARM MARK(8, 0)
#define QUIET MARK(9, 0)
#define ASIDE MARK(13, 0)
