/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What becomes of values in registers: values.c. */
#ifndef KDELTA_VALUES_H
#define KDELTA_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_role {
	VALUE_UNKNOWN,	       /* of no register is known what it holds behind it */
	VALUE_KEEPS,	       /* writes no register but the stack pointer */
	VALUE_WRITES,	       /* a */
	VALUE_COPIES,	       /* b to a */
	VALUE_LOADS,	       /* 32 bits of memory to a */
	VALUE_COMPARES,	       /* 32 bits of a and b */
	VALUE_COMPARES_MEMORY, /* 32 bits of memory and a */
	VALUE_TESTS_ONE,       /* bit 0 of a */
};

enum { X86_REGISTERS = 16 };

/* a and b: numbers of registers, as in machine code. */
struct values {
	uint8_t role, a, b;
};

struct values x86_values(const uint8_t *bytes, size_t size);

#endif
