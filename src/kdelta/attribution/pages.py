# SPDX-License-Identifier: GPL-2.0-or-later
"""Which page a register of arm64 code points to, where an instruction adds an offset to it. Pure, over disassembly.

An address is built of ``adrp x0, PAGE`` and an offset in a later instruction, with others between and on several ways.
What wrote the register last on each way decides; an offset into a struct reads no otherwise than one into a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

_REGISTER = re.compile(r"[wx](\d+)")
_WRITEBACK = re.compile(r"\[x(\d+)[^\]]*\](?:!|, #)")
_JUMPS = re.compile(r"^(?:b(?:\.\w+)?|cbn?z|tbn?z)$")
_BY_TABLE = ("br", "braa", "brab")
_LEAVES = ("b", "ret", "retaa", "retab", "eret", *_BY_TABLE)
_NOTHING = re.compile(  # written to a register that is named first
    r"^(?:b(?:\.\w+)?|cbn?z|tbn?z|ret\w*|br\w*|cmp|cmn|tst|ccmp|ccmn|fcmpe?|fccmpe?|prf\w+|msr|nop|hint|[di]sb|dmb"
    r"|brk|svc|hvc|smc|yield|wf[ei]t?|sevl?|bti|udf|dc|ic|at|tlbi|sys|pac\w*sp|aut\w*sp|st(?!l?xr|l?xp)\w+)$"
)
_OLD = re.compile(r"^(?:ld(?:add|clr|eor|set|[su]max|[su]min)|swp)\w*$")  # what was there comes second (LSE)
_PAIR = re.compile(r"^(?:ldp(?:sw)?|ldnp|lda?xp|casp\w*)$")
_CALLED = frozenset([*range(19), 30])  # what a call may overwrite (AAPCS64, 6.1.1)


@lru_cache(maxsize=1 << 16)
def written(mnemonic: str, operands: str) -> frozenset[int]:
    """The numbers of the registers that an instruction writes, as far as addresses may be in them."""
    if mnemonic in ("bl", "blr", "blraa", "blrab"):
        return _CALLED
    found = set()
    if match := _WRITEBACK.search(operands):
        found.add(int(match[1]))
    if not _NOTHING.match(mnemonic):
        first = operands.partition("[")[0].split(", ")
        for one in first[1:2] if _OLD.match(mnemonic) else first[:2] if _PAIR.match(mnemonic) else first[:1]:
            if match := _REGISTER.fullmatch(one):
                found.add(int(match[1]))
    return frozenset(found)


class Pages:
    """Of one function: ``raw`` are its instructions as (offset, length, mnemonic, operands), linked at ``address``."""

    def __init__(self, raw: Sequence[tuple[int, int, str, str]], address: int) -> None:
        self._raw = raw
        at = {offset: index for index, (offset, *_) in enumerate(raw)}
        from_: dict[int, list[int]] = {}
        for index, (_, _, mnemonic, operands) in enumerate(raw):
            if _JUMPS.match(mnemonic) and (match := re.search(r"0x([0-9a-f]+)$", operands)):
                lands = at.get(int(match[1], 16) - address)
                if lands is not None:
                    from_.setdefault(lands, []).append(index)
        self._jumps: Mapping[int, list[int]] = from_
        self._elsewhere = [index for index, (_, _, mnemonic, _) in enumerate(raw) if mnemonic in _BY_TABLE]
        self._built = {operands.partition(",")[0] for _, _, mnemonic, operands in raw if mnemonic == "adrp"}

    def _before(self, index: int) -> list[int]:
        """What may have run right before: of what no jump leads to, a jump by a table, or a fault before it."""
        falls = index > 0 and self._raw[index - 1][2] not in _LEAVES
        found = [*([index - 1] if falls else []), *self._jumps.get(index, [])]
        return found or self._elsewhere or [index - 1] if index else found

    def of(self, register: str, index: int) -> int | None:
        """The page in ``register`` where the instruction at ``index`` runs; None where it is no page, or not one."""
        if register not in self._built:
            return None
        match = _REGISTER.fullmatch(register)
        number = int(match[1]) if match else -1
        seen, left, page = set[int](), [index], None
        while left:
            before = self._before(left.pop())
            if not before:  # at the beginning of the function: an argument
                return None
            for one in before:
                if one in seen:
                    continue
                seen.add(one)
                _, _, mnemonic, operands = self._raw[one]
                if number not in written(mnemonic, operands):
                    left.append(one)
                    continue
                built = int(operands.partition("#")[2], 16) if mnemonic == "adrp" else None
                if built is None or (page is not None and page != built):
                    return None
                page = built
        return page
