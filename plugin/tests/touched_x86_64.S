/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of data in the kernel's half, as boot_x86_64.S maps it: interval 18 of guest_x86_64.S. */
	/* Ten lines of the kernel's data three times over, two by one word, two by a REP; and one that is no kernel's. */
	.macro TOUCH_LINES
	movq $(0xffffffff80000000 + touch_lines), %rax
	BEGIN(18)
	call *%rax
	END
	.endm

	.bss
	.balign 64
touched: .skip 16 * 64

	.text
touch_lines:
	movl $3, %ecx
1:	movq $(0xffffffff80000000 + touched), %rdx
	movl $10, %ebx
	.globl touch_inc, touch_across, touch_rep
touch_inc:
	incq (%rdx)
	addq $64, %rdx
	decl %ebx
	jnz touch_inc
	decl %ecx
	jnz 1b
touch_across:
	movq 60(%rdx), %rax
	movq $(0xffffffff80000000 + touched + 13 * 64), %rdi
	movl $128, %ecx
touch_rep:
	rep stosb
	movq cell, %rax
	ret
