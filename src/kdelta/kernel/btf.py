# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's own description of its types (BTF): structs, their fields, what lies at an offset.

Pure: the bytes of section ``.BTF`` in, values out. Format: Documentation/bpf/btf.rst. The bytes come from a stranger's
image, so every offset is checked before it is followed.
"""

from __future__ import annotations

import struct
from functools import cached_property

from msgspec import Struct

from kdelta.kernel import elf

MAGIC = 0xEB9F
_HEADER = struct.Struct("<HBBI4I")
_TYPE = struct.Struct("<3I")
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF = range(1, 9)
_VOLATILE, _CONST, _RESTRICT, _FUNC, _PROTO, _VAR, _DATASEC, _FLOAT, _DECL_TAG, _TYPE_TAG, _ENUM64 = range(9, 20)
_SAME = (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG)  # another name, or another view, of the type they lead to
_EXTRA = {_INT: 4, _ARRAY: 12, _VAR: 4, _DECL_TAG: 4}  # bytes behind a type, where each element has none
_ELEMENT = {_STRUCT: 12, _UNION: 12, _ENUM: 8, _PROTO: 8, _DATASEC: 12, _ENUM64: 12}
_DEEPEST = 6  # structs within structs, and names of names
_LONGEST_NAME = 1024  # bytes
_LOCK_BYTES = 40  # what is no larger (an rw_semaphore, a list head, a counter) is told whole


class BtfError(ValueError):
    """The bytes are no BTF that can be read; the message says why."""


class Field(Struct, frozen=True):
    """A field: its name ("" where it is an unnamed struct or union), its type's id, its offset in bytes."""

    name: str
    type: int
    offset: int


