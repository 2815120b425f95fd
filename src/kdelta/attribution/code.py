# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine code of two kernels: which functions differ, by how much, and what was inlined. Pure over bytes.

A function is what the source calls so, with all parts that the compiler made of it, as everywhere in kdelta.

Functions are equal when their instructions are, with addresses replaced by what they point at; so a function that
only moved is equal. Data is not code: a text or table with new content changes no function. The size summary follows
the kernel's scripts/bloat-o-meter.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from kdelta.attribution import alternatives, shifted
from kdelta.attribution.disassembly import Function, Image, Instruction
from kdelta.errors import UserError
from kdelta.kernel.spelling import fold

_CODE = tuple(f"[{name}" for name in shifted.CODE)
_MASK = 0xFFFFFFFFFFFFFFFF
_NUMBER = re.compile(r"\.\d+|#\d+")
_ROUNDING = (0xFFF, 0x1FFFFF, -1)  # PFN_ALIGN(&symbol), &symbol - 1 and the like: it may be in no section
_UNNAMED = ("[.altinstr", "[__bug_table]")
_FAR = 0x10000  # no structure is so large, and no function
_LABEL = re.compile(r"\bL\d+\b")
_NOP = re.compile(r"\bnop|^xchg\w* +%ax, *%ax|^int3")
_LEAVES = re.compile(r"(jmp|ret|ud2|int3|b\s|br\s|brk)")  # nothing goes on behind it
_REP = re.compile(r"^rep\w* (?:stos|movs)[bwlq]")


class FunctionCode(Struct, frozen=True, kw_only=True):
    """One function that differs. Sizes in bytes, None where the kernel lacks it; ``rep`` are string instructions."""

    name: str
    size_before: int | None
    size_after: int | None
    instructions_before: int = 0
    instructions_after: int = 0
    rep_before: tuple[str, ...] = ()
    rep_after: tuple[str, ...] = ()
    calls_gone: tuple[str, ...] = ()
    calls_new: tuple[str, ...] = ()
    note: str = ""

    @property
    def delta(self) -> int:
        return (self.size_after or 0) - (self.size_before or 0)


class CodeDiff(Struct, frozen=True, kw_only=True):
    """All functions that differ, the largest change of size first. Totals are bytes of all functions."""

    functions: tuple[FunctionCode, ...]
    total_before: int
    total_after: int
    alternatives_differ: bool = False

    @property
    def identical(self) -> bool:
        """No instruction of any function differs, nor of what the kernel patches in at boot."""
        return not self.functions and not self.alternatives_differ


