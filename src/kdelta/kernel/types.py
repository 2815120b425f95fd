# SPDX-License-Identifier: GPL-2.0-or-later
"""The types of a kernel, from its image, and where its fields lie that lead from an address to its slab cache."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from kdelta.kernel import btf, cache, naming
from kdelta.model import Kernel


class Addresses(Protocol):
    """What is asked of a kernel's data (kernel/variables.py)."""

    def address(self, name: str, /) -> int | None: ...


class SlabLayout(Struct, frozen=True, kw_only=True):
    """Addresses of a kernel's lists, and offsets and sizes in bytes; as the plugin reads them (plugin/slabs.h)."""

    caches: int  # slab_caches
    vmemmap: int  # vmemmap_base, 0 where that is a constant
    direct: int  # page_offset_base, likewise
    page: int  # size of struct page
    head: int
    owner: int
    name: int  # of struct kmem_cache, as the next two
    size: int
    list: int

    def words(self) -> tuple[int, ...]:
        """In the order that the plugin reads them."""
        places = (self.caches, self.vmemmap, self.direct)
        return (*places, self.page, self.head, self.owner, self.name, self.size, self.list)


# (first release, owner, name, size, list) where a kernel does not describe its types: x86-64 with CONFIG_SLUB and
# CONFIG_SLUB_CPU_PARTIAL, as Debian's images of that release say. What does not fit is noticed (line_names.py).
_USUAL = (((7, 0), 8, 88, 24, 96), ((6, 18), 8, 104, 32, 112), ((6, 2), 8, 96, 24, 104), ((0, 0), 24, 96, 24, 104))
_PAGE_BYTES, _HEAD = 64, 8
_SERIES = re.compile(r"^(\d+)\.(\d+)")


def load(kernel: Kernel) -> btf.Types | None:
    """The types of ``kernel``: as its image describes them (CONFIG_DEBUG_INFO_BTF), else as its build did; or None."""
    try:
        found = _section(kernel)
        return btf.parse(found) if found is not None else None
    except btf.BtfError:
        return None


def described(kernel: Kernel) -> bool:
    """Whether there are types of ``kernel`` to load."""
    path = naming.image_path(kernel)
    if path is None:
        return False
    try:
        return _has_section(path, path.stat().st_mtime_ns) or _built(kernel) is not None
    except btf.BtfError:
        return False


@lru_cache(maxsize=128)  # asked of all kernels of an experiment, more than once; an image is 70 MB
def _has_section(path: Path, _: int) -> bool:
    return bool(btf.section_of(path.read_bytes()))


def _section(kernel: Kernel) -> bytes | None:
    path = naming.image_path(kernel)
    return (btf.section_of(path.read_bytes()) or _built(kernel)) if path is not None else None


def _built(kernel: Kernel) -> bytes | None:
    beside = Path(kernel.image_path).with_name(cache.TYPES)
    return beside.read_bytes() if beside.is_file() and beside.is_relative_to(cache.root()) else None


def _described(types: btf.Types) -> tuple[int, int, int, int, int, int] | None:
    """Size of struct page, and the offsets head, owner, name, size, list."""

    def offset(struct: str, *fields: str) -> int | None:
        ident = types.struct(struct)
        found = (types.offset(ident, field) for field in fields) if ident is not None else ()
        return next((one for one in found if one is not None), None)

    page = types.struct("page")
    owner = offset("slab", "slab_cache")
    found = (
        types.size(page) if page is not None else None,
        offset("page", "compound_head", "compound_info"),  # 7.1 renamed it
        owner if owner is not None else offset("page", "slab_cache"),  # up to 5.16
        offset("kmem_cache", "name"),
        offset("kmem_cache", "size"),
        offset("kmem_cache", "list"),
    )
    whole = [one for one in found if one is not None]
    return (whole[0], whole[1], whole[2], whole[3], whole[4], whole[5]) if len(whole) == len(found) else None


def _usual(release: str) -> tuple[int, int, int, int, int, int]:
    series = _SERIES.match(release)
    numbers = (int(series[1]), int(series[2])) if series else (0, 0)
    owner, name, size, at = next(rest for first, *rest in _USUAL if numbers >= first)
    return _PAGE_BYTES, _HEAD, owner, name, size, at


def slab_layout(data: Addresses | None, types: btf.Types | None, release: str) -> SlabLayout | None:
    """Where slab caches are found, None where the kernel's data has no names."""
    caches = data.address("slab_caches") if data is not None else None
    if data is None or caches is None:
        return None
    page, head, owner, name, size, at = (_described(types) if types is not None else None) or _usual(release)
    return SlabLayout(
        caches=caches,
        vmemmap=data.address("vmemmap_base") or 0,
        direct=data.address("page_offset_base") or 0,
        page=page,
        head=head,
        owner=owner,
        name=name,
        size=size,
        list=at,
    )
