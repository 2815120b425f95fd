# SPDX-License-Identifier: GPL-2.0-or-later
"""What a patch changed in the machine code, and whose execution means that the change is executed. Pure.

A function that was inlined has no code of its own: its hosts differ instead, and are what is listed. Data counts
through the functions that have its address, a new function through those that call it. Where only a text differs to
which a function leads (a format, a message), that is the function's change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kdelta.attribution import alternatives, copied, data, placed, texts
from kdelta.attribution.code import CodeDiff
from kdelta.attribution.disassembly import Function, Image
from kdelta.attribution.later import TO_RCU

_WHOLE_SHARE = 0.05  # of all functions: so many differ through a header or an option, not where a patch was written
_WHOLE_COUNT = 200  # and these are few enough to be told one by one

_DEEPEST = 3  # tables in tables
_TOLD = 2  # functions in a title
_FEW_CHANGES = 100  # of more than so many it is not told who hands them to RCU
NAMESAKES = "functions of this name"
LATER = "it may run later, outside of what is counted"
_KINDS = {
    "patched": "patched at boot",
    "boot data": "data",
    "copied": "initial values of a local variable",
    "initcall": "called at another time of the start",
    "vdso": "the vDSO, which runs in programs and not in the kernel",
}
_NO_CODE = ("data", "text", "copied", "boot data", "initcall", "vdso")
# include/linux/init.h, __initcall_id: module, counter and line; then the function and its level
_INITCALL = re.compile(r"__initcall__kmod_(\w+?)__\d+_\d+_(\w+?)(early|rootfs|[0-7]s?)$")
_BOOT = (".init.", ".exit.")  # include/linux/init.h

Kind = Literal["code", "new", "gone", "data", "text", "copied", "patched", "boot data", "initcall", "vdso"]
# copied: initial values of a local variable; patched: other instructions, at boot; boot data: thrown away once the
# kernel has started; vdso: an ELF image as data


class Change(Struct, frozen=True, kw_only=True):
    """A function or variable that differs. ``hosts``: functions of the baseline that stand for it when executed.

    ``boot_only``: it is thrown away once the kernel has started (``__init``), or is in no kernel that runs.
    ``at_start``: the kernel's start calls it as well (``starting.py``), where that was asked.
    ``sets``: variables that such code names; the functions that use them are among the hosts.
    ``handed_on``: who has a pointer to it may use what differs, and is not among the hosts.
    ``taken_in``: whose code takes the address of a new function that nothing calls by name: call_rcu(), a work; of one
    that is not new, whose code hands it to call_rcu().
    ``namesakes``: how many of how many functions of this name differ, where not all of them do: cases that execute it
    may execute another one.
    """

    name: str
    kind: Kind
    hosts: tuple[str, ...]
    boot_only: bool = False
    at_start: bool = False
    sets: tuple[str, ...] = ()
    handed_on: bool = False
    taken_in: tuple[str, ...] = ()
    namesakes: tuple[int, int] = (0, 0)

    @property
    def in_no_case(self) -> bool:
        """Whether that no case executes it is known without counting: nothing does, or the kernel's start alone."""
        by_pointer = self.handed_on or self.taken_in
        return self.kind != "data" and not by_pointer and not self.sets and (self.boot_only or not self.hosts)

    @property
    def by_pointer(self) -> bool:
        """Whether it is data that no code of the running kernel names: who has a pointer to it is not known."""
        return self.kind == "data" and (self.boot_only or not self.hosts)

    @property
    def title(self) -> str:
        """Its name, with what it is where that is no function of both kernels."""
        words: list[str] = [_KINDS.get(self.kind, self.kind)] if self.kind != "code" else []
        alone = (self.by_pointer and not self.sets) or (self.handed_on and not self.hosts)
        words += ["boot only"] if self.boot_only and not alone else []
        words += ["used by pointer" + (" alone" if alone else "")] if alone or self.handed_on else []
        words += ["called at boot"] if self.at_start and not self.boot_only else []
        words += [f"may set {_few(self.sets)}"] if self.sets else []
        words += [f"{self.namesakes[0]} of {self.namesakes[1]} {NAMESAKES}"] if self.namesakes[1] else []
        words += [f"its address is taken in {_few(self.taken_in)}: {LATER}"] if self.taken_in else []
        return f"{self.name} ({', '.join(words)})" if words else self.name


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_TOLD]) + (f" and {len(names) - _TOLD} more" if len(names) > _TOLD else "")