def _signed32(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def alike(before: Image, after: Image, old: int, new: int) -> bool:
    """Whether two addresses are the same thing by some name of theirs; padding between functions is none."""
    shared = before.names_of(old & _MASK) & after.names_of(new & _MASK)
    return any(name and not name.startswith(_CODE) for name in shared)


def _one_symbol(before: Image, after: Image, old: int, new: int) -> bool:
    """Whether two addresses are the same place of one symbol: of a section alone many numbers would be."""
    named = before.has_symbol(old & _MASK) and after.has_symbol(new & _MASK)
    return named and alike(before, after, old, new)


def _one_way(before: Image, after: Image, old: int, new: int) -> bool:
    """As ``_one_symbol``; or both are where no symbol is: what static_cpu_has() jumps to, or what a WARN() hands on."""
    shared = before.names_of(old & _MASK) & after.names_of(new & _MASK)
    return _one_symbol(before, after, old, new) or any(name.startswith(_UNNAMED) for name in shared)


def _counts_from_here(code: bytes, at: int) -> bool:
    """Whether the operand at ``at`` may count from where its instruction ends: of a call, a jump, or by %rip.

    Of any other number that would be chance: 13 and 12, from where they stood, led to one hole among the data.
    """
    last, before = code[at - 1] if at else 0, code[at - 2] if at > 1 else 0
    return last in (0xE8, 0xE9) or (before == 0x0F and last & 0xF0 == 0x80) or last & 0xC7 == 0x05


def _explained(before: Image, after: Image, old: Function, new: Function, at: int) -> int:
    """Length from ``at`` on of an x86 operand that differs only because things moved; 0 if it is a real change.

    The four bytes may start up to three before the first that differs, and an immediate may follow them.
    """
    for start in range(at, max(-1, at - 4), -1):
        old_value, new_value = _signed32(old.code[start : start + 4]), _signed32(new.code[start : start + 4])
        if start + 4 > old.size:
            continue
        counted = _counts_from_here(old.code, start) and _counts_from_here(new.code, start)
        for behind in shifted.IMMEDIATES if counted else ():
            end = start + 4 + behind
            if _one_way(before, after, old.address + end + old_value, new.address + end + new_value):
                return start + 4 - at
        if old_value < 0 and new_value < 0 and alike(before, after, old_value, new_value):
            return start + 4 - at
        rounded = [(old_value - by, new_value - by) for by in _ROUNDING if max(old_value, new_value) < 0]
        own = (old.address + old_value, new.address + new_value)  # rva() of arch/x86/platform/pvh/head.S
        far = [own] if min(abs(old_value), abs(new_value)) > _FAR else []
        if any(_one_symbol(before, after, *pair) for pair in (*rounded, *far)):
            return start + 4 - at
        # physical addresses, such as that of _edata - 1
        if min(old_value, new_value) > shifted.PHYSICAL and any(
            _one_symbol(before, after, shifted.KERNEL_MAP + old_value + by, shifted.KERNEL_MAP + new_value + by)
            for by in (0, 1)
        ):
            return start + 4 - at
    return 0


def _only_moved(before: Image, after: Image, old: Function, new: Function) -> bool:
    """Whether all bytes that differ are addresses of the same things; cheap, and never true for a real change."""
    if old.size != new.size:
        return False
    if old.code == new.code:
        return True
    if before.arch != "x86_64":
        return False
    at = 0
    while at < old.size:
        if old.code[at] == new.code[at]:
            at += 1
            continue
        length = _explained(before, after, old, new, at)
        if not length:
            return False
        at += length
    return True


def names_of_both(before: Image, after: Image) -> set[str]:
    """All functions of two images; what is an alias wherever it is there is told by its function's own name."""
    return {name for image in (before, after) for name in image.sources.keys() - image.aliases.keys()}


def _differing(before: Image, after: Image) -> list[str]:
    """Names of the functions that have other parts, or parts with other instructions; sorted."""
    names = names_of_both(before, after)
    found, of, pairs = set(), [], []
    for name in names:
        old, new = before.sources.get(name, ()), after.sources.get(name, ())
        if len(old) != len(new):
            found.add(name)
            continue
        for was, now in zip(old, new, strict=True):
            if was.code != now.code:
                of.append(name)
                pairs.append((was, now))
    quick = shifted.only_shifted(pairs, shifted.things(before, after)) if before.arch == "x86_64" else set()
    left = (index for index in range(len(pairs)) if index not in quick)
    return sorted(found | {of[index] for index in left if not _same_part(before, after, *pairs[index])})


def _same_part(before: Image, after: Image, old: Function, new: Function) -> bool:
    return _only_moved(before, after, old, new) or (
        old.size == new.size and before.listing(old, strings=False) == after.listing(new, strings=False)
    )


class _Placed(Struct, frozen=True):
    """An instruction of a function: where it is, its text without numbers of labels, and which one it may jump to."""

    part: str
    offset: int
    text: str
    to: int | None


def _placed(image: Image, name: str) -> list[_Placed]:
    found: list[_Placed] = []
    for part in image.sources.get(name, ()):
        code = image.instructions(part)
        labels = {one.label: len(found) + index for index, one in enumerate(code) if one.label}
        for one in code:
            label = _LABEL.search(one.text)
            to = labels.get(label[0]) if label else None
            found.append(_Placed(part.name.partition("#")[0], one.offset, _LABEL.sub("L", one.text), to))
    return found


def same_but(before: Image, after: Image, name: str, same: Callable[[str, str], bool]) -> bool:
    """Whether a function has the same instructions on both sides, but for texts of which ``same`` takes both."""
    was, now = _placed(before, name), _placed(after, name)
    pairs = zip(was, now, strict=False)
    return len(was) == len(now) and all(a.to == b.to and (a.text == b.text or same(a.text, b.text)) for a, b in pairs)


def changed_places(before: Image, after: Image, name: str) -> frozenset[tuple[str, int]]:
    """(symbol, offset) of the instructions of a function that ``after`` has otherwise; where one was left out, of that
    behind it. A jump that leads elsewhere is one, a jump to what is itself changed is not.
    """
    was, now = _placed(before, name), _placed(after, name)
    old_texts, new_texts = ([one.text for one in side] for side in (was, now))
    kept: dict[int, int] = {}
    changed: set[int] = set()
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old_texts, new_texts, autojunk=False).get_opcodes():
        if tag == "equal":
            kept |= zip(range(i1, i2), range(j1, j2), strict=True)
        else:
            changed |= set(range(j1, max(j2, j1 + 1)))
    jumps = ((was[i].to, now[j].to, j) for i, j in kept.items())
    elsewhere = {
        j for old, new, j in jumps if new not in changed and new != (kept.get(old, -1) if old is not None else None)
    }
    last = len(now) - 1
    found = {min(j, last) for j in changed | elsewhere} - _fillers(new_texts)
    return frozenset((now[j].part, now[j].offset) for j in found if now)


