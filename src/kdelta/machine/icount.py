# SPDX-License-Identifier: GPL-2.0-or-later
"""How long an emulated instruction takes: longer while a guest boots, and the state of one that goes on at 1 ns. Pure.

A boot waits for virtual time in loops that pause: the local APIC's timer alone is calibrated over 100 ms
(calibrate_APIC_clock, arch/x86/kernel/apic/apic.c), and each turn of such a loop leaves QEMU's CPU loop. At 1 ns an
instruction that was half of the CPU time of a boot. QEMU's virtual clock is bias + (instructions << shift)
(qemu_icount_bias and qemu_icount, system/cpu-timers.c, "timer/icount" in the state), so the same instant at another
shift is another bias.

Before it stand the host's clocks since QEMU's start ("timer": cpu_ticks_offset, a word without use, cpu_clock_offset),
which no guest sees with -icount sleep=off. Without them a snapshot that is made anew is the same to the byte.
"""

from __future__ import annotations

import struct

SHIFT_BOOT = 3  # 8 ns; at more, the ticks of the boot cost what is saved
_NAME = b"timer/icount"
_HEAD = b"\x05" + bytes([len(_NAME)]) + _NAME + struct.pack(">I", 1)  # QEMU_VM_SUBSECTION, its name and version
_FIELDS = struct.Struct(">qq")
_HOST_BYTES = 24  # before the subsection


def at_one_ns(state: bytes, shift: int) -> bytes | None:
    """The devices' ``state`` of a guest whose instructions took ``1 << shift`` ns, for a QEMU with shift=0.

    None where its clock is not in there once, as QEMU 7.2 to 10 write it: then only shift 0 leads to one.
    """
    head = state.find(_HEAD)
    at = head + len(_HEAD)
    if state.count(_HEAD) != 1 or head < _HOST_BYTES or len(state) < at + _FIELDS.size:
        return None if shift else state
    bias, instructions = _FIELDS.unpack_from(state, at)
    moved = _FIELDS.pack(bias + (instructions << shift) - instructions, instructions)
    return state[: head - _HOST_BYTES] + bytes(_HOST_BYTES) + state[head:at] + moved + state[at + _FIELDS.size :]
