/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest of several CPUs and known transfers: each interval's figures follow
 * from reading it. What is shared lies in the kernel's half (HIGH); the CPUs
 * take turns by words in the lower half, which are no lines of the kernel.
 * CPUS: how many there are. Written to the debug console at its end: how often
 * the lock of interval 6 changed hands, 8 bytes.
 */
#include "marks.h"

#define HIGH 0xffffffff80000000
#define ROUNDS 100
#define APIC_PAGE 0xfee00000
#define ICR (APIC_PAGE + 0x300)
#define TRAMPOLINE 0x8000
#define MSR_GS_BASE 0xc0000101
#define MSR_KERNEL_GS_BASE 0xc0000102

/* What stands for struct pages and slab caches: the page of `shared` is the second of a slab. */
	.data
	.balign 8
	.globl direct_base, page_base, caches
direct_base: .quad HIGH
page_base: .quad pages
caches:	.quad cache_list, cache_list
cache_name: .asciz "kmalloc-64"
	.balign 8
	.globl cache
cache:	.quad cache_name
	.long 64, 0
cache_list: .quad caches, caches

	.bss
	.balign 4096
pages:	.skip 1024 * 64
	.balign 4096
areas:	.skip CPUS * 4096	/* of each CPU: its base, and below the next one its stack */
	.balign 64
	.globl shared, own, owner, lock_word
shared:	.skip 64
own:	.skip CPUS * 64
owner:	.skip 64
lock_word: .skip 64
turn:	.skip 64
arrived: .skip 8
epoch:	.skip 8
started: .skip 8
handovers: .skip 8
taken:	.skip 8

#include "boot_x86_64.S"

	movl $pd_high + 3, pdpt + 3 * 8
	movl $APIC_PAGE | 0x93, pd_high + ((APIC_PAGE >> 21) & 511) * 8
	movl $trampoline, %esi
	movl $TRAMPOLINE, %edi
	movl $trampoline_end - trampoline, %ecx
	rep movsb
	movl $ICR, %ebx
	movl $0xc4500, (%rbx)		/* INIT to all others */
	movl $100000, %ecx
1:	pause
	decl %ecx
	jnz 1b
	movl $0xc4600 | TRAMPOLINE >> 12, (%rbx)
	movl $shared, %eax
	shrl $12, %eax
	shll $6, %eax
	leaq pages(%rax), %rax
	leaq -64 + 1(%rax), %rcx	/* the first page of its slab, marked */
	movq %rcx, 8(%rax)
	movq $cache, -64 + 16(%rax)
	xorl %r15d, %r15d
	jmp on_every_cpu

	.code16
trampoline:
	cli
	xorw %ax, %ax
	movw %ax, %ds
	lgdtl TRAMPOLINE + trampoline_gdt - trampoline
	movl %cr4, %eax
	orl $0x20, %eax
	movl %eax, %cr4
	movl $pml4, %eax
	movl %eax, %cr3
	movl $0xc0000080, %ecx
	rdmsr
	orl $0x100, %eax
	wrmsr
	movl %cr0, %eax
	orl $0x80000001, %eax
	movl %eax, %cr0			/* from real into long mode at once */
	ljmpl $8, $ap64
trampoline_gdt:
	.word 3 * 8 - 1
	.long gdt
trampoline_end:

	.code64
ap64:
	movl $16, %eax
	movl %eax, %ds
	movl %eax, %es
	movl %eax, %ss
	movl $1, %r15d
	lock xaddq %r15, started
	incq %r15

/* r15: the CPU's number */
on_every_cpu:
	movq %r15, %rax
	shlq $12, %rax
	leaq areas + 4096(%rax), %rsp
	leaq areas(%rax), %rax
	orl $0x80000000, %eax
	movl $0xffffffff, %edx
	movl $MSR_GS_BASE, %ecx
	wrmsr
	movl $MSR_KERNEL_GS_BASE, %ecx
	wrmsr
	movq $HIGH, %r14
	jmp script

/* All CPUs meet. */
meet:
	movq epoch, %rax
	movl $1, %ecx
	lock xaddq %rcx, arrived
	cmpq $CPUS - 1, %rcx
	jne 1f
	movq $0, arrived
	incq epoch
	ret
1:	pause
	cmpq %rax, epoch
	je 1b
	ret

	.macro open_interval id
	call meet
	testl %r15d, %r15d
	jnz 1f
	movq $0, turn
	BEGIN(\id)
1:	call meet
	.endm

	.macro close_interval
	call meet
	testl %r15d, %r15d
	jnz 1f
	END