def left_out(before: Image, after: Image, name: str) -> frozenset[tuple[str, int]]:
    """(symbol, offset) of the instructions of a function that ``after`` does not have, nor others in their place."""
    was, now = _placed(before, name), _placed(after, name)
    old_texts, new_texts = ([one.text for one in side] for side in (was, now))
    ways = difflib.SequenceMatcher(None, old_texts, new_texts, autojunk=False).get_opcodes()
    left = {i for tag, i1, i2, _, _ in ways if tag == "delete" for i in range(i1, i2)} - _fillers(old_texts)
    return frozenset((was[i].part, was[i].offset) for i in left)


def _fillers(texts: Sequence[str]) -> set[int]:
    """Which instructions only align what is behind them, and never run."""
    found: set[int] = set()
    for index, text in enumerate(texts):
        if index and _NOP.search(text) and (index - 1 in found or _LEAVES.match(texts[index - 1])):
            found.add(index)
    return found


def _reps(code: Iterable[Instruction]) -> tuple[str, ...]:
    return tuple(match[0] for one in code if (match := _REP.match(one.text)))


def _calls(code: Iterable[Instruction], caller: str) -> set[str]:
    return {fold(one.target) for one in code if one.calls} - {caller}


def size_of(parts: Iterable[Function]) -> int | None:
    """Bytes of all parts of a function; None where there is none."""
    sizes = [part.size for part in parts]
    return sum(sizes) if sizes else None


def _changed(before: Image, after: Image, name: str) -> FunctionCode:
    old, new = before.sources.get(name, ()), after.sources.get(name, ())
    was = [one for part in old for one in before.instructions(part)]
    now = [one for part in new for one in after.instructions(part)]
    return FunctionCode(
        name=name,
        size_before=size_of(old),
        size_after=size_of(new),
        instructions_before=len(was),
        instructions_after=len(now),
        rep_before=_reps(was),
        rep_after=_reps(now),
        calls_gone=tuple(sorted(_calls(was, name) - _calls(now, name))) if old and new else (),
        calls_new=tuple(sorted(_calls(now, name) - _calls(was, name))) if old and new else (),
    )


def _note(one: FunctionCode, others: list[FunctionCode]) -> str:
    """What became of a function, as far as the calls around it show."""
    if one.size_after is None:
        into = [other.name for other in others if one.name in other.calls_gone]
        return f"gone; inlined into {', '.join(into[:3])}?" if into else "gone"
    if one.size_before is None:
        out_of = [other.name for other in others if one.name in other.calls_new]
        return f"new; called by {', '.join(out_of[:3])}" if out_of else "new"
    if len(one.rep_after) > len(one.rep_before):
        added = list(one.rep_after)
        for rep in one.rep_before:
            if rep in added:
                added.remove(rep)
        return f"{', '.join(sorted(set(added)))} introduced"
    return ""


def compare(before: Image, after: Image) -> CodeDiff:
    """Functions whose instructions differ between two images.

    Raises:
        UserError: images of two architectures.
    """
    if before.arch != after.arch:
        raise UserError(f"machine code of {before.arch} and {after.arch} cannot be compared")
    differing = [_changed(before, after, name) for name in _differing(before, after)]
    noted = [
        FunctionCode(**{**{f: getattr(one, f) for f in one.__struct_fields__}, "note": _note(one, differing)})
        for one in differing
    ]
    return CodeDiff(
        functions=tuple(sorted(noted, key=lambda one: (-abs(one.delta), one.name))),
        total_before=sum(function.size for function in before.functions.values()),
        total_after=sum(function.size for function in after.functions.values()),
        alternatives_differ=alternatives.differ(before, after),
    )


