# SPDX-License-Identifier: GPL-2.0-or-later
"""Data of two kernels: which variables begin with another value, and which functions read them. Pure over bytes.

A value that is an address is equal when it leads to the same thing, as in code; so a table that only moved, or whose
strings did, is no difference, and one that leads to another text is. Other variables without a symbol (tables of a
switch) are not compared: they change with the code that names them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

import numpy as np

from kdelta.attribution import jump_labels, runtime_consts, shifted, texts
from kdelta.attribution.code import alike
from kdelta.attribution.disassembly import DataObject, Image
from kdelta.kernel.spelling import fold

# The compiler's and the build's own: what they hold follows from the rest.
_NOT_READ = ("kallsyms_", "linux_banner", "linux_proc_banner", "__func__", "__FUNCTION__", "__PRETTY_FUNCTION__")
_TAILS = (0, 1, 2, 4)  # bytes of an immediate behind the address of an x86 operand
_PIECE = 1 << 22
_FEW_USERS = 16  # functions: of 6.12, 3 to 8 name a slab cache, 23 init_pid_ns, 38 init_task, 48 init_mm, 271 jiffies
_KEY = 16  # bytes: struct static_key, include/linux/jump_label.h
_PAGE, _LARGEST_IMAGE = 1 << 12, 1 << 30  # bytes
_LEAST_ADDRESS = 0xFFFFFFFF80000000  # of the kernel's image: Documentation/arch/x86/x86_64/mm.rst
_ELF, _ELF_TYPE, _SHARED = b"\x7fELF", 16, 3  # elf(5): ET_DYN; what kexec brings is ET_REL
Objects = tuple[DataObject, ...]
_UNIQUE = re.compile(rb"(__UNIQUE_ID_\w*?)_*\d+\b")  # a macro's variable in a text, as in print_fmt_dma_map_sg
_WORD = re.compile(r"[A-Za-z_][\w.]*")


def changed(before: Image, after: Image) -> tuple[str, ...]:
    """Names of the variables whose initial value differs, or that only one kernel has; sorted."""
    return _changed(before, after, before.objects, after.objects)


def is_library(before: Image, after: Image, name: str) -> bool:
    """Whether a variable is a shared library, which programs execute: the vDSO (arch/x86/tools/vdso2c.h)."""
    found = (one.content for image in (before, after) for one in image.objects.get(name, ()))
    return any(
        content.startswith(_ELF) and content[_ELF_TYPE] == _SHARED for content in found if len(content) > _ELF_TYPE
    )


def changed_at_boot(before: Image, after: Image) -> Mapping[str, frozenset[str]]:
    """Such variables that are thrown away once the kernel has started, each with the functions that read it.

    Of those that only one kernel has the code that reads them tells more.
    """
    names = set(_changed(before, after, before.boot_objects, after.boot_objects))
    names &= before.boot_objects.keys() & after.boot_objects.keys()
    found: dict[str, set[str]] = {name: set() for name in names}
    for image in (before, after) if names and before.arch == "x86_64" else ():
        for function, one in _reading(image, [one for name in names for one in image.boot_objects[name]]):
            found[one.name].add(function)
    return {name: frozenset(functions) for name, functions in sorted(found.items())}


def _changed(before: Image, after: Image, was: Mapping[str, Objects], now: Mapping[str, Objects]) -> tuple[str, ...]:
    found = {name for name in was.keys() | now.keys() if not name.startswith(_NOT_READ)}
    other = {name for name in found if len(was.get(name, ())) != len(now.get(name, ()))}
    of = [name for name in sorted(found - other) for _ in was[name]]
    pairs = [pair for name in sorted(found - other) for pair in zip(was[name], now[name], strict=True)]
    quick = shifted.same_data(pairs, shifted.things(before, after))
    left = (index for index in range(len(pairs)) if index not in quick)
    differing = {index for index in left if not same_object(before, after, *pairs[index])}
    return tuple(sorted(other | {of[index] for index in differing | texts.other_in_data(before, after, pairs)}))


def same_object(before: Image, after: Image, old: DataObject, new: DataObject) -> bool:
    """Whether two variables begin with the same value; addresses in them may have moved."""
    was, now = old.content, new.content
    if b"__UNIQUE_ID_" in was and _uncounted(was) == _uncounted(now):
        return True
    if len(was) != len(now):
        return False
    other = [at for at in _words(was, now) if not _same_word(before, after, old, new, at)]
    if any(was[at : at + 8] == now[at : at + 8] for at in other):
        return False  # one address, of two things
    return not other or _same_packed(before, after, was, now)


def _uncounted(text: bytes) -> bytes:
    return _UNIQUE.sub(rb"\1", text)


def _same_packed(before: Image, after: Image, old: bytes, new: bytes) -> bool:
    """Whether all bytes that differ are of addresses that lead to the same thing or text, wherever these begin.

    Those of packed structures do at any byte: the tables of drivers/acpi/acpica/exdump.c.
    """
    at = 0
    while at < len(old):
        if old[at] == new[at]:
            at += 1
            continue
        starts = range(max(0, at - 7), min(at, len(old) - 8) + 1)
        start = next(
            (one for one in starts if _same_address(before, after, *(c[one : one + 8] for c in (old, new)))), None
        )
        if start is None:
            return False
        at = start + 8
    return True


def _same_address(before: Image, after: Image, old: bytes, new: bytes) -> bool:
    was, now = (int.from_bytes(one, "little") for one in (old, new))
    if min(was, now) < _LEAST_ADDRESS or not alike(before, after, was, now):
        return False
    return texts.at(before, was) == texts.at(after, now)


def _words(old: bytes, new: bytes) -> Iterator[int]:
    """Offsets of the words that differ, and of those that may be addresses: the same one may be another thing's."""
    whole = len(old) & ~7
    was, now = (np.frombuffer(content[:whole], "<u8") for content in (old, new))
    yield from (8 * np.flatnonzero((was != now) | (shifted.like_addresses(was)))).tolist()
    if old[whole:] != new[whole:]:
        yield whole


