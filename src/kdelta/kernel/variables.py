# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of a kernel's data: what lies at an address of its image, or in a CPU's per-CPU area.

They come from the image's own kallsyms (CONFIG_KALLSYMS_ALL, as in Debian's kernels), and are believed where the same
reading has the functions that the machine code has proven (see ``symbols``). What was allocated has no name here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.kernel import cache, kallsyms, memory, naming
from kdelta.kernel.memory import Span
from kdelta.model import Kernel

FORMAT = 2  # of what is cached
_TYPES = "dDbBrRaAvV"
_AGREE = 0.95  # of the proven functions: of several names at one address each source may keep another
_PAGE = 4096
_PER_CPU = ("__per_cpu_start", "__per_cpu_end")


class _Functions(Protocol):
    """What is used of a proven table of functions (``symbols.SymbolTable``)."""

    @property
    def addresses(self) -> NDArray[np.uint64]: ...
    @property
    def all_names(self) -> tuple[str, ...]: ...


class Variables(Struct, frozen=True, kw_only=True, dict=True):
    """Data symbols in address order, one for each address.

    ``addresses_le`` is little-endian u64, ``text`` one name a line; ``per_cpu`` are the half-open addresses, as linked,
    of what each CPU has a copy of; ``end`` is the end of the image.
    """

    addresses_le: bytes
    text: str
    per_cpu: Span
    end: int
    format: int = FORMAT

    @cached_property
    def _addresses(self) -> NDArray[np.uint64]:
        return np.frombuffer(self.addresses_le, "<u8").astype(np.uint64)

    @cached_property
    def _names(self) -> list[str]:
        return self.text.split("\n") if self.text else []

    def _symbol(self, address: int) -> tuple[str, int] | None:
        place = int(np.searchsorted(self._addresses, np.uint64(address), side="right")) - 1
        return (self._names[place], address - int(self._addresses[place])) if place >= 0 else None

    def name(self, address: int, bases: Sequence[int]) -> tuple[str, int] | None:
        """The variable at ``address`` and the offset within it, None where nothing is known of that place.

        ``bases`` are those of the CPUs: a per-CPU variable lies at its address as linked plus the base of its CPU (up
        to 6.14 they are linked from 0 on).
        """
        low, high = self.per_cpu
        for base in bases:
            linked = (address - base) & (2**64 - 1)
            if low <= linked < high:
                return self._symbol(linked)
        inside = len(self._addresses) and address < self.end and address >= int(self._image_start)
        return self._symbol(address) if inside else None

    def address(self, name: str) -> int | None:
        """Where the variable ``name`` lies, None where there is none, or another name is known of that place."""
        try:
            return int(self._addresses[self._names.index(name)])
        except ValueError:
            return None

    @cached_property
    def _image_start(self) -> int:
        kernel = self._addresses[self._addresses >= np.uint64(1 << 63)]
        return int(kernel[0]) if len(kernel) else 2**64 - 1


def _agrees(read: kallsyms.Symbols, functions: _Functions) -> bool:
    known = set(zip(read.addresses.tolist(), read.names, strict=True))
    claimed = list(zip(functions.addresses.tolist(), functions.all_names, strict=True))
    return bool(claimed) and sum(one in known for one in claimed) >= _AGREE * len(claimed)


def _data(read: kallsyms.Symbols, at: Mapping[str, int]) -> list[int]:
    """Which symbols are data: by type, and all behind the text but that of initialisation.

    The symbols of .data in Debian's 7.0 are of type T, as if it were text.
    """
    behind, end = at.get("_etext", 2**64), at.get("_end", 0)
    low, high = at.get("_sinittext", 0), at.get("_einittext", 0)
    places = enumerate(zip(read.types, read.addresses.tolist(), strict=True))
    return [i for i, (kind, a) in places if kind in _TYPES or (behind <= a < end and not low <= a < high)]


def _of(read: kallsyms.Symbols) -> Variables | None:
    at = dict(zip(read.names, read.addresses.tolist(), strict=True))
    low, high = at.get(_PER_CPU[0], 0), at.get(_PER_CPU[1], 0)

    def rank(i: int) -> tuple[int, int, str]:
        name = read.names[i]
        return int(read.addresses[i]), len(name) - len(name.lstrip("_")), name

    order = sorted((i for i in _data(read, at) if read.names[i] not in _PER_CPU), key=rank)
    if not order:
        return None
    addresses = read.addresses[order]
    kept = np.unique(addresses, return_index=True)[1]
    return Variables(
        addresses_le=addresses[kept].astype("<u8").tobytes(),
        text="\n".join(read.names[order[i]] for i in kept.tolist()),
        per_cpu=(low, high),
        end=at.get("_end", int(addresses[-1]) + _PAGE),
    )


def from_image(data: bytes, functions: _Functions) -> Variables | None:
    """The data symbols of an uncompressed kernel whose proven functions are ``functions``; None where it has none."""
    try:
        image = memory.open_image(data)
        for read in kallsyms.candidates(image):
            if _agrees(read, functions):
                return _of(read)
    except (memory.ImageError, kallsyms.KallsymsError):
        return None
    return None


def load(kernel: Kernel, functions: _Functions) -> Variables | None:
    """The data symbols of ``kernel``, from the cache where they are there.

    Raises:
        HostError: the cache cannot be written.
    """
    path = naming.image_path(kernel)
    if path is None:
        return None
    kept = naming.cached_path(path, ".data")
    stored = cache.read_checked(kept)
    if stored is not None:
        try:
            known = msgspec.msgpack.decode(stored, type=Variables)
        except msgspec.MsgspecError:
            known = None  # of another version
        if known is not None and known.format == FORMAT:
            return known
    found = from_image(path.read_bytes(), functions)
    if found is not None:
        cache.write_checked(kept, msgspec.msgpack.encode(found))
    return found