def identical_code(baseline: bytes, patched: bytes) -> bool:
    """Whether two vmlinux files run the same instructions: build ids, versions, line numbers and layout are ignored.

    Raises:
        UserError: no vmlinux with symbols.
    """
    return compare(Image(baseline, "baseline"), Image(patched, "patched")).identical


def summary(diff: CodeDiff, limit: int = 40) -> str:
    """Text in the style of bloat-o-meter: counts, one line a function, the totals."""
    if diff.identical:
        return "machine code: identical\n"
    both = [one for one in diff.functions if one.size_before is not None and one.size_after is not None]
    added = sum(one.size_before is None for one in diff.functions)
    removed = sum(one.size_after is None for one in diff.functions)
    grown = [one.delta for one in diff.functions if one.delta > 0]
    shrunk = [one.delta for one in diff.functions if one.delta < 0]
    same_size = sum(one.delta == 0 for one in both)
    lines = [
        f"add/remove: {added}/{removed} grow/shrink: {sum(o.delta > 0 for o in both)}/{sum(o.delta < 0 for o in both)}"
        f" same size: {same_size} up/down: {sum(grown)}/{sum(shrunk)} ({sum(grown) + sum(shrunk):+d})",
        f"{'Function':<40} {'old':>7} {'new':>7} {'delta':>7}",
    ]
    for one in diff.functions[:limit]:
        old, new = ("-" if size is None else str(size) for size in (one.size_before, one.size_after))
        lines.append(f"{one.name:<40} {old:>7} {new:>7} {one.delta:>+7}  {one.note}".rstrip())
    if len(diff.functions) > limit:
        lines.append(f"... and {len(diff.functions) - limit} more")
    if diff.alternatives_differ:
        lines.append("alternatives (instructions patched at boot) differ too")
    change = (diff.total_after - diff.total_before) / diff.total_before * 100 if diff.total_before else 0.0
    lines.append(f"Total: Before={diff.total_before}, After={diff.total_after}, chg {change:+.2f}%")
    return "\n".join(lines) + "\n"


def function_diff(before: Image, after: Image, name: str, context: int = 4) -> str:
    """Disassembly of one function before and after as a unified diff, addresses as names; "" where it is equal.

    ``name`` may be spelt as the source or as the compiler does; all parts of the function are shown.

    Raises:
        UserError: neither kernel has such a function.
    """
    source = fold(name)
    old, new = before.sources.get(source, ()), after.sources.get(source, ())
    if not old and not new:
        near = difflib.get_close_matches(source, {*before.sources, *after.sources}, 3)
        raise UserError(f"function {name!r}: in neither kernel" + (f"; nearest: {', '.join(near)}" if near else ""))
    lines = [f"--- {source} ({size_of(old) or 0} bytes)", f"+++ {source} ({size_of(new) or 0} bytes)"]
    hunks = _unified(_listing(before, old), _listing(after, new), context)
    return "".join(f"{line}\n" for line in [*lines, *hunks]) if hunks else ""


def _listing(image: Image, parts: tuple[Function, ...]) -> list[str]:
    """The disassembly of a function, its further parts under their own names."""
    lines = [] if not parts else image.listing(parts[0])
    for part in parts[1:]:
        lines += [f"{_NUMBER.sub('', part.name)}:", *image.listing(part)]
    return lines


def _unified(old: list[str], new: list[str], context: int) -> list[str]:
    """Hunks of a unified diff; a jump is no difference where only the numbers of the labels shifted."""
    before, after = ([_LABEL.sub("L", line) for line in lines] for lines in (old, new))
    out = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
        _, i1, _, j1, _ = group[0]
        _, _, i2, _, j2 = group[-1]
        out.append(f"@@ -{i1 + 1},{i2 - i1} +{j1 + 1},{j2 - j1} @@")
        for tag, from_old, to_old, from_new, to_new in group:
            if tag == "equal":
                out += [f" {line}" for line in new[from_new:to_new]]
            else:
                out += [f"-{line}" for line in old[from_old:to_old]]
                out += [f"+{line}" for line in new[from_new:to_new]]
    return out
