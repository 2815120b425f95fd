# SPDX-License-Identifier: GPL-2.0-or-later
"""The names by which interrupts and exceptions enter a kernel, and leave it: patterns of symbols. Pure.

arch/x86/include/asm/idtentry.h, v5.8 on; before, arch/x86/entry/entry_64.S alone; arch/arm64/kernel/entry.S.
"""

from __future__ import annotations

import re

# x86, v5.8 on; the name of an entry is in a group.
FAULT = re.compile(r"^asm_exc_(\w+)$")
IRQ = re.compile(r"^asm_(?:sysvec_(\w+)|(common|spurious)_interrupt)$")

_OLD_IRQ = (
    r"(?:apic_timer|reschedule|irq_work|call_function(?:_single)?|error|spurious|threshold|thermal|reboot)_interrupt"
)
# x86 before v5.8: there these alone say that code is entered from outside.
OLD = re.compile(
    r"^(?:(?:async_)?page_fault|divide_error|overflow|bounds|invalid_op|device_not_available|double_fault|debug|int3|nmi"
    r"|general_protection|stack_segment|segment_not_present|alignment_check|(?:simd_)?coprocessor_error"
    rf"|{_OLD_IRQ})$"
)
# What comes whatever a task does, on any of them, and the way back from it into the kernel.
ANY = re.compile(
    r"asm_(?:sysvec_\w+|(?:common|spurious)_interrupt|exc_nmi)|el[01][th]?_(?:64_|32_)?(?:irq|fiq)|ret_from_intr"
    rf"|common_interrupt|{_OLD_IRQ}"
    r"|error_return|common_interrupt_return|restore_regs_and_return_to_kernel|retint_kernel|ret_to_kernel"
    r"|native_irq_return_\w+|native_iret|early_xen_iret_patch"
)
