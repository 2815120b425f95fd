/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an instruction is, as far as counting cares. */
#include <string.h>

#include "kdelta.h"

#define MARK_MAGIC 0x4b4d

static uint16_t valid_mark(uint16_t mark)
{
	unsigned int op = mark >> 12;

	return op >= MARK_BEGIN && op <= MARK_ASIDE ? mark : 0;
}

/* The relative operand that ends the instruction: 1, 2 or 4 bytes, sign extended. */
static uint64_t relative(const uint8_t *operand, size_t width)
{
	int8_t rel8;
	int16_t rel16;
	int32_t rel32;

	switch (width) {
	case 1:
		memcpy(&rel8, operand, 1);
		return (uint64_t)(int64_t)rel8;
	case 2:
		memcpy(&rel16, operand, 2);
		return (uint64_t)(int64_t)rel16;
	case 4:
		memcpy(&rel32, operand, 4);
		return (uint64_t)(int64_t)rel32;
	}
	return 0;
}

struct prefixes {
	bool rep, lock, wide, opsize;
	size_t size;
};

static struct prefixes x86_prefixes(const uint8_t *b, size_t size)
{
	struct prefixes p = {0};

	for (; p.size < size; p.size++) {
		switch (b[p.size]) {
		case 0xf2:
		case 0xf3:
			p.rep = true;
			continue;
		case 0xf0:
			p.lock = true;
			continue;
		case 0x66:
			p.opsize = true;
			continue;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0x67:
			continue;
		}
		break;
	}
	if (p.size < size && (b[p.size] & 0xf0) == 0x40)
		p.wide = b[p.size++] & 8;
	return p;
}

static bool x86_string(uint8_t op)
{
	return (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf) ||
	       (op >= 0x6c && op <= 0x6f);
}

static void x86_rep(struct decoded *d, const struct prefixes *p, uint8_t op)
{
	bool moves = op <= 0x6d || (op & 0xfe) == 0xa4 || (op & 0xfe) == 0xaa; /* ins, movs, stos */
	bool twice = op <= 0x6d ||
		     (op & 0xfe) == 0xa6; /* QEMU's ins probes with a store; cmps has two loads */

	d->kind = KIND_REP;
	d->rep_stores = moves;
	d->rep_accesses = twice ? 2 : 1;
	if (!(op & 1))
		d->rep_width = 1;
	else if (op < 0x70) /* ins, outs have no 64-bit form */
		d->rep_width = p->opsize ? 2 : 4;
	else
		d->rep_width = p->wide ? 8 : p->opsize ? 2 : 4;
}

/* Instructions whose accesses QEMU 7.2 makes in helpers; there the memory filter works the other way round. */
static bool x86_helper(const uint8_t *op, size_t left)
{
	unsigned int reg = left > 1 ? (op[1] >> 3) & 7 : 0;

	switch (op[0]) {
	case 0xcf: /* iret */
	case 0xca: /* far return */
	case 0xcb:
	case 0xc8: /* enter */
	case 0x8e: /* mov to segment register */
		return true;
	case 0xff: /* far call and jump */
		return reg == 3 || reg == 5;
	case 0x0f:
		if (left < 2)
			return false;
		switch (op[1]) {
		case 0x00: /* ltr, lldt, verr */
		case 0x02: /* lar */
		case 0x03: /* lsl */
		case 0xae: /* fxsave, xsave and kin */
		case 0xb2: /* lss, lfs, lgs */
		case 0xb4:
		case 0xb5:
		case 0xa1: /* pop fs, gs */
		case 0xa9:
		case 0xc7: /* cmpxchg8b/16b, xsavec */
			return true;
		}
		return false;
	}
	return op[0] >= 0xd8 && op[0] <= 0xdf; /* x87 */
}

/* Operations on one byte of opcode that take a ModRM byte and can only fail by touching memory. */
static bool x86_modrm_tame(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4; /* add, or, adc, sbb, and, sub, xor, cmp */
	return op == 0x63 || (op >= 0x80 && op <= 0x8b && op != 0x82) || op == 0xc0 || op == 0xc1 ||
	       (op >= 0xd0 && op <= 0xd3);
}