def _same_word(before: Image, after: Image, old: DataObject, new: DataObject, at: int) -> bool:
    """Whether eight bytes are one address, or two distances, that lead to the same thing."""
    value, other = (int.from_bytes(one.content[at : at + 8], "little") for one in (old, new))
    if alike(before, after, value, other) or _same_entry(before, after, value, other):
        return True
    if value == other:
        return not before.name_of(value)  # a number that looks like an address
    for half in (at, at + 4):
        was, now = (int.from_bytes(one.content[half : half + 4], "little", signed=True) for one in (old, new))
        places = old.address + half + was, new.address + half + now
        if was != now and not (alike(before, after, *places) and _far_or_named(before, was, places[0])):
            return False
    return True


def _same_entry(before: Image, after: Image, old: int, new: int) -> bool:
    """Whether two words are entries of page tables for one thing: its page's physical address, and equal flags.

    As in pvh_init_top_pgt of arch/x86/platform/pvh/head.S; an image is smaller than a GiB.
    """
    if old % _PAGE != new % _PAGE or not shifted.PHYSICAL <= min(old, new) <= max(old, new) < _LARGEST_IMAGE:
        return False
    places = [shifted.KERNEL_MAP + value - value % _PAGE for value in (old, new)]
    return before.has_symbol(places[0]) and after.has_symbol(places[1]) and alike(before, after, *places)


def _far_or_named(image: Image, distance: int, place: int) -> bool:
    """Whether a number may be a distance: a small one, to where no symbol is, is the hole behind the variable."""
    return abs(distance) > shifted.LEAST_DISTANCE or image.has_symbol(place)


