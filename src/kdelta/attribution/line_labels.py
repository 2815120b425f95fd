# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of two kernels by names that can be compared. Pure.

A line goes by what moves it most, and another release puts other fields beside that, or more work on them: then
``task_struct.cg_list`` "moves no longer" where it moves with ``task_struct.robust_list``, by which its line goes now.
Where only the offset is known, the same field goes by another one: ``kmalloc-512+0x100`` and ``kmalloc-512+0xc0``.
Where a struct grows, kmalloc takes its objects from another cache: ``kmalloc-192+0x0`` and ``kmalloc-256+0x0``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from kdelta.attribution import because
from kdelta.attribution.exact import MOVED_LEAST
from kdelta.model import Profile

_RENAMED = (  # fields, with the commit
    ("file.f_count", "file.f_ref"),  # v6.13, 90ee6ed776c0
    ("dentry.d_subdirs", "dentry.d_children"),  # v6.8, da549bdd15c2
)
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_KMALLOC = re.compile(r"((kmalloc(?:-[a-z]+(?:-\d\d)?)?)-\d+[kM]?)(\+0x[0-9a-f]+)$")  # cache, its kind, offset
_ALLOCATOR = re.compile(
    r"(?:__)?k[a-z]{0,3}(?:alloc|free)|kmem_cache_|\w*_slab(?:\b|_)|__(?:refill|pcs)_|memset|\w*_object\b"
)
_GONE = 0.05  # of how often it moves on the other side
_HARDLY = 0.5  # of how often it moves on the other side: a name that may have gone into another
_STILL = 0.1  # of that: it moves there, by another line's name


class _Side:
    """One kernel's lines over its seeds: transfers per operation; ``within``: [what moved][line], the mean."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        seeds = [because.moved_per_op(profile) for profile in profiles]
        names = {name for seed in seeds for name in seed}
        self.levels = {name: median(seed.get(name, 0.0) for seed in seeds) for name in names}
        self.within: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        for profile in profiles:
            for line in profile.moved:
                for name, transfers in line.others.items():
                    self.within[name][line.name] += transfers / profile.ops / len(profiles)


class _Cache:
    """One of kmalloc's caches on one kernel: how often its lines move, over all seeds, and who moves them."""

    def __init__(self, kind: str) -> None:
        self.kind, self.level = kind, 0.0
        self.movers: set[str] = set()


def _caches(profiles: Sequence[Profile]) -> dict[str, _Cache]:
    found: dict[str, _Cache] = {}
    for profile in profiles:
        for line in profile.moved:
            if match := _KMALLOC.match(line.name):
                cache = found.setdefault(match[1], _Cache(match[2]))
                cache.level += line.transfers / profile.ops / len(profiles)
                cache.movers |= {name for name in line.by if not (name[0] == "[" or _ALLOCATOR.match(name))}
    return found


def resized(before: Sequence[Profile], after: Sequence[Profile]) -> dict[str, str]:
    """Caches of kmalloc from which objects went, each with the one of its kind to which they went.

    There the lines of the one no longer move, those of the other do now, and one function at least moves both, which is
    none of the allocator's; where several would do, nobody knows which.
    """
    old, new = _caches(before), _caches(after)
    went, came = _left(old, new), _left(new, old)
    pairs = [
        (one, other)
        for one in went
        for other in came
        if old[one].kind == new[other].kind and old[one].movers & new[other].movers
    ]
    first, last = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    return {one: other for one, other in pairs if first[one] == last[other] == 1}


def _left(side: Mapping[str, _Cache], other: Mapping[str, _Cache]) -> list[str]:
    """Caches of which hardly a line moves on the other side."""
    levels = {name: other[name].level if name in other else 0.0 for name in side}
    return [name for name in side if side[name].level >= MOVED_LEAST and levels[name] < _GONE * side[name].level]


def _moved_to(profile: Profile, caches: Mapping[str, str]) -> Profile:
    """``profile`` with the lines of ``caches`` by the names of others, and so the locks in them."""

    def name(text: str) -> str:
        match = _KMALLOC.match(text)
        return caches.get(match[1], match[1]) + match[3] if match else text

    return replace(
        profile,
        moved=tuple(replace(line, name=name(line.name)) for line in profile.moved),
        waits=tuple(replace(wait, lock=name(wait.lock)) for wait in profile.waits),
    )


def _joins(side: _Side, other: _Side) -> list[tuple[str, str]]:
    """Lines of ``side`` that move less often on the other, with that in which they do."""
    found = []
    for name, level in side.levels.items():
        within = {line: often for line, often in other.within.get(name, {}).items() if often > _STILL * level}
        if level and within and other.levels.get(name, 0.0) < _HARDLY * level:
            found.append((name, max(within, key=lambda line: (within[line], line))))
    return found


def _renamed(side: _Side, other: _Side) -> list[tuple[str, str]]:
    """Fields that go by one name on the one side, and by another on the other."""
    return [
        pair
        for pair in _RENAMED
        for here, there in (pair, pair[::-1])
        if here in side.levels and there in other.levels
        if there not in side.levels and here not in other.levels
    ]


def _shifted(side: _Side, other: _Side) -> list[tuple[str, str]]:
    """Lines of one variable or slab cache that came, with those that went: its type is laid out otherwise.

    Which field of it a line has is not known there, so they are held against each other together.
    """
    found: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for index, (one, against) in enumerate(((side, other), (other, side))):
        for name, level in one.levels.items():
            if level and against.levels.get(name, 0.0) < _GONE * level:
                found[_OFFSET.sub("", name)][index].append(name)
    return [(went[0], name) for went, came in found.values() if went and came for name in (*went[1:], *came)]


def mapping(before: Sequence[Profile], after: Sequence[Profile]) -> dict[str, str]:
    """Of lines that are to be taken together: name -> the name for all, that of the one which moves most."""
    sides = _Side(before), _Side(after)
    level = {
        name: max(side.levels.get(name, 0.0) for side in sides)
        for name in sides[0].levels.keys() | sides[1].levels.keys()
    }
    one: dict[str, str] = {}
    for name, line in sorted(_joins(*sides) + _joins(sides[1], sides[0]) + _renamed(*sides) + _shifted(*sides)):
        hottest = max((one.get(name, name), one.get(line, line)), key=lambda each: (level.get(each, 0.0), each))
        gone = {one.get(name, name), one.get(line, line)}
        one |= dict.fromkeys((name, line, *(each for each, group in one.items() if group in gone)), hottest)
    return {name: told for name, told in one.items() if name != told}


def _named(profile: Profile, names: Mapping[str, str]) -> Profile:
    moved = tuple(replace(line, name=names.get(line.name, line.name)) for line in profile.moved)
    return replace(profile, moved=moved)


def alike(before: Sequence[Profile], after: Sequence[Profile]) -> tuple[list[Profile], list[Profile]]:
    """The profiles of all seeds of two kernels, with one name for lines into which a field went and that it left."""
    if caches := resized(before, after):
        before = [_moved_to(profile, caches) for profile in before]
    names = mapping(before, after)
    if not names:
        return list(before), list(after)
    return [_named(profile, names) for profile in before], [_named(profile, names) for profile in after]
