/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest of known counts: every interval's figures follow from reading it.
 * Entered through PVH in 32-bit mode by `qemu-system-x86_64 -kernel`; ends by
 * writing to isa-debug-exit (port 0xf4): 1 = all went as planned, so QEMU exits
 * with status 3. Expected figures: test_plugin.py.
 *
 * Memory: identity map, 2 MiB pages, 1 GiB. At HOLES the same is mapped by 4 KiB
 * pages, all absent at first; the page fault handler makes them present.
 */
#include "marks.h"

#define BIG (1 << 20)

#include "touched_x86_64.S"
#include "tasks_x86_64.S"
#include "ends_x86_64.S"
#include "boot_x86_64.S"
#include "faults_x86_64.S"

#ifdef WITH_QUIET
	call arm		/* translated once */
	QUIET
	call arm
#endif
#ifdef BARE
	call arm
	QUIET
	BEGIN(19)
	END
#endif
#ifdef BLIND
	BEGIN_FOR_OTHERS(18)	/* no task switch has been seen */
	END
#endif
	/* 1: 1000 times load, store, locked operation; 999 branches taken. */
	BEGIN(1)
	movl $1000, %ecx
	movq $cell, %rdx
loop_top:
	movq (%rdx), %rax
	movq %rax, 8(%rdx)
	lock incq 16(%rdx)
	decl %ecx
	.globl loop_branch
loop_branch:
	jnz loop_top
	END

	/* 2: REP of known length, of length zero, and ended by a difference. */
	BEGIN(2)
	movl $HOLES - 8192, %edi
	movl $HOLES - 16384, %esi
	movl $4096, %ecx
	.globl rep_movsb
rep_movsb:
	rep movsb
	movl $512, %ecx
	.globl rep_stosq
rep_stosq:
	rep stosq
	xorl %ecx, %ecx
	.globl rep_nothing
rep_nothing:
	rep stosb
	END
	movl $HOLES - 8192, %edi
	movl $HOLES - 16384, %esi
	movb $1, 57(%rsi)
	BEGIN(3)
	movl $100, %ecx
	.globl rep_cmpsb
rep_cmpsb:
	repe cmpsb
	movl $HOLES - 16384, %edi
	movl $100, %ecx
	movb $1, %al
	.globl rep_scasb
rep_scasb:
	repne scasb
	END

	/* 4: an interrupt inside a REP, whose handler executes the same REP instruction. */
	movl $0x1000000, %edi
	movl $0x2000000, %esi
	movl $BIG, %ecx
	movl $0, nested
	movb $0x30, %al		/* one shot after 200 / 1.193182 MHz = 168 us = 168000 instructions */
	outb %al, $0x43
	movb $200, %al
	outb %al, $0x40
	xorl %eax, %eax
	outb %al, $0x40
	sti
	BEGIN(4)
	call copy
	END
	cli
	cmpl $1, nested		/* the handler saw copy_rep as the interrupted address */
	jne failed

	/* 5: faults: each instruction is started again by the handler's return, and completes once. */
	BEGIN(5)
	movl $HOLE(0), %edi
	.globl fault_load
fault_load:
	movq (%rdi), %rax
	movl $HOLE(1), %edi
	.globl fault_store
fault_store:
	movq %rax, (%rdi)
	movl $HOLE(2), %edi
	.globl fault_push
fault_push:
	pushq 8(%rdi)
	popq %rax
	movq %rsp, %rbx
	movl $HOLE(4), %esp	/* the byte below is absent */
	.globl fault_call
fault_call:
	call returns
	movq %rbx, %rsp
	END

	FAULTS_MIDWAY

	/* 6: the same in REP: four absent pages to store to, and both sides of a copy. */
	BEGIN(6)
	movl $HOLE(5) + 8, %edi
	movl $4 * 512 - 1, %ecx
	.globl fault_stosq
fault_stosq:
	rep stosq
	movl $HOLE(10), %edi
	movl $HOLE(12), %esi
	movl $4096, %ecx
	.globl fault_movsb
fault_movsb:
	rep movsb
	END

	/* 7: at the end of a block: an indirect jump through an absent page, a return from an absent stack. */
	movq $back, BACKING + 20 * 4096 + 8
	movq $landed, BACKING + 22 * 4096 + 64
	BEGIN(7)
	movl $HOLE(20) + 16, %edi
	.globl fault_jmp
fault_jmp:
	jmp *-8(%rdi)
back:
	movq %rsp, %rbx
	movl $HOLE(22) + 64, %esp
	.globl fault_ret
fault_ret:
	ret
landed:
	movq %rbx, %rsp
	END

	/* 8: what lies between pause and resume does not count; an id of 32 bits. */
	BEGIN(0xdeadbeef)
	movl $10, %ecx
1:	incq cell
	PAUSE
	call copy_little
	movq cell, %rax
	RESUME
	decl %ecx
	jnz 1b
	END

	/* 9: ticks at any place of a loop: its branch is taken exactly 299999 times. */
	movb $0x34, %al
	outb %al, $0x43
	movb $30, %al
	outb %al, $0x40
	xorl %eax, %eax
	outb %al, $0x40
	sti
	BEGIN(9)
	movl $300000, %ecx
ticked_top:
	testb $1, %cl
	.globl ticked_even