static bool x86_modrm_tame_0f(uint8_t op)
{
	/* cmov, setcc, bit tests, movzx, movsx, imul */
	return (op & 0xf0) == 0x40 || (op & 0xf0) == 0x90 || op == 0xa3 || op == 0xab ||
	       op == 0xaf || op == 0xb3 || op == 0xb6 || op == 0xb7 || op == 0xba || op == 0xbb ||
	       op == 0xbe || op == 0xbf || op == 0x1f;
}

/* Certain to reach the next instruction: no access to memory, no exception, no helper that could leave. */
static bool x86_tame(const uint8_t *op, size_t left)
{
	if (left < 2)
		return op[0] == 0x90;
	if (op[0] == 0x8d || (op[0] >= 0xb0 && op[0] <= 0xbf)) /* lea, mov immediate */
		return true;
	if (op[0] < 0x40 && (op[0] & 7) >= 4 && (op[0] & 7) <= 5) /* the same on the accumulator */
		return true;
	if (op[0] == 0x0f)
		return left > 2 && x86_modrm_tame_0f(op[1]) && (op[2] >> 6 == 3 || op[1] == 0x1f);
	if (op[1] >> 6 != 3)
		return false;
	if (op[0] == 0xf6 || op[0] == 0xf7) /* test, not, neg, mul; div can fail */
		return ((op[1] >> 3) & 7) < 6;
	if (op[0] == 0xfe || op[0] == 0xff) /* inc, dec */
		return ((op[1] >> 3) & 7) < 2;
	return x86_modrm_tame(op[0]);
}

/* Of operations on one byte of opcode with an operand in memory. */
static enum last_access x86_last_modrm(uint8_t op, unsigned int reg)
{
	if (op < 0x40) { /* add, or, adc, sbb, and, sub, xor store; cmp does not */
		bool stores = (op & 7) < 2 && op < 0x38;

		return (op & 7) > 3 ? LAST_UNKNOWN : stores ? LAST_STORE : LAST_LOAD;
	}
	switch (op) {
	case 0x63: /* movsxd, imul, test, mov */
	case 0x69:
	case 0x6b:
	case 0x84:
	case 0x85:
	case 0x8a:
	case 0x8b:
		return LAST_LOAD;
	case 0x80:
	case 0x81:
	case 0x83: /* as above, with an immediate */
		return reg == 7 ? LAST_LOAD : LAST_STORE;
	case 0x88:
	case 0x89:
		return LAST_STORE;
	case 0xc6:
	case 0xc7: /* mov immediate */
		return reg ? LAST_UNKNOWN : LAST_STORE;
	case 0xf6:
	case 0xf7: /* test; not, neg; mul; div can fail */
		return reg < 2 || reg == 4 || reg == 5 ? LAST_LOAD
		       : reg < 4		       ? LAST_STORE
						       : LAST_UNKNOWN;
	case 0xfe:
	case 0xff: /* inc, dec; jmp */
		return reg < 2 ? LAST_STORE : reg == 4 ? LAST_LOAD : LAST_UNKNOWN;
	}
	return LAST_UNKNOWN;
}

static enum last_access x86_last_modrm_0f(uint8_t op, unsigned int reg)
{
	if ((op & 0xf0) == 0x90 || op == 0xc3) /* setcc, movnti */
		return LAST_STORE;
	if (op == 0xba)
		return reg == 4 ? LAST_LOAD : LAST_UNKNOWN;
	/* cmov (loads in any case), bt, imul, movzx, movsx */
	return (op & 0xf0) == 0x40 || op == 0xa3 || op == 0xaf || op == 0xb6 || op == 0xb7 ||
			       op == 0xbe || op == 0xbf
		       ? LAST_LOAD
		       : LAST_UNKNOWN;
}

/* Which access is the last thing that the instruction does, in generated code that cannot leave behind it. */
static enum last_access x86_last(const uint8_t *op, size_t left)
{
	if ((op[0] >= 0x58 && op[0] <= 0x5f) || (op[0] & 0xfe) == 0xc2) /* pop, ret */
		return LAST_LOAD;
	if ((op[0] >= 0x50 && op[0] <= 0x57) || op[0] == 0x68 || op[0] == 0x6a || op[0] == 0x9c ||
	    op[0] == 0xe8 || (op[0] == 0xff && left > 1 && (op[1] & 0xf8) == 0xd0))
		return LAST_STORE; /* push, pushf, call */
	if (op[0] == 0x0f)
		return left > 2 && op[2] >> 6 != 3 ? x86_last_modrm_0f(op[1], (op[2] >> 3) & 7)
						   : LAST_UNKNOWN;
	return left > 1 && op[1] >> 6 != 3 ? x86_last_modrm(op[0], (op[1] >> 3) & 7) : LAST_UNKNOWN;
}

