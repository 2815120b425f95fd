# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a QEMU can be told in flight whom to become: what plugin/serve.c calls of it is not part of any interface.

A QEMU that was built with loadable modules exports all its functions (meson.build: emulators are linked with
export_dynamic), as those of the distributions are. Where one does not, each guest gets its jobs through fw_cfg and is
restored alone.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

# As in serve_open() of plugin/serve.c; the lock has another name since QEMU 9.0 (195801d700c0).
_ALWAYS = ("qemu_main_loop", "qemu_notify_event", "qemu_get_cpu", "cpu_memory_rw_debug")
_LOCKS = (("bql_lock_impl", "bql_unlock"), ("qemu_mutex_lock_iothread_impl", "qemu_mutex_unlock_iothread"))
LIMIT = 60 << 10  # bytes of a job list, and some for its folder's name: one packet


def are_taken(qemu: Path) -> bool:
    """Whether the program exports what is needed; not where it is no ELF file, or has no hash table of its names."""
    found = exported(qemu, (*_ALWAYS, *itertools.chain(*_LOCKS)))
    return found is not None and found.issuperset(_ALWAYS) and any(found.issuperset(pair) for pair in _LOCKS)


@cache
def exported(qemu: Path, names: tuple[str, ...]) -> frozenset[str] | None:
    """Which of ``names`` the program exports; None where it is no ELF file, or has no hash table of its names."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.hash import GNUHashSection

    try:
        with qemu.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".gnu.hash")
            if not isinstance(table, GNUHashSection):
                return None
            return frozenset(name for name in names if table.get_symbol(name))
    except (OSError, ELFError):
        return None