ticked_even:
	jz 1f
	nop
1:	decl %ecx
	.globl ticked_branch
ticked_branch:
	jnz ticked_top
	END

	TICKED_ENDS
	cli

	/* 10: an access to a device restarts inside QEMU; the guest executes it once. */
	movl $0xfed00000, %edi	/* HPET, mapped below */
	call map_hpet
	BEGIN(10)
	movl $100, %ecx
	.globl device_top
device_top:
	movl (%rdi), %eax
	addl %eax, %edx
	decl %ecx
	jnz device_top
	END

	TOUCH_LINES
	/* 14: instructions across the end of a page, which QEMU translates by themselves. */
	movq $cell, %rdx
	BEGIN(14)
	movl $10, %r8d
	call cross_tame
	END

	/* 15: a locked operation on 16 bytes; one that compares unequal stores as well. */
	movq $cell, %rdi
	BEGIN(15)
	lock cmpxchg16b (%rdi)
	lock cmpxchg16b (%rdi)
	lock cmpxchg8b (%rdi)
	xchgq %rax, 16(%rdi)
	END

	/*
	 * 17: three tasks. What the main one does and what `worker` does outside
	 * RESUME..PAUSE does not count; `other` says nothing and counts, but where the
	 * worker leaves out all others. Counted: 10 of the worker, 3 of `other` and the
	 * 7 with which it switches away (2 loads, 2 stores), 5 and 6 of the worker.
	 */
	movl $task_worker, %edi
	movq $worker, %rax
	call make_task
	movl $task_other, %edi
	movq $other, %rax
	call make_task
	SWITCH(task_main, task_worker)	/* and back: a task is known by its first switch */
#ifdef WITH_QUIET
	call arm		/* as at its first time */
	QUIET			/* which task this is must be found out anew */
	call arm
#endif
	BEGIN_FOR_OTHERS(17)
	movl $100, %ecx
1:	incq cell
	loop 1b
	SWITCH(task_main, task_worker)
	movl $100, %ecx
1:	incq cell
	loop 1b
	END
	FORGET

	ASIDE_BLOCKS
	/* 11: empty; then an interval that is abandoned by a second BEGIN. */
	BEGIN(11)
	END
	BEGIN(12)
	nop
	BEGIN(13)
	nop
	nop
	END
	movb $1, %al
	jmp leave
arm:
	ARM
	ret
failed:
	movb $7, %al
leave:
	outb %al, $0xf4
1:	cli
	hlt
	jmp 1b

	.globl returns
returns:
	ret

copy:
	.globl copy_rep
copy_rep:
	rep movsb
	ret

copy_little:
	pushq %rcx
	movl $64, %ecx
	movl $0x1000000, %edi
	movl $0x2000000, %esi
	call copy
	popq %rcx
	ret

map_hpet:			/* 0xfed00000 is in the fourth GiB: a page directory of its own */
	movl $(pd_high + 3), pdpt + 24
	movl $0xfec00083, pd_high + ((0xfec00000 - 0xc0000000) >> 21) * 8
	ret

	/* 20 instructions where it interrupts copy_rep (one of them a REP of 16 bytes), else 7 with a branch taken. */
	.globl timer
timer:
	cmpq $copy_rep, (%rsp)
	jne 1f
	incl nested
	pushq %rcx
	pushq %rsi
	pushq %rdi
	movl $16, %ecx
	movl $0x3000000, %edi
	movl $0x3100000, %esi
	call copy
	popq %rdi
	popq %rsi
	popq %rcx
1:	pushq %rax
	movb $0x20, %al
	outb %al, $0x20
	popq %rax
	.globl timer_return
timer_return:
	iretq

	/* 10 instructions, 13 loads (9 by iretq: its frame, and two descriptors in halves), 4 stores. */
	.globl page_fault
page_fault:
	pushq %rax
	movq %cr2, %rax
	subq $HOLES, %rax
	shrq $12, %rax
	orl $3, pt_template(, %rax, 8)
	pushq pt_template(, %rax, 8)
	popq pt(, %rax, 8)
	popq %rax
	addq $8, %rsp
	iretq

	/* The last instruction of a page ends its block, whatever it is. */
	.balign 4096
	.skip 4096 - 5
page_end:
	incl %eax
	.globl page_end_load
page_end_load:
	movq (%rdx), %rax
	ret

	/* Ten times nine instructions with one load; 9 branches taken; a REP of 8 bytes; 95 in all. */
	.balign 4096
	.skip 4096 - 6
cross_tame:
	movl %eax, %eax
	movl %ebx, %ebx
	movl $1, %ebx		/* crosses */
	jmp cross_load
	.balign 4096
	.skip 4096 - 5
	.globl cross_load
cross_load:
	movq (%rdx), %rax
	movl $2, %ebx		/* crosses */
	jmp cross_branch
	.balign 4096
	.skip 4096 - 5
cross_branch:
	decl %r8d
	.globl crossing_branch
crossing_branch:
	jnz cross_tame		/* crosses */
	movl $0x3000000, %edi
	jmp cross_rep
	.balign 4096
	.skip 4096 - 6
cross_rep:
	movl $8, %ecx
	.globl crossing_rep
crossing_rep:
	rep stosb		/* crosses */
	ret
