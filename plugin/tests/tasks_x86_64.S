/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks that switch as __switch_to_asm does, in addresses of the kernel's half: interval 17 of guest_x86_64.S. */
#define HIGH 0xffffffff80000000	/* where boot_x86_64.S maps the first GiB again */
#define SAVED 0x400		/* where a task keeps its stack pointer */
#define SWITCH(from, to) movq $(HIGH + from), %rdi; movq $(HIGH + to), %rsi; movq $(HIGH + switch_to), %rax; call *%rax

	/* 21: of blocks that hold ASIDE no row is made; what they call counts: jmp, ret, incq. */
	.macro ASIDE_BLOCKS
	movq $cell, %rdx
	BEGIN(21)
	jmp 1f
1:	ASIDE
	incq (%rdx)
	call returns
	ASIDE
	incq (%rdx)
	jmp 1f
1:	incq (%rdx)
	END
	.endm

	.bss
	.balign 4096
	.macro task name
	.skip 1024		/* its stack */
\name:	.skip 2048
	.endm
	task task_main
	task task_worker
	task task_other

	.text
	/* A task that starts at rax: its stack, below its saved stack pointer, holds where to return to. */
make_task:
	leaq (%rdi), %rbx
	movq %rax, -8(%rbx)
	subq $8, %rbx
	movq %rbx, SAVED(%rdi)
	ret

	/* From the task edi to the task esi, as __switch_to_asm does it. */
switch_to:
	movq %rsp, SAVED(%rdi)
	movq SAVED(%rsi), %rsp
	ret

worker:
	SWITCH(task_worker, task_main)
	RESUME
	.rept 10
	incq cell
	.endr
	PAUSE_ALONE
	incq cell
	SWITCH(task_worker, task_other)	/* the switch itself is the worker's, and does not count */
	RESUME
	.rept 5
	incq cell
	.endr
	PAUSE
	SWITCH(task_worker, task_other)
	RESUME
	.rept 6
	incq cell
	.endr
	PAUSE_ALONE
	SWITCH(task_worker, task_main)

other:
	.rept 3
	incq cell
	.endr
	SWITCH(task_other, task_worker)
	.rept 7			/* left out */
	incq cell
	.endr
	SWITCH(task_other, task_worker)
