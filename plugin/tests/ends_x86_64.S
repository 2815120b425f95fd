/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intervals 16, 22 and 23: ticks where blocks end by instructions of which QEMU makes helpers. */
	.macro TICKED_ENDS
	/* 16: ticks where returns, calls and indirect jumps end a block, which QEMU leaves by way of a helper. */
	movl $returns, %esi
	movl $hopped, %edi
	movl $page_end, %ebx
	movq $cell, %rdx
	BEGIN(16)
	movl $300000, %ecx
ticked_calls:
	call returns
	.globl ticked_call
ticked_call:
	call *%rsi
	.globl ticked_jump
ticked_jump:
	jmp *%rdi
hopped:
	call *%rbx
	decl %ecx
	jnz ticked_calls
	END

	/* 22: the same of instructions without accesses, and of a jump by way of memory. */
	movq $hopped_on, cell
	BEGIN(22)
	movl $300000, %ecx
ticked_clock:
	rdtsc
	.globl ticked_pause
ticked_pause:
	pause
	.globl ticked_hop
ticked_hop:
	jmp *cell
hopped_on:
	decl %ecx
	jnz ticked_clock
	END

	/* 23: to user space and back; the interrupts that waited come behind sysret. */
	movl $0xc0000080, %ecx
	rdmsr
	orl $1, %eax		/* syscall, sysret */
	wrmsr
	movl $0xc0000081, %ecx
	xorl %eax, %eax
	movl $0x00230008, %edx
	wrmsr
	movl $0xc0000082, %ecx
	movl $entered, %eax
	xorl %edx, %edx
	wrmsr
	movl $0xc0000084, %ecx
	movl $0x200, %eax	/* no interrupts in the kernel */
	wrmsr
	movq $fault_stack_top, tss + 4
	movl $0x202, %r11d
	BEGIN(23)
	movl $300000, %ebx
1:	call ends_late
	movl $in_user, %ecx
	.globl ticked_sysret
ticked_sysret:
	sysretq
in_user:
	pushq $back_again
	.rept 10
	incl %eax
	.endr
	.globl ticked_return
ticked_return:
	ret
back_again:
	syscall
entered:
	decl %ebx
	jnz 1b
	END
	.endm

	.text
ends_late:
	.rept 10
	incl %eax
	.endr
	.globl late_return
late_return:
	ret
