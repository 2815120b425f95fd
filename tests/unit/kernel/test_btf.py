# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's description of its types, from bytes made here and from what is no such thing."""

from __future__ import annotations

import struct

import pytest

from kdelta.kernel import btf, types

INT, ARRAY, STRUCT, UNION, TYPEDEF, VAR = 1, 3, 4, 5, 8, 14


class Made:
    """A section .BTF, type by type."""

    def __init__(self) -> None:
        self.types, self.strings, self.count = b"", b"\0", 0

    def add(self, kind: int, name: str, size: int, elements: bytes = b"", count: int = 0) -> int:
        self.types += struct.pack("<3I", self.text(name), kind << 24 | count, size) + elements
        self.count += 1
        return self.count

    def text(self, name: str) -> int:
        if not name:
            return 0
        self.strings += name.encode() + b"\0"
        return len(self.strings) - len(name) - 1

    def members(self, *fields: tuple[str, int, int]) -> bytes:
        return b"".join(struct.pack("<3I", self.text(name), kind, 8 * at) for name, kind, at in fields)

    def struct(self, name: str, size: int, *fields: tuple[str, int, int], kind: int = STRUCT) -> int:
        return self.add(kind, name, size, self.members(*fields), len(fields))

    def bytes(self) -> bytes:
        head = struct.pack("<HBBI4I", 0xEB9F, 1, 0, 24, 0, len(self.types), len(self.types), len(self.strings))
        return head + self.types + self.strings


def _kernel() -> bytes:
    made = Made()
    u64 = made.add(INT, "u64", 8, struct.pack("<I", 64))
    name = made.add(TYPEDEF, "name_t", u64)
    slots = made.add(ARRAY, "", 0, struct.pack("<3I", u64, u64, 8))
    lock = made.struct("lockref", 8, ("count", u64, 0))
    inode = made.struct("inode", 88, ("i_lock", u64, 0), ("i_slots", slots, 8), ("i_lockref", lock, 80))
    inner = made.struct("", 16, ("first", name, 0), ("second", u64, 8), kind=UNION)
    made.struct("holder", 128, ("", inner, 8), ("owner", u64, 0), ("vfs_inode", inode, 24), ("ref", lock, 112))
    made.struct("page", 64, ("flags", u64, 0), ("compound_info", u64, 8))
    made.struct("slab", 64, ("slab_cache", u64, 16))
    made.struct("kmem_cache", 64, ("size", u64, 24), ("name", u64, 32), ("list", slots, 40))
    return made.bytes()


def test_fields_are_found_by_name_and_by_offset_through_what_has_no_name() -> None:
    known = btf.parse(_kernel())
    holder = known.struct("holder")
    assert holder is not None and known.size(holder) == 128 and known.struct("nothing") is None
    assert known.offset(holder, "second") == 16 and known.offset(holder, "third") is None
    assert known.path(holder, 8) == "first"
    assert known.path(holder, 24 + 16) == "vfs_inode.i_slots"
    assert known.path(holder, 24 + 80) == "vfs_inode.i_lockref"
    assert known.path(holder, 112) == "ref", "a lock is one thing"
    assert known.path(holder, 127) == ""


def test_a_variable_leads_to_its_type() -> None:
    made = Made()
    number = made.add(INT, "int", 4, bytes(4))
    queue = made.struct("rq", 8, ("nr_running", number, 0), ("clock", number, 4))
    made.add(VAR, "runqueues", queue, bytes(4))
    types = btf.parse(made.bytes())
    assert types.variable("runqueues") == queue and types.path(queue, 4) == "clock"
    assert types.variable("rq") is None


