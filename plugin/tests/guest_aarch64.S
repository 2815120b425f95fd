/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest of known counts for `qemu-system-aarch64 -M virt -cpu max`, as
 * guest_x86_64.S. Runs at EL1 without MMU; ends by PSCI SYSTEM_OFF.
 */
	.arch armv8.1-a
#include "marks.h"

	.text
	.globl _start
_start:
	adrp x0, vectors
	add x0, x0, :lo12:vectors
	msr vbar_el1, x0
	isb

	/* 1: 1000 times load, store, locked operation; 999 branches taken. */
	BEGIN(1)
	adr x2, cell
	mov w1, #1000
loop_top:
	ldr x0, [x2]
	str x0, [x2, #8]
	ldadd x0, x3, [x2]
	subs w1, w1, #1
	.globl loop_branch
loop_branch:
	b.ne loop_top
	END

	/* 2: exclusives: a load-exclusive and a store-exclusive are one locked operation; all kinds of branch. */
	BEGIN(2)
	mov w1, #100
2:	ldxr x0, [x2]
	add x0, x0, #1
	stxr w4, x0, [x2]
	cbnz w4, 2b		/* never taken: one CPU */
	tbz w1, #0, 3f		/* taken for 50 even values */
	nop
3:	sub w1, w1, #1
	cbnz w1, 2b		/* taken 99 times */
	mov x5, #7
	cas x5, x0, [x2]
	swp x0, x5, [x2]
	ldar x0, [x2]		/* ordered, not locked */
	END

	/* 3: aborts: a load and a store of an address where nothing is; the handler corrects it and restarts. */
	BEGIN(3)
	mov x6, #0x30000000
	lsl x6, x6, #8
	.globl fault_load
fault_load:
	ldr x0, [x6]
	mov x6, #0x30000000
	lsl x6, x6, #8
	.globl fault_store
fault_store:
	str x0, [x6]
	END

	/* 4: pause and resume, an id of 32 bits. */
	BEGIN(0xdeadbeef)
	mov w1, #10
4:	str x0, [x2]
	PAUSE
	ldr x0, [x2]
	bl returns
	RESUME
	subs w1, w1, #1
	b.ne 4b
	END

	movz x0, #0x0008	/* PSCI SYSTEM_OFF */
	movk x0, #0x8400, lsl #16
	hvc #0
1:	wfi
	b 1b

returns:
	ret

	/* Synchronous exception at EL1 with SP_EL1: 2 instructions. */
	.balign 2048
vectors:
	.skip 0x200
	adr x6, cell
	eret

	.data
	.balign 64
cell:	.skip 64