class Changes(Struct, frozen=True, kw_only=True):
    """All that differs. ``whole``: so much does that it is no matter of single functions.

    ``sizes_only``: instructions were not compared, as of a distribution's kernels; what kept its size is not seen.
    """

    changes: tuple[Change, ...]
    functions: int
    whole: bool = False
    boot_patched: bool = False  # instructions that the kernel patches in at boot differ
    shifted: bool = False  # nothing differs but where it lies,
    elsewhere: tuple[str, ...] = ()  # these among other things than before
    sizes_only: bool = False
    lined: tuple[str, ...] = ()  # functions that differ in line numbers alone, which are no changes

    @property
    def nothing(self) -> bool:
        """Whether both kernels run the same instructions on the same data, as far as all of it was compared."""
        return not self.changes and not self.boot_patched and not self.sizes_only


def find(
    before: Image, after: Image, diff: CodeDiff, callers: Callable[[str], Iterable[str]], *, sizes_only: bool = False
) -> Changes:
    """What differs between two images whose functions are compared in ``diff``; ``callers`` are those of ``after``."""
    found = [_function(one.name, before, after, callers) for one in diff.functions]
    if not sizes_only:
        variables = _data(before, after, {one.name for one in diff.functions}, callers)
        led = {name for one in variables for name in data.led_to(before, after, one.name)}
        alone = {one.name for one in found if one.kind == "new" and not one.hosts and not _boots(after, one.name)}
        taken = data.taken_in(after, alone)
        codes = [one.name for one in found if one.kind == "code"]
        rcu = _called_by_rcu(after, codes, callers) if len(codes) <= _FEW_CHANGES else {}
        found = [replace(one, taken_in=taken.get(one.name, rcu.get(one.name, ()))) for one in found]
        found = [replace(one, handed_on=not one.hosts and one.name in led) for one in found] + variables
        found += _patched(before, after, diff)
        found += _texts(before, after, {one.name for one in found})
        found += _copies(before, after, {one.name for one in found})
        found += _at_another_level(before, after, {one.name for one in found})
        found += [_at_boot(name, who, before) for name, who in data.changed_at_boot(before, after).items()]
    alike = not (found or sizes_only or diff.alternatives_differ)
    shifted, elsewhere = placed.moved(before, after) if alike else (False, ())
    found = [replace(one, boot_only=_boot_only(one, before, after)) for one in found]
    total = len(before.sources) - len(before.aliases)
    differing = sum(one.kind not in _NO_CODE for one in found)
    whole = differing > max(_WHOLE_COUNT, _WHOLE_SHARE * total)
    return Changes(
        changes=tuple(found if sizes_only or whole else _with_users(found, before, after)),
        functions=total,
        whole=whole,
        boot_patched=diff.alternatives_differ,
        shifted=shifted,
        elsewhere=elsewhere,
        sizes_only=sizes_only,
    )


def _called_by_rcu(
    after: Image, names: Iterable[str], callers: Callable[[str], Iterable[str]]
) -> dict[str, tuple[str, ...]]:
    """Of changed functions those that only RCU calls, after a grace period, with who hands them to call_rcu()."""
    taken = data.taken_in(after, (name for name in names if not any(callers(name))))
    found = {name: tuple(one for one in who if _hands_on(after, one)) for name, who in taken.items()}
    return {name: who for name, who in found.items() if who}


def _hands_on(image: Image, function: str) -> bool:
    """Whether a function calls RCU, or jumps there at its end; so many do that graphs of calls leave it out."""
    return any(one.target in TO_RCU for part in image.sources[function] for one in image.instructions(part))


