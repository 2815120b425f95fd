# SPDX-License-Identifier: GPL-2.0-or-later
"""Which function of a kernel calls which, read from its machine code without disassembling it.

A direct call is an opcode and a distance: on x86-64 ``e8``, and ``e9`` or ``0f 8x`` for tail jumps, with 32 bits; on
arm64 ``bl`` and ``b`` with 26. Every place of the text that reads so and leads exactly to the start of a function is
taken for a call. arm64 instructions are aligned words, so nothing else reads so. x86-64 instructions are not: in
Debian's 6.12 for clouds 120,000 places begin like a call and are none. Counted against starts that were displaced by
1, 2, 3 and 5 bytes, about 20 of them lead to a function by chance, among 340,000 true calls: a false one for every
17,000, or 0.04 among the 600 calls that the functions of a short case make.

What is no direct call is not seen: calls through pointers, retpolines, static calls (those lead to their trampoline)
and ftrace's hook. A call that alternatives replace at boot is seen as it was linked. Functions are named as in the
source, so a ``.cold`` part calls in the name of its function. Left out are the compiler's thunks, which are no
functions of the source, and what more than one in 200 callers calls (locks, ``kfree``): it says nothing about a caller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.kernel import cache, kallsyms, symbols
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.model import Arch, Kernel

FORMAT = 1  # of the cached graphs: raised when their content changes
_COMMON = 200  # what more than one in so many callers calls is left out,
_FEW = 20  # unless they are no more than these
_THUNK = "__x86_"  # __x86_return_thunk, __x86_indirect_thunk_rax, __pi___x86_indirect_thunk_rax

Ints = NDArray[np.int64]


class CallGraph(Struct, frozen=True, kw_only=True, dict=True):
    """Direct calls between functions by their names in the source.

    ``text`` is one name a line, sorted. ``firsts_le`` (n + 1) and ``callees_le`` are little-endian u32: the callees
    of name i are ``callees[firsts[i]:firsts[i + 1]]``, as places in ``text``.
    """

    text: str
    firsts_le: bytes
    callees_le: bytes
    format: int = FORMAT

    @cached_property
    def _names(self) -> list[str]:
        return self.text.split("\n") if self.text else []

    @cached_property
    def _firsts(self) -> NDArray[np.uint32]:
        return np.frombuffer(self.firsts_le, "<u4")

    @cached_property
    def _callees(self) -> NDArray[np.uint32]:
        return np.frombuffer(self.callees_le, "<u4")

    def callees(self, function: str) -> tuple[str, ...]:
        """Whom ``function`` calls, sorted; () for a function that is not there."""
        names = self._names
        row = bisect_left(names, function)
        if row == len(names) or names[row] != function:
            return ()
        return tuple(names[i] for i in self._callees[self._firsts[row] : self._firsts[row + 1]].tolist())


class Code(Struct, frozen=True):
    """A kernel's functions: where they lie and whom they call. ``graph`` is None where that is not known."""

    symbols: SymbolTable
    graph: CallGraph | None

    def names(self, addresses: NDArray[np.uint64], /) -> Sequence[str | None]:
        """For each address the name of its function, None outside of all code."""
        return self.symbols.names(addresses)

    def calls(self, functions: Iterable[str], /) -> dict[str, tuple[str, ...]]:
        """For each function whom it calls; {} where calls are not known."""
        graph = self.graph
        return {} if graph is None else {function: graph.callees(function) for function in functions}


def _x86_64(text: NDArray[np.uint8]) -> Iterator[tuple[Ints, Ints]]:
    """(offset of a place that reads like a call or jump, offset that it leads to)."""
    if len(text) < 6:
        return
    near = np.flatnonzero((text[:-4] & 0xFE) == 0xE8)
    conditional = np.flatnonzero((text[:-5] == 0x0F) & ((text[1:-4] & 0xF0) == 0x80)) + 1
    for places in (near, conditional):
        distance = np.zeros(places.shape, np.uint32)
        for byte in range(4):
            distance |= text[places + 1 + byte].astype(np.uint32) << np.uint32(8 * byte)
        yield places, places + 5 + distance.view(np.int32)


