/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest of known calls: each interval's tree follows from reading it. What lies
 * in the lower half calls functions in the kernel's half (HIGH), where the same
 * is mapped again, and is to the plugin a program that asks a kernel.
 */
#include "marks.h"
#include "tasks_x86_64.S"
#include "boot_x86_64.S"

#define ASK(function) movq $(HIGH + function), %rax; call *%rax
#define TICKED 120000

	movl $-1, idt + 16 * 14 + 8	/* the handlers are the kernel's */
	movl $-1, idt + 16 * 32 + 8
	orl $0x80000000, idt + 16 * 14 + 4
#ifdef STUB
	movl $32, %edi
	movl $stub, %esi
	xorl %edx, %edx
	call set_gate
#endif
	orl $0x80000000, idt + 16 * 32 + 4

	BEGIN(1)
	ASK(top)
	END

	movb $0x34, %al
	outb %al, $0x43
	movb $30, %al
	outb %al, $0x40
	xorl %eax, %eax
	outb %al, $0x40
	BEGIN(2)
	sti
	ASK(ticked)
	cli
	END

	BEGIN(3)
	ASK(faulting)
	END

	movl $task_worker, %edi
	movq $(HIGH + spin), %rax
	call make_task
	BEGIN(4)
	ASK(asks)
	END

	BEGIN(5)
	ASK(deep)
	END
	movb $1, %al
	outb %al, $0xf4
1:	cli
	hlt
	jmp 1b

#define FUNCTION(name) .globl name; name

FUNCTION(top):
	call leaf
	call leaf
	call tail
	movq $(HIGH + leaf), %rax
	call thunk
	call split
	movl $3, %ecx
	call recur
	call filler
	ret

FUNCTION(leaf):
	nop
	ret

FUNCTION(tail):
	nop
	jmp leaf

	/* Retpoline: the return leads where rax says. */
FUNCTION(thunk):
	call 2f
1:	pause
	jmp 1b
2:	movq %rax, (%rsp)
	ret

FUNCTION(split):
	nop
	jmp split_cold
split_end:
	ret

FUNCTION(split_cold):
	nop
	call leaf
	jmp split_end

FUNCTION(recur):
	decl %ecx
	jz 1f
	call recur
1:	jmp return_thunk

FUNCTION(return_thunk):
	ret

	/* As the kernel fills the return stack buffer: calls that never return. */
FUNCTION(filler):
	call 1f
	int3
1:	call 2f
	int3
2:	addq $16, %rsp
	ret

FUNCTION(ticked):
	movl $TICKED, %ecx
	movq $(HIGH + leaf), %rax
1:	call leaf
	call thunk
	call tail
	decl %ecx
	jnz 1b
	ret

	/* As the vectors of devices: entered anywhere, and it jumps. */
FUNCTION(stubs):
	jmp timer
stub:	jmp timer

FUNCTION(timer):
	pushq %rax
	call handle
	popq %rax
	iretq

FUNCTION(handle):
	movb $0x20, %al
	outb %al, $0x20
	ret

FUNCTION(faulting):
	movl $HOLE(0), %edi
	movq (%rdi), %rax
	movq %rsp, %rbx
	movl $HOLE(2), %esp	/* the byte below is absent: the call itself faults */
	call leaf
	movq %rbx, %rsp
	ret

FUNCTION(page_fault):
	pushq %rax
	movq %cr2, %rax
	subq $HOLES, %rax
	shrq $12, %rax
	orl $3, pt_template(, %rax, 8)
	pushq pt_template(, %rax, 8)
	popq pt(, %rax, 8)
	call leaf
	popq %rax
	addq $8, %rsp
	iretq

FUNCTION(asks):
	call give
	call leaf
	call give
	ret

FUNCTION(give):
	SWITCH(task_main, task_worker)
	ret

FUNCTION(spin):
	call spin_inner
	jmp spin

FUNCTION(spin_inner):
	nop
	nop
	call yields
	ret

FUNCTION(yields):
	SWITCH(task_worker, task_main)
	ret

FUNCTION(deep):
	movl $1000, %ecx
	call recur
	call leaf
	ret
FUNCTION(functions_end):
