# SPDX-License-Identifier: GPL-2.0-or-later
"""What lies at an address of the kernel: a variable, a CPU's own, the field of a slab's object, or a struct page.

Pure. A slab cache names the type of its objects: ``dentry`` is a struct dentry, ``filp`` a struct file. What kmalloc
hands out has no type, so its name is the cache and the offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from kdelta.attribution.lines import LINE_BYTES, Cache, Moves

_STRUCT_PAGES_BYTES = 1 << 40  # Documentation/arch/x86/x86_64/mm.rst, 4 levels
# Caches of v6.1 to v7.3 whose name is neither their struct's nor that with "_cache" behind it.
_STRUCTS = {
    "files_cache": "files_struct",
    "fs_cache": "fs_struct",
    "signal_cache": "signal_struct",
    "sighand_cache": "sighand_struct",
    "cred_jar": "cred",
    "filp": "file",
    "bfilp": "backing_file",
    "vma": "vm_area_struct",
    "inode_cache": "inode",
    "sock_inode_cache": "socket_alloc",
    "bdev_cache": "bdev_inode",
    "mnt_cache": "mount",
    "skbuff_head_cache": "sk_buff",
    "radix_tree_node": "xa_node",
    "eventpoll_epi": "epitem",
    "eventpoll_pwq": "eppoll_entry",
    "uid_cache": "user_struct",
    "posix_timers_cache": "k_itimer",
    "UNIX": "unix_sock",
    "UNIX-STREAM": "unix_sock",
    "TCP": "tcp_sock",
    "UDP": "udp_sock",
    "RAW": "raw_sock",
}
# Kernels describe the types of per-CPU variables alone (pahole), so those of others stand here: v6.1 to v7.3.
_VARIABLES = {
    "init_task": "task_struct",
    "init_mm": "mm_struct",
    "init_net": "net",
    "init_pid_ns": "pid_namespace",
    "init_user_ns": "user_namespace",
    "init_css_set": "css_set",
}
# arch_task_struct_size: as large as the CPU's registers. Up to v6.15 task_struct ends with its member thread.fpu; from
# v6.16 on that lies behind what its type says of it (arch/x86/include/asm/processor.h, x86_task_fpu).
_BY_CPU_FEATURES = {"task_struct": "thread.fpu"}
_SLACK_BYTES = 64  # of alignment, behind an object
_COUNTER = "seqcount"  # struct seqcount, of which all others are made (include/linux/seqlock_types.h, v5.9 on)


class Types(Protocol):
    """What is asked of a kernel's types (kernel.btf.Types)."""

    def struct(self, name: str, /) -> int | None: ...
    def variable(self, name: str, /) -> int | None: ...
    def size(self, ident: int, /) -> int: ...
    def path(self, ident: int, offset: int, /) -> str: ...
    def begins(self, ident: int, offset: int, name: str, /) -> bool: ...


class Variables(Protocol):
    """What is asked of a kernel's data (kernel/variables.py)."""

    @property
    def per_cpu(self) -> tuple[int, int]: ...
    def name(self, address: int, bases: Sequence[int], /) -> tuple[str, int] | None: ...


def struct_of(cache: Cache, types: Types) -> tuple[str, int] | None:
    """The struct (its name and id) that the objects of a slab cache are, None where that is not certain."""
    name = cache.name
    known = _STRUCTS.get(name)
    stem = name.removesuffix("_cache")
    guesses = [known] if known else [name, stem, f"{stem}_info", f"{stem}_struct"]
    for guess in guesses:
        ident = types.struct(guess)
        if ident is None:
            continue
        size = types.size(ident)
        if guess in _BY_CPU_FEATURES or (size <= cache.size and (known or cache.size - size <= _SLACK_BYTES)):
            return guess, ident
    return None


def believed(caches: Mapping[int, Cache]) -> bool:
    """Whether caches were read where they are: those of kmalloc say their size twice."""
    return any(cache.name == f"kmalloc-{cache.size}" for cache in caches.values())


class Place(Struct, frozen=True):
    """``name`` of what lies at an address ("" where nothing is known); lines of one ``group`` are the same by it."""

    name: str
    group: str


class Places:
    """Names of the addresses of one interval."""

    def __init__(self, moves: Moves, variables: Variables | None, types: Types | None) -> None:
        self._moves, self._variables, self._types = moves, variables, types
        self._bases = [int(base) for base in moves.bases if base]
        self._caches = moves.caches if believed(moves.caches) else {}
        self._structs = {a: struct_of(cache, types) for a, cache in self._caches.items()} if types else {}

    def at(self, address: int) -> Place:
        """What lies at ``address``."""
        return self._variable(address) or self._object(address) or self._page(address) or Place("", "")

    def _variable(self, address: int) -> Place | None:
        """With the offset of its line within it; of a struct whose type is known the field: layouts differ."""
        found = self._variables.name(address, self._bases) if self._variables is not None else None
        if found is None or self._variables is None:
            return None
        name, offset = found
        low, high = self._variables.per_cpu
        per_cpu = any(low <= (address - base) & (2**64 - 1) < high for base in self._bases)
        line = offset // LINE_BYTES * LINE_BYTES
        told = f"{'per-CPU ' if per_cpu else ''}{name}{f'+{line:#x}' if line else ''}"
        ident = self._type_of(name, per_cpu)
        if self._types is None or ident is None or self._types.size(ident) <= LINE_BYTES:
            return Place(told, "")
        field = self._types.path(ident, offset)
        return Place(f"{'per-CPU ' if per_cpu else ''}{name}.{field}" if field else told, told)

    def _type_of(self, variable: str, per_cpu: bool) -> int | None:
        if self._types is None:
            return None
        return self._types.variable(variable) if per_cpu else self._types.struct(_VARIABLES.get(variable, ""))

    def is_counter(self, address: int) -> bool | None:
        """Whether a sequence counter lies at ``address``, None where the type of what is there is not known."""
        owner, inside = self._inside(address) or (0, 0)
        struct = self._structs.get(owner)
        return self._types.begins(struct[1], inside, _COUNTER) if struct and self._types else None

    def _inside(self, address: int) -> tuple[int, int] | None:
        """The slab cache of what was allocated, and the offset in its object."""
        line = address & -LINE_BYTES
        owner, offset = self._moves.slabs.get(line, (0, 0))
        cache = self._caches.get(owner)
        return (owner, (offset + address - line) % cache.size) if cache is not None and cache.size else None

    def _object(self, address: int) -> Place | None:
        found = self._inside(address)
        if found is None:
            return None
        owner, inside = found
        group = f"{self._caches[owner].name}+{inside // LINE_BYTES * LINE_BYTES:#x}"
        struct = self._structs.get(owner)
        field = self._types.path(struct[1], inside) if struct and self._types else ""
        if struct and self._types and inside >= self._types.size(struct[1]):
            field = _BY_CPU_FEATURES.get(struct[0], "")
        return Place(f"{struct[0]}.{field}" if struct and field else group, group)

    def _page(self, address: int) -> Place | None:
        """By that alone: it is one line, and nearly all of its fields are unions."""
        start = self._moves.vmemmap
        inside = start and 0 <= address - start < _STRUCT_PAGES_BYTES
        return Place("struct page", "struct page") if inside else None
