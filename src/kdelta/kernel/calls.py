# SPDX-License-Identifier: GPL-2.0-or-later
"""Which function of a kernel calls which, read from its machine code without disassembling it.

Every place of the text that reads like a direct call or a tail jump (see ``branches``) and leads exactly to the start
of a function is taken for a call. In Debian's 6.12 for clouds 120,000 places begin like a call and are none. Counted
against starts that were displaced by 1, 2, 3 and 5 bytes, about 20 of them lead to a function by chance, among 340,000
true calls: a false one for every 17,000, or 0.04 among the 600 calls that the functions of a short case make.

What is no direct call is not seen: calls through pointers, retpolines, static calls (those lead to their trampoline)
and ftrace's hook. A call that alternatives replace at boot is seen as it was linked. Functions are named as in the
source, so a ``.cold`` part calls in the name of its function. Left out are the compiler's thunks, which are no
functions of the source, and what more than one in 200 callers calls (locks, ``kfree``): it says nothing about a caller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdelta.kernel import branches, cache, memory, naming
from kdelta.kernel.spelling import fold
from kdelta.kernel.symbols import NoSymbols, SymbolTable
from kdelta.model import Kernel

FORMAT = 2  # of the cached graphs: raised when their content changes
_COMMON = 200  # what more than one in so many callers calls is left out,
_FEW = 20  # unless they are no more than these
_THUNK = "__x86_"  # __x86_return_thunk, __x86_indirect_thunk_rax, __pi___x86_indirect_thunk_rax


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
    def _looked_up(self) -> dict[str, tuple[str, ...]]:
        """What was asked for: each guest of a kernel runs much the same functions."""
        return {}

    @cached_property
    def _firsts(self) -> NDArray[np.uint32]:
        return np.frombuffer(self.firsts_le, "<u4")

    @cached_property
    def _callees(self) -> NDArray[np.uint32]:
        return np.frombuffer(self.callees_le, "<u4")

    def callees(self, function: str) -> tuple[str, ...]:
        """Whom ``function`` calls, sorted; () for a function that is not there."""
        if function not in self._looked_up:
            self._looked_up[function] = self._look_up(function)
        return self._looked_up[function]

    def _look_up(self, function: str) -> tuple[str, ...]:
        names = self._names
        row = bisect_left(names, function)
        if row == len(names) or names[row] != function:
            return ()
        return tuple(names[i] for i in self._callees[self._firsts[row] : self._firsts[row + 1]].tolist())

    def callers(self, function: str) -> tuple[str, ...]:
        """Who calls ``function``, sorted; () for one that is not there, or that so many call that it is left out."""
        names = self._names
        row = bisect_left(names, function)
        if row == len(names) or names[row] != function:
            return ()
        rows = np.searchsorted(self._firsts, np.flatnonzero(self._callees == row), side="right") - 1
        return tuple(names[i] for i in sorted(set(rows.tolist())))


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


def _by_source(table: SymbolTable) -> tuple[list[str], NDArray[np.int64]]:
    """(names in the source, sorted; for each symbol its place among them)."""
    folded = [fold(name) for name in table.all_names]
    names = sorted(set(folded))
    rows = {name: row for row, name in enumerate(names)}
    return names, np.array([rows[name] for name in folded], np.int64)


def from_image(data: bytes, table: SymbolTable) -> CallGraph | NoSymbols:
    """The calls of an uncompressed kernel (vmlinux, or an arm64 Image) whose symbols are ``table``."""
    try:
        image = memory.open_image(data)
    except memory.ImageError as error:
        return NoSymbols(str(error))
    names, source = _by_source(table)
    count = max(len(names), 1)
    pairs = source[branches.pairs(image, table.addresses, table.ranges)] if len(table) else np.empty((0, 2), np.int64)
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
    path = naming.image_path(kernel)
    if path is None:
        return NoSymbols(f"no image of {kernel.label} is readable here")
    stored = naming.cached_path(path, f".{table.source}.calls")
    try:
        graph = msgspec.msgpack.decode(cache.read_checked(stored) or b"", type=CallGraph)
        if graph.format == FORMAT:
            return graph
    except msgspec.MsgspecError:
        pass  # never made, or of another version: made anew
    made = from_image(path.read_bytes(), table)
    if isinstance(made, CallGraph):
        cache.write_checked(stored, msgspec.msgpack.encode(made))
    return made
