/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts all CPUs, each with a stack and a GS base of its own; they go on at
 * `script` with their number in r15 and HIGH in r14, and end at `end_of_script`,
 * where what lies from `said` to `said_end` is written to the debug console. The
 * CPUs take turns by words in the lower half, which are no lines of the kernel.
 * CPUS: how many there are. APART: the first goes to `first_alone` and the others
 * to `others_alone` instead, and has shared no code with them since it has a base.
 */
#define HIGH 0xffffffff80000000
#define APIC_PAGE 0xfee00000
#define ICR (APIC_PAGE + 0x300)
#define HPET 0xfed00000
#define HPET_PAGE (HPET & ~0x1fffff)
#define TRAMPOLINE 0x8000
#define MSR_GS_BASE 0xc0000101
#define MSR_KERNEL_GS_BASE 0xc0000102

	.bss
	.balign 4096
areas:	.skip CPUS * 4096	/* of each CPU: its base, and below the next one its stack */
turn:	.skip 64
arrived: .skip 8
epoch:	.skip 8
started: .skip 8

#include "boot_x86_64.S"

	movl $pd_high + 3, pdpt + 3 * 8
	movl $HPET_PAGE | 0x93, pd_high + ((HPET_PAGE >> 21) & 511) * 8
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

	.macro set_bases
	movl $MSR_GS_BASE, %ecx
	wrmsr
	movl $MSR_KERNEL_GS_BASE, %ecx
	wrmsr
	movq $HIGH, %r14
	.endm

/* r15: the CPU's number */
on_every_cpu:
	movq %r15, %rax
	shlq $12, %rax
	leaq areas + 4096(%rax), %rsp
	leaq areas(%rax), %rax
	orl $0x80000000, %eax
	movl $0xffffffff, %edx
#ifdef APART
	testl %r15d, %r15d
	jz 1f
	set_bases
	jmp others_alone
1:	set_bases
	jmp first_alone
#else
	set_bases
	jmp script
#endif

end_of_script:
	testl %r15d, %r15d
	jz 1f
2:	cli
	hlt
	jmp 2b
1:	movl $said, %esi
	movl $said_end - said, %ecx
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
