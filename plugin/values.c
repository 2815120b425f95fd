/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What x86 instructions do with the values that registers hold, as far as it is
 * followed from a load to the comparison of what it loaded. What is not known
 * here is VALUE_UNKNOWN, after which no register's value is known.
 */
#include "values.h"

struct operands {
	uint8_t rex, op, modrm;
	const uint8_t *rest; /* behind opcode and ModRM byte */
	size_t left;	     /* bytes of it */
};

static bool memory(const struct operands *o)
{
	return o->modrm >> 6 != 3;
}

static uint8_t reg(const struct operands *o)
{
	return (uint8_t)((o->modrm >> 3 & 7) | (o->rex & 4) << 1);
}

static uint8_t rm(const struct operands *o)
{
	return (uint8_t)((o->modrm & 7) | (o->rex & 1) << 3);
}

static bool wide(const struct operands *o)
{
	return o->rex & 8;
}

static struct values role(enum value_role role, uint8_t a)
{
	return (struct values){.role = (uint8_t)role, .a = a};
}

/* Writes its r/m operand. */
static struct values to_rm(const struct operands *o)
{
	return memory(o) ? role(VALUE_KEEPS, 0) : role(VALUE_WRITES, rm(o));
}

/* The same of one byte: without a REX prefix 4 to 7 are the second bytes of 0 to 3. */
static struct values to_rm_byte(const struct operands *o)
{
	return !memory(o) && !o->rex && rm(o) >= 4 ? role(VALUE_UNKNOWN, 0) : to_rm(o);
}

static struct values compares(const struct operands *o)
{
	if (wide(o))
		return role(VALUE_KEEPS, 0);
	if (memory(o))
		return role(VALUE_COMPARES_MEMORY, reg(o));
	return (struct values){VALUE_COMPARES, reg(o), rm(o)};
}

static struct values moves(const struct operands *o)
{
	if (o->op == 0x89)
		return memory(o) ? role(VALUE_KEEPS, 0)
				 : (struct values){VALUE_COPIES, rm(o), reg(o)};
	if (memory(o))
		return role(wide(o) ? VALUE_WRITES : VALUE_LOADS, reg(o));
	return (struct values){VALUE_COPIES, reg(o), rm(o)};
}

/* test $1 of a register's lowest byte, or of all its bytes; other operations of that group are not followed. */
static struct values tests(const struct operands *o)
{
	bool one = o->left && o->rest[0] == 1, byte = o->op == 0xf6;

	if (o->modrm >> 3 & 7)
		return role(VALUE_UNKNOWN, 0);
	for (size_t i = 1; i < o->left; i++)
		one &= !o->rest[i];
	if (memory(o) || !one || (byte && !o->rex && rm(o) >= 4))
		return role(VALUE_KEEPS, 0);
	return role(VALUE_TESTS_ONE, rm(o));
}

/* add, or, adc, sbb, and, sub, xor of an immediate; 7: cmp */
static struct values by_immediate(const struct operands *o)
{
	if ((o->modrm >> 3 & 7) == 7)
		return role(VALUE_KEEPS, 0);
	return o->op == 0x80 ? to_rm_byte(o) : to_rm(o);
}

static struct values two_bytes(struct operands *o)
{
	uint8_t op = o->op;

	if (op == 0x1f || (op & 0xf0) == 0x80 ||
	    (op == 0xae && !memory(o))) /* nop, branches, fences */
		return role(VALUE_KEEPS, 0);
	if ((op & 0xf0) == 0x40 || (op & 0xf6) == 0xb6) /* cmov, movzx, movsx */
		return role(VALUE_WRITES, reg(o));
	return (op & 0xf0) == 0x90 ? to_rm_byte(o) : role(VALUE_UNKNOWN, 0); /* setcc */
}

/* One byte of opcode, which holds the register or has it in a ModRM byte. */
static struct values one_byte(struct operands *o)
{
	uint8_t op = o->op, low = (uint8_t)((op & 7) | (o->rex & 1) << 3);

	if (op < 0x38 && (op & 7) < 4) { /* arithmetic of two operands */
		if (!(op & 1))
			return role(VALUE_UNKNOWN, 0);
		return op & 2 ? role(VALUE_WRITES, reg(o)) : to_rm(o);
	}
	if ((op & 0xf8) == 0x50 || (op & 0xf0) == 0x70) /* push, conditional branches */
		return role(VALUE_KEEPS, 0);
	if ((op & 0xf8) == 0x58 || (op & 0xf8) == 0xb8) /* pop, mov of an immediate */
		return role(VALUE_WRITES, low);
	switch (op) {
	case 0x39:
	case 0x3b:
		return compares(o);
	case 0x89:
	case 0x8b:
		return moves(o);
	case 0x63: /* movsxd */
	case 0x8d: /* lea */
		return role(VALUE_WRITES, reg(o));
	case 0xf6:
	case 0xf7:
		return tests(o);
	case 0x80:
	case 0x81:
	case 0x83:
		return by_immediate(o);
	case 0x88: /* mov of a byte */
	case 0xc6:
		return to_rm_byte(o);
	case 0xc1: /* shifts */
	case 0xd1:
	case 0xd3:
	case 0xc7: /* mov of an immediate */
		return to_rm(o);
	case 0x38: /* cmp, test */
	case 0x3a:
	case 0x3c:
	case 0x3d:
	case 0x84:
	case 0x85:
		return role(VALUE_KEEPS, 0);
	case 0x90: /* nop; with a prefix xchg */
		return role(o->rex ? VALUE_UNKNOWN : VALUE_KEEPS, 0);
	}
	return role(VALUE_UNKNOWN, 0);
}

struct values x86_values(const uint8_t *bytes, size_t size)
{
	struct operands o = {0};
	size_t n = 0;
	bool two;

	while (n < size && (bytes[n] == 0x64 || bytes[n] == 0x65 || (bytes[n] & 0xe7) == 0x26))
		n++; /* segments */
	if (n < size && (bytes[n] & 0xf0) == 0x40)
		o.rex = bytes[n++];
	two = n < size && bytes[n] == 0x0f;
	n += two;
	if (n == size)
		return role(VALUE_UNKNOWN, 0);
	o.op = bytes[n++];
	if (!two && o.op == 0xa8) /* test of al: as if it had a ModRM byte */
		return role(n < size && bytes[n] == 1 ? VALUE_TESTS_ONE : VALUE_KEEPS, 0);
	if (n < size)
		o.modrm = bytes[n++];
	o.rest = bytes + n;
	o.left = size - n;
	return two ? two_bytes(&o) : one_byte(&o);
}