class Types(Struct, frozen=True, dict=True):
    """The types of a kernel, by id; ``data`` is the section."""

    data: bytes
    offsets: tuple[int, ...]  # where type id + 1 begins
    strings: int  # where the names begin

    def _at(self, ident: int) -> tuple[int, int, int, int]:
        """Name's offset, kind, number of elements, and size or type."""
        if not 0 < ident <= len(self.offsets):
            return 0, 0, 0, 0
        name, info, size = _TYPE.unpack_from(self.data, self.offsets[ident - 1])
        return name, info >> 24 & 31, info & 0xFFFF, size

    def _name(self, offset: int) -> str:
        at = self.strings + offset
        end = self.data.find(b"\0", at, at + _LONGEST_NAME)
        return self.data[at:end].decode("latin-1") if end >= 0 else ""

    @cached_property
    def _structs(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for ident in range(1, len(self.offsets) + 1):
            name, kind, count, _ = self._at(ident)
            if kind == _STRUCT and name and count:
                found.setdefault(self._name(name), ident)
        return found

    def struct(self, name: str) -> int | None:
        """The id of a struct of that name."""
        return self._structs.get(name)

    @cached_property
    def _variables(self) -> dict[str, int]:
        every = (self._at(ident) for ident in range(1, len(self.offsets) + 1))
        return {self._name(name): its_type for name, kind, _, its_type in every if kind == _VAR and name}

    def variable(self, name: str) -> int | None:
        """The id of the type of a variable; kernels describe those alone of which each CPU has a copy."""
        return self._variables.get(name)

    def size(self, ident: int, depth: int = _DEEPEST) -> int:
        """Bytes of a type, 0 where they are not known."""
        _, kind, _, size = self._at(ident)
        for _ in range(_DEEPEST):
            if kind not in _SAME:
                break
            ident = size
            _, kind, _, size = self._at(ident)
        if kind == _PTR:
            return 8
        if kind == _ARRAY:
            element, _, count = _TYPE.unpack_from(self.data, self.offsets[ident - 1] + _TYPE.size)
            return int(count) * self.size(element, depth - 1) if depth else 0
        return size if kind in (_INT, _STRUCT, _UNION, _ENUM, _FLOAT, _ENUM64) else 0

    def _plain(self, ident: int) -> int:
        """The type that ``ident`` is another name of."""
        for _ in range(_DEEPEST):
            _, kind, _, size = self._at(ident)
            if kind not in _SAME:
                break
            ident = size
        return ident

    @cached_property
    def _fields(self) -> dict[int, tuple[Field, ...]]:
        """Of structs that were asked for: a table of lines asks for the same few some ten thousand times."""
        return {}

    @cached_property
    def _paths(self) -> dict[tuple[int, int], str]:
        return {}

    def fields(self, ident: int) -> tuple[Field, ...]:
        """The fields of a struct or union in order, () of anything else."""
        known = self._fields.get(ident)
        if known is None:
            known = self._fields[ident] = self._read_fields(self._plain(ident))
        return known

    def _read_fields(self, ident: int) -> tuple[Field, ...]:
        _, kind, count, _ = self._at(ident)
        if kind not in (_STRUCT, _UNION):
            return ()
        at = self.offsets[ident - 1]
        bits = 0xFFFFFF if struct.unpack_from("<I", self.data, at + 4)[0] >> 31 else 0xFFFFFFFF
        raw = [_TYPE.unpack_from(self.data, at + _TYPE.size * (1 + i)) for i in range(count)]
        return tuple(Field(self._name(name), type_id, (offset & bits) // 8) for name, type_id, offset in raw)

    def offset(self, ident: int, name: str) -> int | None:
        """Where the field ``name`` of a struct begins, also where it is of an unnamed struct or union within it."""
        return self._offset(ident, name, _DEEPEST, set())

    def _offset(self, ident: int, name: str, nested: int, seen: set[int]) -> int | None:
        """``seen`` are types that do not have it: a hostile one has many fields of its own type."""
        if ident in seen:
            return None
        seen.add(ident)
        for field in self.fields(ident):
            if field.name == name:
                return field.offset
            if field.name or not nested:
                continue
            if (inner := self._offset(field.type, name, nested - 1, seen)) is not None:
                return field.offset + inner
        return None

    def begins(self, ident: int, offset: int, name: str) -> bool:
        """Whether a struct of that name begins at ``offset`` of a type, however deep within it, or is that type."""
        return self._begins(ident, offset, name, 2 * _DEEPEST, set())

    def _begins(self, ident: int, offset: int, name: str, nested: int, seen: set[tuple[int, int]]) -> bool:
        ident = self._plain(ident)
        if (ident, offset) in seen:
            return False
        seen.add((ident, offset))
        at, kind, _, _ = self._at(ident)
        if kind == _STRUCT and not offset and self._name(at) == name:
            return True
        if not nested or not 0 <= offset < self.size(ident):
            return False
        if kind == _ARRAY:
            element, _, _ = _TYPE.unpack_from(self.data, self.offsets[ident - 1] + _TYPE.size)
            size = self.size(element)
            return bool(size) and self._begins(element, offset % size, name, nested - 1, seen)
        return any(
            self._begins(field.type, offset - field.offset, name, nested - 1, seen)
            for field in self.fields(ident)
            if field.offset <= offset
        )

    def path(self, ident: int, offset: int) -> str:
        """The field at ``offset`` of a struct, as ``d_lockref`` or ``sighand.siglock``; "" where there is none.

        Unnamed structs and unions are looked into, named ones down to the second; of a union the first member that is
        there stands for all.
        """
        known = self._paths.get((ident, offset))
        if known is None:
            known = self._paths[ident, offset] = self._path(ident, offset, 2, _DEEPEST, set())
        return known

    def _path(self, ident: int, offset: int, depth: int, nested: int, seen: set[tuple[int, int, int]]) -> str:
        if (ident, offset, depth) in seen:
            return ""
        seen.add((ident, offset, depth))
        for field in self.fields(ident):
            if not field.offset <= offset < field.offset + max(1, self.size(field.type)):
                continue
            if not field.name:
                if nested and (inner := self._path(field.type, offset - field.offset, depth, nested - 1, seen)):
                    return inner
                continue
            deeper = depth > 1 and self.size(field.type) > _LOCK_BYTES
            inner = self._path(field.type, offset - field.offset, depth - 1, _DEEPEST, seen) if deeper else ""
            return f"{field.name}.{inner}" if inner else field.name
        return ""


def parse(data: bytes) -> Types:
    """The types of a section ``.BTF``.

    Raises:
        BtfError: not BTF, or damaged.
    """
    if len(data) < _HEADER.size:
        raise BtfError(f"{len(data)} bytes, too short for a header")
    magic, version, _flags, header, type_off, type_len, str_off, str_len = _HEADER.unpack_from(data)
    if magic != MAGIC or version != 1:
        raise BtfError(f"starts with {magic:#x}, version {version}: no BTF of version 1")
    at, end = header + type_off, header + type_off + type_len
    strings = header + str_off
    if max(end, strings + str_len) > len(data) or header < _HEADER.size:
        raise BtfError("its parts lie outside of it")
    offsets: list[int] = []
    while at + _TYPE.size <= end:
        info = struct.unpack_from("<I", data, at + 4)[0]
        kind, count = info >> 24 & 31, info & 0xFFFF
        if not _INT <= kind <= _ENUM64:
            raise BtfError(f"type {len(offsets) + 1} is of the unknown kind {kind}")
        offsets.append(at)
        at += _TYPE.size + _EXTRA.get(kind, 0) + _ELEMENT.get(kind, 0) * count
    if at != end:
        raise BtfError(f"type {len(offsets)} lies outside of it")
    return Types(data[: max(end, strings + str_len)], tuple(offsets), strings)


def section_of(image: bytes) -> bytes | None:
    """The section ``.BTF`` of an uncompressed kernel, None where it has none (CONFIG_DEBUG_INFO_BTF).

    Raises:
        BtfError: no readable ELF file.
    """
    try:
        file = elf.parse(image)
    except elf.ElfError as error:
        raise BtfError(f"unreadable vmlinux: {error}") from None
    found = file.section(".BTF")
    return image[found.offset : found.offset + found.size] if found and found.size else None
