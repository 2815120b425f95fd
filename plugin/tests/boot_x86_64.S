/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From PVH's 32-bit entry to 64-bit mode with page tables, an interrupt table
 * (page faults on a stack of their own, the timer on vector 32) and the old
 * interrupt controllers. Falls through into what follows the #include.
 */
#define HOLES 0x8000000		/* virtual, 2 MiB of 4 KiB pages */
#define HOLE(n) (HOLES + (n) * 4096)
#define BACKING 0x7c00000	/* physical, where the pages of HOLES lie once present */

	.data
	.balign 16
gdt:	.quad 0
	.quad 0x00209a0000000000
	.quad 0x0000920000000000
	.quad 0x0000890000000067, 0
	.quad 0x0000f20000000000	/* user space's, in sysret's order */
	.quad 0x0020fa0000000000
gdt_pointer:
	.word . - gdt - 1
	.quad gdt
idt_pointer:
	.word 16 * 64 - 1
	.quad idt
	.balign 4096
/* What the page table of HOLES will hold. */
pt_template:
	.set page, 0
	.rept 512
	.quad BACKING + page * 4096
	.set page, page + 1
	.endr

	.bss
	.balign 4096
pml4:	.skip 4096
pdpt:	.skip 4096
pd:	.skip 4096
pd_high: .skip 4096
pt:	.skip 4096
idt:	.skip 16 * 64
tss:	.skip 104
	.balign 64
cell:	.skip 64
nested:	.skip 8
	.skip 4096
stack_top:
	.skip 4096
fault_stack_top:

	.section .note.pvh, "a", @note
	.balign 4
	.long 4, 4, 18		/* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz "Xen"
	.long start32

	.text
	.code32
	.globl start32
start32:
	cli
	cld
	movl $stack_top, %esp
	/* Level 4 -> 3 -> 2: 512 pages of 2 MiB; one of them through level 1. */
	movl $(pdpt + 7), pml4
	movl $(pd + 7), pdpt
	movl $(pdpt + 3), pml4 + 511 * 8	/* the same again at -2 GiB */
	movl $(pd + 3), pdpt + 510 * 8
	xorl %ecx, %ecx
1:	movl %ecx, %eax
	shll $21, %eax
	orl $0x87, %eax
	movl %eax, pd(, %ecx, 8)
	incl %ecx
	cmpl $512, %ecx
	jne 1b
	movl $(pt + 3), pd + (HOLES >> 21) * 8
	movl $pml4, %eax
	movl %eax, %cr3
	movl %cr4, %eax
	orl $0x20, %eax		/* PAE */
	movl %eax, %cr4
	movl $0xc0000080, %ecx
	rdmsr
	orl $0x100, %eax	/* long mode */
	wrmsr
	movl %cr0, %eax
	orl $0x80000001, %eax
	movl %eax, %cr0
	lgdt gdt_pointer
	ljmp $8, $start64

	.code64
/* Vector edi at esi, on interrupt stack edx. */
set_gate:
	shll $4, %edi
	movw %si, idt(%rdi)
	movw $8, idt + 2(%rdi)
	movb %dl, idt + 4(%rdi)
	movb $0x8e, idt + 5(%rdi)
	shrl $16, %esi
	movw %si, idt + 6(%rdi)
	ret

start64:
	movl $16, %eax
	movl %eax, %ds
	movl %eax, %es
	movl %eax, %ss
	movl $tss, %eax		/* the descriptor's base */
	movw %ax, gdt + 24 + 2
	shrl $16, %eax
	movb %al, gdt + 24 + 4
	movb %ah, gdt + 24 + 7
	movq $fault_stack_top, tss + 36
	movl $24, %eax
	ltr %ax
	movl $14, %edi
	movl $page_fault, %esi
	movl $1, %edx
	call set_gate
	movl $32, %edi
	movl $timer, %esi
	xorl %edx, %edx
	call set_gate
	lidt idt_pointer
	/* Interrupt controllers: vectors from 32 on, the timer alone. */
	movb $0x11, %al
	outb %al, $0x20
	outb %al, $0xa0
	movb $32, %al
	outb %al, $0x21
	movb $40, %al
	outb %al, $0xa1
	movb $4, %al
	outb %al, $0x21
	movb $2, %al
	outb %al, $0xa1
	movb $1, %al
	outb %al, $0x21
	outb %al, $0xa1
	movb $0xfe, %al
	outb %al, $0x21
	movb $0xff, %al
	outb %al, $0xa1