/* Which behind 0x0f make no access: system calls and the returns from them, control registers, MSRs, clocks, cpuid. */
static bool x86_bare_0f(uint8_t op)
{
	return op == 0x05 || op == 0x07 || op == 0x34 || op == 0x35 || (op >= 0x20 && op <= 0x23) ||
	       (op >= 0x30 && op <= 0x33) || op == 0xa2;
}

/* What ends a block and makes no access: jmp to a known address, ports, hlt, cli, sti, the above. */
static bool x86_bare(const uint8_t *op, size_t left)
{
	switch (op[0]) {
	case 0xff:
		return left > 1 && ((op[1] >> 3) & 7) == 4 && op[1] >> 6 == 3;
	case 0x0f:
		return left > 1 && x86_bare_0f(op[1]);
	case 0xf4:
	case 0xfa:
	case 0xfb:
		return true;
	}
	return op[0] == 0xe9 || op[0] == 0xeb || (op[0] & 0xf4) == 0xe4;
}

/*
 * mov %rsp, disp32(%rdi) and mov disp32(%rsi), %rsp: __switch_to_asm
 * (arch/x86/entry/entry_64.S, v4.9 on) keeps the stack of its first argument and
 * takes that of its second, and nothing else in a kernel does.
 */
static bool x86_saves(const uint8_t *bytes, size_t size)
{
	return size == 7 && bytes[0] == 0x48 && bytes[1] == 0x89 && bytes[2] == 0xa7;
}

static bool x86_switches(const uint8_t *bytes, size_t size)
{
	return size == 7 && bytes[0] == 0x48 && bytes[1] == 0x8b && bytes[2] == 0xa6;
}

/* syscall, and the 32-bit ways in: sysenter, int $0x80. */
static bool x86_enters(const uint8_t *op, size_t left)
{
	return left == 2 && ((op[0] == 0x0f && (op[1] == 0x05 || op[1] == 0x34)) ||
			     (op[0] == 0xcd && op[1] == 0x80));
}

struct decoded decode_x86(const uint8_t *bytes, size_t size, uint64_t pc)
{
	static const uint8_t nop[] = {0x0f, 0x1f, 0x84, 0x00}, mwait[] = {0x0f, 0x01, 0xc9};
	struct decoded d = {.kind = KIND_PLAIN};
	struct prefixes p = x86_prefixes(bytes, size);
	const uint8_t *op = bytes + p.size;
	size_t left = size - p.size;

	if (size == 8 && !memcmp(bytes, nop, sizeof(nop)) &&
	    (bytes[6] | bytes[7] << 8) == MARK_MAGIC) {
		d.mark = valid_mark((uint16_t)(bytes[4] | bytes[5] << 8));
		d.kind = d.mark ? KIND_MARK : KIND_PLAIN;
		return d;
	}
	if (!left)
		return d;
	d.locked = p.lock || ((op[0] & 0xfe) == 0x86 && left > 1 && op[1] >> 6 != 3);
	d.helper = x86_helper(op, left);
	d.pair = p.wide && left > 2 && op[0] == 0x0f && op[1] == 0xc7 && ((op[2] >> 3) & 7) == 1;
	d.tame = !p.lock && x86_tame(op, left);
	d.last = p.lock ? LAST_UNKNOWN : x86_last(op, left);
	d.bare = x86_bare(op, left);
	d.switches = x86_switches(bytes, size);
	d.halts = op[0] == 0xf4 || (size == 3 && !memcmp(bytes, mwait, sizeof(mwait)));
	d.saves = x86_saves(bytes, size);
	d.enters = x86_enters(op, left);
	d.calls = op[0] == 0xe8 || (op[0] == 0xff && left > 1 && (op[1] & 0x30) == 0x10);
	d.returns = (op[0] & 0xf6) == 0xc2;
	d.leaves = op[0] == 0xcf || (left == 2 && op[0] == 0x0f && op[1] == 0x07);
	if (p.rep && x86_string(op[0])) {
		x86_rep(&d, &p, op[0]);
	} else if ((op[0] & 0xf0) == 0x70 || (op[0] & 0xfc) == 0xe0) {
		d.kind = KIND_COND;
		d.target = pc + size + relative(op + 1, left - 1);
	} else if (op[0] == 0x0f && left > 1 && (op[1] & 0xf0) == 0x80) {
		d.kind = KIND_COND;
		d.target = pc + size + relative(op + 2, left - 2);
	} else if (op[0] == 0xcf) {
		d.kind = KIND_IRET;
	} else if (op[0] == 0xe9 || op[0] == 0xeb) {
		d.target = pc + size + relative(op + 1, left - 1);
	}
	return d;
}

