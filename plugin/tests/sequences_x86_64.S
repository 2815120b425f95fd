/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest of several CPUs that read under a sequence counter. Said at its end, 8
 * bytes each: how often the readers of interval 1 began with a test, found the
 * counter odd then, ended, and had to begin again.
 */
#include "marks.h"
#include "cpus_x86_64.S"

#define ROUNDS 100
#define TURN_TICKS (13 * CPUS)	/* of 10 ns: 130 instructions a turn */

	.bss
	.balign 64
	.globl counter, number
counter: .skip 64
number:	.skip 64
begun_with: .skip CPUS * 64
said:
begun:	.skip 8
odd:	.skip 8
ended:	.skip 8
in_vain: .skip 8
said_end:
readers_left: .skip 8

	.text
script:
	/*
	 * 1: one CPU writes under a sequence counter, all others read; in turns that
	 * end anywhere, and in the kernel's half, where code is the kernel's. A reader's
	 * round has each way to begin and to end; it keeps what it counts in registers:
	 * r8 begun, r9 odd, r10 ended, r11 in vain.
	 */
	movq $CPUS - 1, readers_left
	testl %r15d, %r15d
	jnz 2f
	movl $HPET, %ecx
	movl $1, 0x10(%rcx)
	movl 0xf0(%rcx), %eax
	addl $10 * TURN_TICKS, %eax
	movl $0x148, 0x140(%rcx)	/* periodic, 32 bits wide; where it starts comes next */
	movl %eax, 0x148(%rcx)
	movl $TURN_TICKS, 0x148(%rcx)
2:	leaq 3f(%r14), %rax
	jmp *%rax
3:	open_interval 1
	testl %r15d, %r15d
	jz write_counter
	xorl %r8d, %r8d
	xorl %r9d, %r9d
	xorl %r10d, %r10d
	xorl %r11d, %r11d
	movq %r15, %rsi
	shlq $6, %rsi
	movl $ROUNDS, %edi
	jmp read_counter

	/* What is read: as long as a turn is now and then. */
	.macro read_data
	movl %edi, %ecx
	andl $63, %ecx
1:	movq counter + 8(%r14), %rdx
	subl $1, %ecx
	jns 1b
	.endm

	.macro begin_waiting
	xorl %ebp, %ebp
	jmp 2f
1:	pause
	movl $1, %ebp
2:	movl counter(%r14), %ebx
	testb $1, %bl
	jne 1b
	addq %rbp, %r9
	incq %r8
	.endm

	/* Equal: the read is done; else from `again` on once more. */
	.macro end_read again
	leaq 1(%r10), %r10
	je 1f
	incq %r11
	jmp \again
1:
	.endm

read_counter:
	begin_waiting
	read_data
	movl counter(%r14), %eax
	cmpl %ebx, %eax
	end_read read_counter
read_1:	movl counter(%r14), %ebx	/* does not wait, but will fail */
	andl $~1, %ebx
	read_data
	cmpl counter(%r14), %ebx
	end_read read_1
read_2:	begin_waiting
	movl %ebx, begun_with(%r14, %rsi)
	read_data
	movl counter(%r14), %eax
	cmpl %eax, begun_with(%r14, %rsi)
	end_read read_2
read_3:	begin_waiting
	read_data
	movl counter(%r14), %r12d
	pushq %rdi
	movl %r12d, %edx
	nop
	movl %ebx, %eax
	popq %r12
	cmpl %edx, %eax
	setne %al
	cmpb $0, %al
	end_read read_3
read_4:	begin_waiting
	movl %ebx, begun_with(%r14, %rsi)
	read_data
	movl begun_with(%r14, %rsi), %edx
	movl counter(%r14), %eax
	cmpl %edx, %eax
	end_read read_4
read_5:	begin_waiting
	read_data
	jmp page_end
	.balign 4096
	.skip 4096 - (page_end_of - page_end)
page_end:
	movl counter(%r14), %eax
page_end_of:
	cmpl %ebx, %eax			/* on the next page */
	end_read read_5
	decl %edi
	jnz read_counter
	lock addq %r8, begun
	lock addq %r9, odd
	lock addq %r10, ended
	lock addq %r11, in_vain
	lock decq readers_left
	jmp all_read

write_counter:
	movl $50, %ebx
	addl $1, counter(%r14)
1:	incq counter + 8(%r14)
	decl %ebx
	jnz 1b
	movl counter(%r14), %eax
	incl %eax
	movl %eax, counter(%r14)
	movl $300, %ebx
1:	decl %ebx
	jnz 1b
	cmpq $0, readers_left
	jne write_counter
all_read:
	close_interval

	/*
	 * 2: what is none: a number that goes up and is compared, but never tested; and
	 * a counter that is compared with what it was while it was written.
	 */
	open_interval 2
	movl $ROUNDS, %ebx
3:	testl %r15d, %r15d
	jnz 4f
	incl number(%r14)
	addl $2, counter(%r14)
4:	movl number(%r14), %ecx
	call meet
	testl %r15d, %r15d
	jnz 4f
	incl number(%r14)
4:	call meet
	.globl compare_number, compare_odd
	movl number(%r14), %eax
compare_number:
	cmpl %ecx, %eax
	movl $1, %ecx
	movl counter(%r14), %eax
compare_odd:
	cmpl %eax, %ecx
	decl %ebx
	jnz 3b
	close_interval

	jmp end_of_script
