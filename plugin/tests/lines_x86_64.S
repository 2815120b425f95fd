/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest of several CPUs and known transfers: each interval's figures follow
 * from reading it. What is shared lies in the kernel's half (HIGH). Said at its
 * end: how often the lock of interval 6 changed hands, 8 bytes.
 */
#include "marks.h"
#include "cpus_x86_64.S"

#define ROUNDS 100

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
	.balign 64
	.globl shared, own, owner, lock_word
shared:	.skip 64
own:	.skip CPUS * 64
owner:	.skip 64
lock_word: .skip 64
said:
handovers: .skip 8
said_end:
taken:	.skip 8

	.text
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
	testl %r15d, %r15d
	jnz 2f
	movl $shared, %eax
	shrl $12, %eax
	shll $6, %eax
	leaq pages(%rax), %rax
	leaq -64 + 1(%rax), %rcx	/* the first page of its slab, marked */
	movq %rcx, 8(%rax)
	movq $cache, -64 + 16(%rax)
2:
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
	jnz end_of_script
	cmpq $CPUS * ROUNDS, taken
	jne failed
	jmp end_of_script
