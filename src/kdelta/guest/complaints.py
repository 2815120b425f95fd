# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel complained of on its console while it went on: a WARN, a sanitizer's report, a lock's. Pure.

Stalls and lockups that its watchdogs tell are left out: an emulated guest on a busy host has them with any kernel.
"""

from __future__ import annotations

import re

MOST = 5  # of one boot
_WIDTH = 160
_STAMP = re.compile(r"^(?:\[[^\]]{1,40}\]\s*)+")  # printk's time, and the CPU or task of CONFIG_PRINTK_CALLER
_NUMBERS = re.compile(r"\b(?:PID: \d+|CPU: \d+|CPU#\d+: \S+|0x[0-9a-f]+|[0-9a-f]{16})")
# The first line of a report: kernel/panic.c, lib/bug.c, lib/ubsan.c, mm/kasan, kernel/locking, mm/page_alloc.c,
# mm/slub.c, mm/page_poison.c.
_COMPLAINT = re.compile(
    r"WARNING: |BUG: (?!soft lockup|workqueue lockup)|kernel BUG at |Oops: |Internal error: Oops|UBSAN: |KASAN: "
    r"|BUG \S+ \(|pagealloc: (?:memory corruption|single bit error)|INFO: trying to register non-static key"
    r"|general protection fault|Unable to handle kernel |INFO: possible |INFO: suspicious |refcount_t: "
    r"|list_(?:add|del) corruption|bad page state|Busy inodes after unmount|unregister_netdevice: waiting"
)


def complaints(console: bytes) -> tuple[str, ...]:
    """The first lines of the reports in ``console``, at most ``MOST``; CPU, task and addresses apart, each once."""
    found: dict[str, str] = {}
    for line in console.decode("utf-8", "replace").splitlines():
        text = _STAMP.sub("", line).strip()
        if _COMPLAINT.match(text):
            found.setdefault(_NUMBERS.sub("#", text), text[:_WIDTH])
    return tuple(found.values())[:MOST]
