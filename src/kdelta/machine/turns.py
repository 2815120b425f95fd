# SPDX-License-Identifier: GPL-2.0-or-later
"""Short turns for a guest of several CPUs that QEMU runs one after another (``-icount``).

QEMU ends a turn at the next timer of virtual time, divided by the number of CPUs (8.1 on: icount_percpu_budget in
accel/tcg/tcg-accel-ops-icount.c). No option sets it, but a timer of the machine does: timer 2 of the HPET, periodic,
its interrupt disabled, which Linux leaves alone. It is set from outside through QEMU's qtest socket
(docs/devel/testing/qtest.rst) while the guest is stopped, so the guest neither helps nor knows.
"""

from __future__ import annotations

import time
from pathlib import Path

from kdelta.errors import HostError
from kdelta.machine import links, orders

_HPET = 0xFED00000  # registers: IA-PC HPET Specification 1.0a, 2.3
_CAPABILITIES, _CONFIG, _COUNTER, _TIMER_2 = _HPET, _HPET + 0x10, _HPET + 0xF0, _HPET + 0x140
_ENABLED = 1
# Periodic, the comparator is set next; interrupt disabled. 32 bits wide: of a comparator that the guest has never set
# all bits are ones, and with its upper half left so it would have been reached long ago.
_PERIODIC_SET = 0x148
_TICK_NS = 10  # hw/timer/hpet.c: HPET_CLK_PERIOD
_LINK_LIMIT_S = 10.0
# When turns become short, in virtual ms after a guest goes on from its snapshot. Until then it warms up: short turns
# cost the host as much for CPUs that idle or warm up as for those that are watched. A guest that the plugin stopped
# counts from the same instant as the timer does, one that a watchdog paused from up to 50 ms later (plugin/stop.c,
# guest/init_snapshot.c). It counts on its own clock, which the kernel has calibrated, so they become short earlier than
# it thinks: by what a clock wrong by 1.5 % comes to until then.
AFTER_MS = 1000
EARLIER_MS = 15


_ASKED = "qemu_clock_deadline_ns_all"  # by plugin/turns.c


def unchecked(qemu: Path) -> bool:
    """Whether this QEMU is known to export nothing by which the plugin could see that turns are short."""
    return orders.exported(qemu, (_ASKED,)) == frozenset()


class Link:
    """QEMU's qtest protocol: a command and its answer, a line each."""

    def __init__(self, path: Path) -> None:
        deadline = time.monotonic() + _LINK_LIMIT_S
        while True:
            try:
                self._socket = links.connected(path)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise HostError(f"QEMU's qtest socket did not answer: {error}") from None
                time.sleep(0.01)
        self._socket.settimeout(_LINK_LIMIT_S)
        self._lines = self._socket.makefile("rw", encoding="ascii")

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, command: str) -> int:
        """The value that QEMU answers, 0 where it answers none."""
        try:
            self._lines.write(f"{command}\n")
            self._lines.flush()
            words = self._lines.readline().split()
        except OSError as error:
            raise HostError(f"QEMU's qtest socket went silent: {error}") from None
        if not words or words[0] != "OK":
            raise HostError(f"QEMU refused {command!r}: {' '.join(words) or 'no answer'}")
        return int(words[1], 16) if len(words) > 1 else 0


def period_ticks(turn_ns: int, cpus: int) -> int:
    """The timer's period for turns of ``turn_ns`` (virtual; one instruction each) on each of ``cpus``, in its ticks."""
    return max(1, turn_ns * cpus // _TICK_NS)


def period_ns(turn_ns: int, cpus: int) -> int:
    """The same in ns."""
    return period_ticks(turn_ns, cpus) * _TICK_NS


def shorten(path: Path, turn_ns: int, cpus: int) -> None:
    """Set the turns of a stopped guest whose qtest socket is ``path``, from shortly before ``AFTER_MS`` on.

    Raises:
        HostError: QEMU does not answer, or this machine has no such HPET.
    """
    link = Link(path)
    try:
        capabilities = link.ask(f"readq {_CAPABILITIES:#x}")
        if capabilities >> 32 != _TICK_NS * 1_000_000 or (capabilities >> 8 & 31) < 2:
            raise HostError(f"QEMU's HPET is another than the one known here (capabilities {capabilities:#x})")
        config = link.ask(f"readl {_CONFIG:#x}")
        if not config & _ENABLED:
            link.ask(f"writel {_CONFIG:#x} {config | _ENABLED:#x}")
        ticks = period_ticks(turn_ns, cpus)
        wait = (AFTER_MS - EARLIER_MS) * 1_000_000 // _TICK_NS
        first = link.ask(f"readl {_COUNTER:#x}") + wait + ticks & 0xFFFFFFFF
        link.ask(f"writel {_TIMER_2:#x} {_PERIODIC_SET:#x}")
        link.ask(f"writel {_TIMER_2 + 8:#x} {first:#x}")
        link.ask(f"writel {_TIMER_2 + 8:#x} {ticks:#x}")
    finally:
        link.close()