def _boot_only(one: Change, before: Image, after: Image) -> bool:
    """Whether the kernel's start alone executes it; a new function that nobody calls may be an initcall."""
    if one.kind == "boot data":
        return True
    if one.kind == "new" and not one.hosts:
        return _boots(after, one.name)
    return bool(one.hosts) and all(_boots(before, host) for host in one.hosts)


def _with_users(found: Sequence[Change], before: Image, after: Image) -> list[Change]:
    """What runs at boot alone counts through the functions that use what it may set: a slab cache, a default."""
    code = {one.name: _code_of(one, before) for one in found}
    names = {name for many in code.values() for name in many}
    sets = [data.set_by(image, sorted(names & image.sources.keys())) for image in (before, after)] if names else []
    out = []
    for one in found:
        used: dict[str, set[str]] = {}
        for name, users in (pair for side in sets for of in code[one.name] for pair in side.get(of, {}).items()):
            running = {_own(before, user) for user in users if user in before.sources and not _boots(before, user)}
            if running:
                used.setdefault(name, set()).update(running)
        hosts = {*one.hosts, *(user for users in used.values() for user in users)}
        out.append(replace(one, sets=tuple(sorted(used)), hosts=tuple(sorted(hosts))) if used else one)
    return out


def _code_of(one: Change, before: Image) -> tuple[str, ...]:
    """The functions of the kernel's start that do otherwise than they did by a change.

    Of data that stays when the kernel has started those that read it, not those that hand a pointer to it on.
    """
    if not one.boot_only or one.kind in ("text", "copied", "patched"):
        return ()
    if one.kind == "data":
        return tuple(host for host in one.hosts if not data.takes(before, host, one.name))
    return one.hosts if one.kind == "boot data" else (one.name,)


def _at_another_level(before: Image, after: Image, differing: Collection[str]) -> list[Change]:
    """The functions that the kernel's start calls earlier or later: their code is the same, what it meets is not."""
    was, now = _levels(before), _levels(after)
    names = {function for module, function in was.keys() & now.keys() if was[module, function] != now[module, function]}
    both = names & before.sources.keys() & after.sources.keys() - {*differing}
    return [Change(name=name, kind="initcall", hosts=(_own(before, name),)) for name in sorted(both)]


def _levels(image: Image) -> dict[tuple[str, str], frozenset[str]]:
    found: dict[tuple[str, str], frozenset[str]] = {}
    for match in filter(None, map(_INITCALL.match, image.symbols()[1])):
        found[match[1], match[2]] = found.get((match[1], match[2]), frozenset()) | {match[3]}
    return found


def _at_boot(name: str, readers: Iterable[str], before: Image) -> Change:
    return Change(
        name=name, kind="boot data", hosts=tuple(sorted({_own(before, one) for one in readers} & before.sources.keys()))
    )


def _boots(image: Image, function: str) -> bool:
    """Whether all code of a function lies where the kernel's start alone can execute it."""
    return all(part.section.startswith(_BOOT) for part in image.sources.get(function, ()))


def _function(name: str, before: Image, after: Image, callers: Callable[[str], Iterable[str]]) -> Change:
    if name in before.sources:
        if name not in after.sources:
            return Change(name=name, kind="gone", hosts=(_own(before, name),))
        hosts = (_own(before, name),)
        return Change(name=name, kind="code", hosts=hosts, namesakes=_namesakes(name, before, after))
    return Change(name=name, kind="new", hosts=_hosts(name, before, callers))


def _namesakes(name: str, before: Image, after: Image) -> tuple[int, int]:
    """Of how many functions of one name how many differ: static ones of several files; (0, 0) where all do."""
    was, now = ([_texts_of(image, part) for part in _whole(image, name)] for image in (before, after))
    differing = sum((Counter(now) - Counter(was)).values())
    return (differing, len(now)) if len(was) == len(now) > differing > 0 else (0, 0)


def _whole(image: Image, name: str) -> list[Function]:
    """The functions whose symbol is ``name``, without what the compiler split off."""
    return [part for part in image.sources[name] if part.name.partition("#")[0] == name]