static uint64_t arm64_offset(uint32_t word, unsigned int shift, unsigned int bits)
{
	int64_t value = (int64_t)((uint64_t)(word >> shift) << (64 - bits)) >> (64 - bits);

	return (uint64_t)value * 4;
}

/* STXR, STXP. QEMU compares and swaps, so it loads where the guest does not. */
static bool arm64_store_exclusive(uint32_t w)
{
	bool pair = (w & 0x80200000) == 0x80200000, single = !(w & 0x00200000);

	return (w & 0x3fc00000) == 0x08000000 && (pair || single);
}

/* Compare-and-swap, LSE atomics and store-exclusives; a load-exclusive is half an operation and not counted. */
static bool arm64_locked(uint32_t w)
{
	if ((w & 0x3f000000) == 0x08000000) {
		bool o2 = w >> 23 & 1, o1 = w >> 21 & 1;

		if (o1 && (o2 || !(w >> 31)))
			return true; /* CAS, CASP */
		return arm64_store_exclusive(w);
	}
	if ((w & 0x3f200c00) == 0x38200000)
		return !(w >> 15 & 1) || !(w >> 12 & 7); /* LDADD and kin, SWP; not LDAPR */
	return false;
}

/* As x86_tame(): arithmetic on immediates and registers, but not what authenticates pointers. */
static bool arm64_tame(uint32_t w)
{
	bool immediate = (w & 0x1c000000) == 0x10000000;
	bool registers = (w & 0x0e000000) == 0x0a000000;
	bool one_source = (w & 0x5fe00000) == 0x5ac00000;

	return immediate || (registers && !one_source);
}

struct decoded decode_arm64(const uint8_t *bytes, size_t size, uint64_t pc)
{
	struct decoded d = {.kind = KIND_PLAIN};
	uint32_t w;

	if (size != sizeof(w))
		return d;
	memcpy(&w, bytes, sizeof(w));
	d.locked = arm64_locked(w);
	d.no_loads = arm64_store_exclusive(w);
	d.tame = arm64_tame(w);
	/* stp and ldp x29, x9, [x8], #16: only cpu_switch_to (arch/arm64/kernel/entry.S, v3.7 on). */
	d.saves = w == 0xa881251d;
	d.switches = w == 0xa8c1251d;
	d.calls = (w & 0xfc000000) == 0x94000000 || (w & 0xfefff000) == 0xd63f0000; /* bl, blr */
	d.returns = (w & 0xfffff000) == 0xd65f0000;
	d.halts = w == 0xd503207f;	      /* wfi */
	if ((w & 0xffe0001f) == 0xd280001f) { /* movz xzr, #imm16 */
		d.mark = valid_mark((uint16_t)(w >> 5));
		d.kind = d.mark ? KIND_MARK : KIND_PLAIN;
		d.tame = !d.mark;
	} else if ((w & 0xff000000) == 0x54000000 ||
		   (w & 0x7e000000) == 0x34000000) { /* b.cond, cbz, cbnz */
		d.kind = KIND_COND;
		d.target = pc + arm64_offset(w, 5, 19);
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		d.kind = KIND_COND;
		d.target = pc + arm64_offset(w, 5, 14);
	} else if ((w & 0xfffff3ff) == 0xd69f03e0) { /* eret, eretaa, eretab */
		d.kind = KIND_IRET;
	}
	return d;
}