def test_a_struct_is_found_where_it_begins_however_deep() -> None:
    made = Made()
    number = made.add(INT, "unsigned int", 4, struct.pack("<I", 32))
    count = made.struct("seqcount", 4, ("sequence", number, 0))
    lock = made.add(TYPEDEF, "seqlock_t", made.struct("", 8, ("seqcount", count, 0), ("lock", number, 4)))
    several = made.add(ARRAY, "", 0, struct.pack("<3I", lock, number, 3))
    made.struct(
        "holder", 64, ("first", number, 0), ("locks", several, 8), ("", made.struct("", 4, ("c", count, 0)), 40)
    )
    known = btf.parse(made.bytes())
    holder = known.struct("holder")
    assert holder is not None
    assert [at for at in range(0, 68, 2) if known.begins(holder, at, "seqcount")] == [8, 16, 24, 40]
    assert not known.begins(holder, 8, "seqlock_t"), "that is no struct"


def test_where_slabs_are_found_comes_from_the_types_else_from_the_release() -> None:
    class Data:
        def address(self, name: str, /) -> int | None:
            return {"slab_caches": 0x1000, "vmemmap_base": 0x2000}.get(name)

    found = types.slab_layout(Data(), btf.parse(_kernel()), "7.3.4")
    assert found is not None and found.words() == (0x1000, 0x2000, 0, 64, 8, 16, 32, 24, 40)
    for release, owner, name in (("6.1.0-56-amd64", 24, 96), ("6.12.117", 8, 96), ("6.19.2", 8, 104), ("7.0", 8, 88)):
        usual = types.slab_layout(Data(), None, release)
        assert usual is not None and (usual.owner, usual.name, usual.list) == (owner, name, name + 8)
    assert types.slab_layout(None, None, "7.0") is None


@pytest.mark.parametrize("spoil", ["short", "magic", "kind", "outside", "strings"])
def test_what_is_no_btf_is_refused(spoil: str) -> None:
    whole = bytearray(_kernel())
    if spoil == "magic":
        whole[0] ^= 1
    elif spoil == "kind":
        whole[24 + 7] = 31
    elif spoil == "outside":
        whole[12:16] = struct.pack("<I", len(whole))
    elif spoil == "strings":
        whole[20:24] = struct.pack("<I", len(whole))
    with pytest.raises(btf.BtfError):
        btf.parse(bytes(whole[:20] if spoil == "short" else whole))


def test_damage_anywhere_is_refused_or_read_but_never_followed_outside() -> None:
    whole = _kernel()
    for place in range(24, len(whole)):
        data = bytearray(whole)
        data[place] ^= 0xFF
        try:
            known = btf.parse(bytes(data))
        except btf.BtfError:
            continue
        for name in ("holder", "page"):
            if (ident := known.struct(name)) is not None:
                assert known.size(ident) >= 0 and isinstance(known.path(ident, 40), str)
                known.offset(ident, "second")


def test_types_that_hold_themselves_many_times_over_are_looked_through_once() -> None:
    made = Made()
    word = made.add(INT, "u64", 8, struct.pack("<I", 64))
    own = 2  # the next one
    made.struct("", 4096, *(("", own, 8 * (i // 2)) for i in range(200)), ("last", word, 4088), kind=UNION)
    known = btf.parse(made.bytes())
    assert known.offset(own, "nowhere") is None and known.offset(own, "last") == 4088
    assert known.path(own, 4000) == "" and known.path(own, 4088) == "last"
    assert not known.begins(own, 2000, "page")


def test_names_may_come_before_the_types() -> None:
    whole = bytearray(_kernel())
    types_at, types_len, _, strings_len = struct.unpack_from("<4I", whole, 8)
    body, names = whole[24 + types_at : 24 + types_len], whole[24 + types_len :]
    head = struct.pack("<HBBI4I", 0xEB9F, 1, 0, 24, strings_len, types_len, 0, strings_len)
    known = btf.parse(head + bytes(names) + bytes(body))
    kmem_cache = known.struct("kmem_cache")  # the last type
    assert kmem_cache is not None and known.offset(kmem_cache, "list") == 40


def test_a_name_without_an_end_is_none() -> None:
    made = Made()
    made.struct("x" * 5000, 8, ("y", 1, 0))
    assert btf.parse(made.bytes()).struct("x" * 5000) is None