def _texts_of(image: Image, part: Function) -> tuple[str, ...]:
    return tuple(one.text for one in image.instructions(part))


def _patched(before: Image, after: Image, diff: CodeDiff) -> list[Change]:
    """The functions into which another thing is patched at boot, and that are compiled alike."""
    names = (alternatives.differing(before, after) or frozenset()) if diff.alternatives_differ else frozenset()
    names -= {one.name for one in diff.functions}
    return [Change(name=name, kind="patched", hosts=(_own(before, name),)) for name in sorted(names)]


def _texts(before: Image, after: Image, differing: Collection[str]) -> list[Change]:
    """The functions of both kernels that differ in a text alone."""
    both = before.sources.keys() & after.sources.keys()
    names = texts.other_in_code(before, after, both - before.aliases.keys() - after.aliases.keys() - {*differing})
    return [Change(name=name, kind="text", hosts=(name,)) for name in sorted(names)]


def _copies(before: Image, after: Image, differing: Collection[str]) -> list[Change]:
    """The functions of both kernels that differ in the initial values of a local variable alone."""
    both = before.sources.keys() & after.sources.keys()
    names = both - before.aliases.keys() - after.aliases.keys() - {*differing}
    return [
        Change(name=name, kind="copied", hosts=(name,))
        for name in sorted(copied.other(before, after, names, data.same_object))
    ]


def _own(image: Image, name: str) -> str:
    """The name by which a function of ``image`` is counted."""
    return image.aliases.get(name, name)


def _hosts(name: str, before: Image, callers: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """The functions of the baseline that call the new function ``name``, directly or through other new ones."""
    hosts, seen, ring = set(), {name}, [name]
    while ring:
        for caller in callers(ring.pop()):
            if caller in before.sources:
                hosts.add(_own(before, caller))
            elif caller not in seen:
                seen.add(caller)
                ring.append(caller)
    return tuple(sorted(hosts))


def _data(
    before: Image, after: Image, changed: Collection[str], callers: Callable[[str], Iterable[str]]
) -> list[Change]:
    """Variables count through who reads them or a table that holds them, and through the functions they lead to.

    Of namesakes (the __already_done of each WARN_ONCE) a function that did not change reads the one that it read.
    """
    names = data.changed(before, after)
    was, now = _users(before, names), _users(after, names)
    others = data.other_namesakes(before, after, names)
    found = []
    for name in names:
        if data.is_library(before, after, name):  # who maps it executes none of it
            found.append(Change(name=name, kind="vdso", hosts=()))
            continue
        readers = was.get(name, set()), now.get(name, set())
        either = readers[0] | readers[1]
        if name in others:
            either = {one for one in either if one in changed or one in others[name]}
        new = (_hosts(one, before, callers) for one in either - before.sources.keys())
        every = {*either, *(host for hosts in new for host in hosts), *data.led_to(before, after, name)}
        hosts = {_own(before, one) for one in every & before.sources.keys()}
        passed = any(
            data.passed_on(image, name, one & either) for image, one in zip((before, after), readers, strict=True)
        )
        handed_on = passed and not data.other_entries_alone(before, after, name)
        found.append(Change(name=name, kind="data", hosts=tuple(sorted(hosts)), handed_on=handed_on))
    return found


def _users(image: Image, names: Sequence[str]) -> dict[str, set[str]]:
    """For each variable the functions that have its address, or that of a variable that holds it, and so on."""
    held: dict[str, frozenset[str]] = {}
    ring = set(names)
    for _ in range(_DEEPEST):
        found = data.holders(image, ring)
        held |= found
        ring = {one for holders in found.values() for one in holders} - held.keys()
    readers = data.readers(image, {*names, *held, *ring})
    return {name: {f for one in _above(name, held) for f in readers.get(one, ())} for name in names}


def _above(name: str, held: Mapping[str, frozenset[str]]) -> set[str]:
    """A variable, and all that hold it directly or through others."""
    seen, ring = {name}, [name]
    while ring:
        more = held.get(ring.pop(), frozenset()) - seen
        seen |= more
        ring += more
    return seen