1:	call meet
	.endm

	/* Until the turn is that of the CPU r15; then it is given to `next`. */
	.macro await_turn
1:	cmpq %r15, turn
	je 1f
	pause
	jmp 1b
1:
	.endm

/* The slow path is another function, called where ebx is odd. */
	.globl take, take_end, call_slow_path, slow, slow_end
take:
	lock incq shared + 32(%r14)
	testl $1, %ebx
	jz 1f
call_slow_path:
	call slow
1:	ret
take_end:
slow:
	incq shared + 40(%r14)
	ret
slow_end:

script:
	/* 1: two CPUs in turn add to one cell, locked: each addition but the first takes the line. */
	open_interval 1
	cmpl $2, %r15d
	jae 2f
	movl $ROUNDS, %ebx
3:	await_turn
	.globl locked_add
locked_add:
	lock incq shared(%r14)
	xorq $1, turn
	decl %ebx
	jnz 3b
2:	close_interval

	/* 2: each waits to see what the other wrote, and answers: of a handover, one read and one write. */
	open_interval 2
	cmpl $1, %r15d
	ja 2f
	jb 4f
	movq owner(%r14), %rax		/* holds the line before the first write */
	movq $1, turn
4:	cmpq $1, turn
	jne 4b
	movl $ROUNDS, %ebx
3:	cmpq %r15, owner(%r14)
	je 5f
	pause
	jmp 3b
5:	movq %r15, %rax
	xorq $1, %rax
	.globl answer
answer:
	movq %rax, owner(%r14)
	decl %ebx
	jnz 3b
	testl %r15d, %r15d
	jnz 2f
6:	cmpq $0, owner(%r14)
	je 2f
	pause
	jmp 6b
2:	close_interval

	/* 3: two CPUs in turn store to two words of one line. */
	open_interval 3
	cmpl $2, %r15d
	jae 2f
	movl $ROUNDS, %ebx
3:	await_turn
	.globl false_share
false_share:
	movq %rbx, shared + 16(%r14, %r15, 8)
	xorq $1, turn
	decl %ebx
	jnz 3b
2:	close_interval

	/* 4: each on a line of its own. */
	open_interval 4
	movl $ROUNDS, %ebx
	movq %r15, %rsi
	shlq $6, %rsi
	.globl private_add
private_add:
	incq own(%r14, %rsi)
	decl %ebx
	jnz private_add
	close_interval

	/* 5: one writes, all others read. */
	open_interval 5
	movl $ROUNDS, %ebx
3:	testl %r15d, %r15d
	jnz 4f
	.globl publish
publish:
	movq %rbx, shared(%r14)
4:	call meet
	testl %r15d, %r15d
	jz 5f
	.globl consume
consume:
	movq shared(%r14), %rax
5:	call meet
	decl %ebx
	jnz 3b
	close_interval

	/* 6: a test-and-set lock; what it protects is read and written by each holder that was not the last one. */
	testl %r15d, %r15d
	jnz 2f
	movq $-1, owner
2:	open_interval 6
	movl $ROUNDS, %ebx
3:	movl $1, %eax
	.globl test_and_set
test_and_set:
	xchgq %rax, lock_word(%r14)
	testq %rax, %rax
	jz 4f
	pause
	jmp 3b
4:	incq taken
	.globl protected_read
protected_read:
	cmpq %r15, owner(%r14)
	je 5f
	incq handovers
	.globl protected_write
protected_write:
	movq %r15, owner(%r14)
5:	pause				/* the others find the lock taken */
	movq $0, lock_word(%r14)
	pause
	decl %ebx
	jnz 3b
	close_interval

	/* 7: two CPUs in turn take a lock from two places; from the second one by its slow path. */
	open_interval 7
	cmpl $2, %r15d
	jae 2f
	movl $ROUNDS, %ebx
3:	await_turn
	testl $1, %ebx
	jz 4f
	.globl call_slowly
call_slowly:
	call take
	jmp 5f
	.globl call_quickly
call_quickly:
4:	call take
5:	xorq $1, turn
	decl %ebx
	jnz 3b
2:	close_interval

	testl %r15d, %r15d
	jz 7f
6:	cli
	hlt
	jmp 6b
7:	cmpq $CPUS * ROUNDS, taken
	jne failed
	movl $handovers, %esi
	movl $8, %ecx
	movw $0xe9, %dx
	rep outsb
	movl $1, %eax
	jmp leave
failed:
	movl $2, %eax
leave:
	movw $0xf4, %dx
	outb %al, %dx
	hlt
page_fault:
	jmp failed
timer:
	iretq
