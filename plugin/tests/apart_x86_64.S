/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two CPUs that run code of their own for long before they share some: as when one
 * of them waits in user space while the other is woken.
 */
#define APART
#include "marks.h"
#include "cpus_x86_64.S"

#define ROUNDS 100
#define ALONE 20000

	.bss
	.balign 64
	.globl shared
shared:	.skip 64
alone:	.skip 8
said:	.skip 8
said_end:

	.text
	.macro be_alone
	movl $ALONE, %ebx
1:	decl %ebx
	jnz 1b
	lock incq alone
2:	pause
	cmpq $CPUS, alone
	jne 2b
	.endm

first_alone:
	be_alone
	jmp script
others_alone:
	be_alone

script:
	/* 1: both in turn add to one cell, locked: each addition but the first takes the line. */
	open_interval 1
	movl $ROUNDS, %ebx
3:	await_turn
	.globl locked_add
locked_add:
	lock incq shared(%r14)
	xorq $1, turn
	decl %ebx
	jnz 3b
	close_interval
	jmp end_of_script
