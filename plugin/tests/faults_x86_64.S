/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interval 20: faults in the midst of a block. Whether what follows the instruction has
 * started is told by its accesses, by no counter of its own.
 */
	.macro FAULTS_MIDWAY
	BEGIN(20)
	movl $HOLE(24), %edi
	.globl fault_cmp
fault_cmp:
	cmpq $1, (%rdi)
	movl $HOLE(25), %edi
	.globl fault_add
fault_add:
	addq $1, (%rdi)
	movl $HOLE(26), %edi
	.globl fault_movzx
fault_movzx:
	movzbl (%rdi), %eax
	movq %rsp, %rbx
	movl $HOLE(27), %esp
	.globl fault_pop
fault_pop:
	popq %rax
	movq %rbx, %rsp
	END
	.endm