def _arm64(text: NDArray[np.uint8]) -> Iterator[tuple[Ints, Ints]]:
    words = text[: len(text) & ~3].view("<u4")
    places = np.flatnonzero((words & 0x7C000000) == 0x14000000)
    distance = (words[places] << np.uint32(6)).view(np.int32) >> 6
    yield 4 * places, 4 * (places + distance)


_FINDERS = {"x86_64": _x86_64, "arm64": _arm64}


def _texts(image: kallsyms.Image, table: SymbolTable) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """(address, bytes) of each stretch of kernel code that the file holds."""
    for low, high in table.ranges:
        for segment in image.segments:
            start, end = max(low, segment.address), min(high, segment.address + segment.size)
            if start < end:
                yield start, np.frombuffer(image.data, np.uint8, end - start, segment.offset + start - segment.address)


def _direct(image: kallsyms.Image, table: SymbolTable, arch: Arch) -> NDArray[np.int64]:
    """Every call as (caller, callee), shape (n, 2), places in the symbol table."""
    found = [np.empty((0, 2), np.int64)]
    base = int(table.addresses[0])
    starts = (table.addresses - table.addresses[0]).astype(np.int64)
    for address, text in _texts(image, table):
        for places, targets in _FINDERS[arch](text):
            shift = address - base
            callee = np.minimum(np.searchsorted(starts, targets + shift), len(starts) - 1)
            hits = starts[callee] == targets + shift
            caller = np.searchsorted(starts, places[hits] + shift, side="right") - 1
            found.append(np.stack((caller, callee[hits]), axis=1))
    return np.concatenate(found)


def _by_source(table: SymbolTable) -> tuple[list[str], NDArray[np.int64]]:
    """(names in the source, sorted; for each symbol its place among them)."""
    folded = [symbols.fold(name) if "." in name or "_noprof" in name else name for name in table.all_names]
    names = sorted(set(folded))
    rows = {name: row for row, name in enumerate(names)}
    return names, np.array([rows[name] for name in folded], np.int64)


def from_image(data: bytes, table: SymbolTable, arch: Arch) -> CallGraph | NoSymbols:
    """The calls of an uncompressed kernel (vmlinux, or an arm64 Image) whose symbols are ``table``."""
    try:
        image = kallsyms.open_image(data)
    except kallsyms.KallsymsError as error:
        return NoSymbols(str(error))
    names, source = _by_source(table)
    count = max(len(names), 1)
    pairs = source[_direct(image, table, arch)] if len(table) else np.empty((0, 2), np.int64)
    codes = np.unique((pairs[:, 0] * count + pairs[:, 1])[pairs[:, 0] != pairs[:, 1]])
    callers, callees = codes // count, codes % count
    often = np.bincount(callees, minlength=count) > max(len(np.unique(callers)) // _COMMON, _FEW)
    thunk = np.array([_THUNK in name for name in names] or [False])
    kept = ~(often | thunk)[callees]
    callers, callees = callers[kept], callees[kept]
    used = np.union1d(callers, callees)
    firsts = np.searchsorted(callers, np.append(used, count))
    return CallGraph(
        text="\n".join(names[i] for i in used.tolist()),
        firsts_le=firsts.astype("<u4").tobytes(),
        callees_le=np.searchsorted(used, callees).astype("<u4").tobytes(),
    )


def load(kernel: Kernel, table: SymbolTable) -> CallGraph | NoSymbols:
    """The calls of a kernel whose symbols are ``table``, from the cache where they are there.

    Raises:
        HostError: the cache cannot be written.
    """
    path = symbols.image_path(kernel)
    if path is None:
        return NoSymbols(f"no image of {kernel.label} is readable here")
    stored = symbols.cached_path(kernel, path, ".calls")
    try:
        graph = msgspec.msgpack.decode(stored.read_bytes(), type=CallGraph)
        if graph.format == FORMAT:
            return graph
    except (FileNotFoundError, msgspec.MsgspecError):
        pass  # never made, or damaged: made anew
    made = from_image(path.read_bytes(), table, kernel.arch)
    if isinstance(made, CallGraph):
        cache.write_atomically(stored, msgspec.msgpack.encode(made))
    return made