def readers(image: Image, names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """For each variable the functions whose code has its address or value, or branches by it. x86-64, {} for others."""
    wanted = {name: image.objects.get(name, ()) for name in names}
    if image.arch != "x86_64" or not wanted:
        return {}
    found: dict[str, set[str]] = {name: set() for name in wanted}
    for function, one in _reading(image, [one for many in wanted.values() for one in many]):
        found[one.name].add(function)
    return {name: tuple(sorted(functions)) for name, functions in found.items()}


def _reading(image: Image, objects: Iterable[DataObject]) -> Iterator[tuple[str, DataObject]]:
    """(function, variable that its code has the address or the value of, or branches by), some more than once."""
    spans = sorted(
        ((_signed(one.address), _signed(one.address) + len(one.content), one) for one in objects), key=lambda s: s[:2]
    )
    texts: dict[str, frozenset[str]] = {}  # of a large variable much reads like its address: each is disassembled once
    for place, one in _references(image, spans):
        function = image.function_at(place)
        if function is None:
            continue
        if function.name not in texts:
            told = (one.text for one in image.instructions(function))
            texts[function.name] = frozenset(word for text in told for word in _WORD.findall(text))
        if one.name in texts[function.name]:  # else the bytes only read like it
            yield fold(function.name.partition("#")[0]), one
    for place, one in _branches(image, spans):
        function = image.function_at(place)
        if function is not None:
            yield fold(function.name.partition("#")[0]), one
    constants = runtime_consts.users(image) if spans else {}
    yield from ((function, one) for _, _, one in spans for function in sorted(constants.get(one.name, ())))


def _branches(image: Image, spans: list[tuple[int, int, DataObject]]) -> Iterator[tuple[int, DataObject]]:
    """(address of an instruction, variable) of the static branches whose keys lie in one of ``spans``."""
    lows = [low for low, _, _ in spans]
    for place, key in jump_labels.sites(image) if spans else ():
        at = bisect_right(lows, _signed(key)) - 1
        if at >= 0 and _signed(key) < spans[at][1]:
            yield place, spans[at][2]


def set_by(image: Image, functions: Iterable[str]) -> Mapping[str, Mapping[str, frozenset[str]]]:
    """For each function the variables that its code names and few do, each with these functions: what it may set.

    What many name (``jiffies``, ``init_task``) is no matter of a single one, but for a static key: code has its
    address to turn it, and those that ask it branch. x86-64, {} for others.
    """
    if image.arch != "x86_64":
        return {}
    told = {function: _texts_of(image, function) for function in functions}
    named = {function: _variables_of(image, texts) for function, texts in told.items()}
    users: dict[DataObject, set[str]] = {}
    for function, one in _reading(image, {one for many in named.values() for one in many}):
        users.setdefault(one, set()).add(function)
    constants = runtime_consts.users(image)
    keys = {key for _, key in jump_labels.sites(image)}
    found: dict[str, dict[str, frozenset[str]]] = {}
    for function, many in named.items():
        own = found[function] = {}
        for one in sorted(many, key=lambda one: (one.name, one.address)):
            who = users.get(one, set())
            is_key = one.address in keys and len(one.content) <= _KEY  # of an array each key is another one's
            if function in who and (is_key or len(who) <= _FEW_USERS):  # else it is a namesake's, or everybody's
                own[one.name] = own.get(one.name, frozenset()) | who
        for name in sorted(runtime_consts.initialised(told[function]) & constants.keys()):
            who = {*constants[name], function}  # the variable itself may be none: only its value is kept, in code
            if len(who) <= _FEW_USERS:
                own[name] = own.get(name, frozenset()) | who
    return found


def _texts_of(image: Image, function: str) -> list[str]:
    """The instructions of a function that lead nowhere."""
    every = (one for part in image.sources.get(function, ()) for one in image.instructions(part))
    return [one.text for one in every if not one.target]


def _variables_of(image: Image, texts: Iterable[str]) -> set[DataObject]:
    """The variables that instructions name, those without an initial value too."""
    wanted = {word for text in texts for word in _WORD.findall(text)} - image.sources.keys()
    addresses, names, sizes = image.symbols()
    return {
        DataObject(name=name, address=address, content=bytes(size))
        for address, name, size in zip(addresses, names, sizes, strict=True)
        if size and name in wanted and not name.startswith(_NOT_READ)
    }


def holders(image: Image, names: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """For each variable those variables that hold its address: a table in a table, an array of them."""
    spans = sorted(
        (one.address, one.address + len(one.content), name) for name in names for one in image.objects.get(name, ())
    )
    found: dict[str, set[str]] = {name: set() for _, _, name in spans}
    if not spans:
        return {}
    every = [one for many in image.objects.values() for one in many]
    words = np.frombuffer(b"".join(map(shifted.padded, every)), "<u8")
    ends = np.cumsum([len(one.content) + 7 >> 3 for one in every])
    place = np.searchsorted(np.array([low for low, _, _ in spans], np.uint64), words, side="right") - 1
    highs = np.array([high for _, high, _ in spans], np.uint64)
    for at in np.flatnonzero((place >= 0) & (words < highs[np.maximum(place, 0)])).tolist():
        holder, name = every[int(np.searchsorted(ends, at, side="right"))].name, spans[int(place[at])][2]
        if holder != name:
            found[name].add(holder)
    return {name: frozenset(held) for name, held in found.items()}


def led_to(before: Image, after: Image, name: str) -> frozenset[str]:
    """The functions whose addresses stand in words of a variable that differ, on either side: a table's entries."""
    found = set()
    for old, new in zip_longest(before.objects.get(name, ()), after.objects.get(name, ())):
        size = max(len(one.content) for one in (old, new) if one is not None)
        for at in range(0, size, 8):
            led = [_function(image, one, at) for image, one in ((before, old), (after, new))]
            found |= {one for one in led if one} if led[0] != led[1] else set()
    return frozenset(found)


def _function(image: Image, one: DataObject | None, at: int) -> str:
    """The function that begins where the word at ``at`` leads, "" where none does."""
    address = int.from_bytes(one.content[at : at + 8], "little") if one is not None else 0
    function = image.function_at(address)
    return fold(function.name.partition("#")[0]) if function is not None and function.address == address else ""


def other_entries_alone(before: Image, after: Image, name: str) -> bool:
    """Whether each word of a variable that differs led to one function and leads to another: who uses it calls both."""
    olds, news = before.objects.get(name, ()), after.objects.get(name, ())
    if [len(one.content) for one in olds] != [len(one.content) for one in news]:
        return False
    words = ((old, new, at) for old, new in zip(olds, news, strict=True) for at in _words(old.content, new.content))
    differing = [word for word in words if not _same_word(before, after, *word)]  # none where a text does
    return bool(differing) and all(
        _function(before, old, at) and _function(after, new, at) for old, new, at in differing
    )


def other_namesakes(before: Image, after: Image, names: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Of several variables of one name the functions that read another value, or more of them, than they did.

    Names of one variable alone are left out, and those of which one is held by another variable.
    """
    several = [name for name in names if max(len(image.objects.get(name, ())) for image in (before, after)) > 1]
    held = [holders(image, several) for image in (before, after)] if several else []
    plain = {name for name in several if not any(one.get(name) for one in held)}
    was, now = (_values_read(image, plain) for image in (before, after))
    found: dict[str, set[str]] = {name: set() for name in plain}
    for name, function, _ in (was - now) + (now - was):
        found[name].add(function)
    return {name: frozenset(functions) for name, functions in found.items()}


def _values_read(image: Image, names: Iterable[str]) -> Counter[tuple[str, str, bytes]]:
    """How many variables of a name and a value each function reads: (name, function, value)."""
    objects = [one for name in names for one in image.objects.get(name, ())]
    return Counter((one.name, function, _value(image, one)) for function, one in set(_reading(image, objects)))


def _value(image: Image, one: DataObject) -> bytes:
    """The content of a variable, with what its addresses lead to in place of them."""
    content, led = bytearray(shifted.padded(one)), []
    words = np.frombuffer(bytes(content), "<u8")
    for at in np.flatnonzero(shifted.like_addresses(words)).tolist():
        address = int(words[at])
        if (to := texts.at(image, address)) is None:
            to = image.name_of(address).encode()
        if to:
            led.append(b"%d %s" % (at, to))
            content[8 * at : 8 * at + 8] = bytes(8)
    return b"\0".join([bytes(content), *led])


def passed_on(image: Image, name: str, functions: Iterable[str]) -> bool:
    """Whether another variable has the address of ``name``, or one of ``functions`` takes it: else they read it."""
    if any(holders(image, [name]).values()):
        return True
    return any(takes(image, function, name) for function in functions)


def taken_in(image: Image, names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """For each function those others whose code takes its address, sorted; who only calls it does not.

    Functions whose address nobody takes are left out. x86-64, {} for others.
    """
    starts = [
        DataObject(name=name, address=part.address, content=b"\0")  # a name that is read where it begins
        for name in names
        for part in image.sources.get(name, ())
    ]
    if image.arch != "x86_64" or not starts:
        return {}
    found: dict[str, set[str]] = {}
    for function, one in set(_reading(image, starts)):
        if function != one.name and takes(image, function, one.name):
            found.setdefault(one.name, set()).add(function)
    return {name: tuple(sorted(functions)) for name, functions in found.items()}


def takes(image: Image, function: str, name: str) -> bool:
    """Whether the code of ``function`` has the address of ``name`` as a value."""
    taken = re.compile(rf"^lea\w* .*(?<![\w.]){re.escape(name)}(?!\w)|\$-?{re.escape(name)}(?!\w)")
    return any(taken.search(one.text) for part in image.sources.get(function, ()) for one in image.instructions(part))


def _references(image: Image, spans: list[tuple[int, int, DataObject]]) -> Iterator[tuple[int, DataObject]]:
    """(address of four bytes in code, variable) wherever they read like a way to one of ``spans``."""
    if not spans:
        return
    lows = np.array([low for low, _, _ in spans], np.int64)
    highs = np.array([high for _, high, _ in spans], np.int64)
    for address, text in image.pieces():
        for start in range(0, max(len(text) - 3, 0), _PIECE):
            part = np.frombuffer(text[start : start + _PIECE + 3], np.uint8)
            values = np.zeros(len(part) - 3, np.uint32)
            for byte in range(4):
                values |= part[byte : byte + len(values)].astype(np.uint32) << np.uint32(8 * byte)
            signed = values.view(np.int32).astype(np.int64)
            here = np.arange(len(values), dtype=np.int64) + _signed(address + start)
            for targets in (signed, *(here + 4 + tail + signed for tail in _TAILS)):
                place = np.searchsorted(lows, targets, side="right") - 1
                hits = np.flatnonzero((place >= 0) & (targets < highs[np.maximum(place, 0)]))
                for hit in hits.tolist():
                    yield address + start + hit, spans[int(place[hit])][2]


def _signed(address: int) -> int:
    """An address as the processor extends it: the kernel's half is negative."""
    return address - (1 << 64) if address >> 63 else address
