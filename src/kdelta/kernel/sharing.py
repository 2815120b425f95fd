# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a diff is about memory that CPUs share: locks, atomics, counters per CPU, cache lines, structs, variables.

On one CPU nothing moves, so no count of one says what such a change does. Pure; told by the names that changed lines
have (Documentation/atomic_t.txt, core-api/this_cpu_ops.rst, memory-barriers.txt, RCU/, locking/locktypes.rst).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from kdelta.kernel import touches

_ATOMIC = (
    r"(?:raw_|arch_)?atomic(?:64|_long)?_\w+|refcount_\w+|kref_\w+|(?:raw_|arch_)?(?:try_)?(?:cmp)?xchg(?:64|128)?(?:_\w+)?"
    r"|(?:test_and_)?(?:set|clear|change)_bit(?:_\w+)?|llist_\w+|lockref_\w+"
)
_PER_CPU = (
    r"(?:raw_|__)?this_cpu_\w+|(?:raw_)?per_cpu(?:_ptr)?|(?:get|put)_cpu_(?:var|ptr)|alloc_percpu\w*|percpu_\w+"
    r"|DE(?:FINE|CLARE)_PER_CPU\w*"
)
_LINES = r"_{2,4}cacheline_\w+|CACHELINE_PADDING|SLAB_HWCACHE_ALIGN|__read_mostly|__percpu"
_ORDER = r"(?:READ|WRITE)_ONCE|data_race|smp_(?!processor_id|call)\w+"
_NAMES = re.compile(rf"\b(?:(?:{_ATOMIC}|{_PER_CPU}|{_ORDER})(?=\s*\()|(?:{_LINES})\b)")
_FILE = re.compile(r"\+\+\+ (?:b/)?(\S+)")
_OF_LOCKS = re.compile(
    r"kernel/locking/|lib/(?:lockref|percpu_counter|percpu-refcount|llist)\.c$"
)  # all that they hold
_HUNK = re.compile(r"@@ [^@]* @@ ?(.*)")
_STRUCT = re.compile(r"(?:typedef\s+)?((?:struct|union)\s+\w+)\s*\{")
_ATTRIBUTE = re.compile(r"\b_\w+\([^()]*\)")
_TOKEN = re.compile(r"\w+|\S")
_NO_VARIABLE = frozenset({"extern", "typedef", "return", "goto", "else", "case", "default"})
_TAGS = frozenset({"struct", "union", "enum"})
_MADE = re.compile(r"\bDEFINE_(?:RAW_SPINLOCK|SPINLOCK|RWLOCK|MUTEX|SEQLOCK|SEQCOUNT|IDA|IDR|XARRAY\w*)\((\w+)")
_WORDS = re.compile(r"[\w\s]*")
_SETTLED = re.compile(r"\b(?:__initdata|__initconst|__ro_after_init)\b")  # nobody writes it while tasks run
_READS = frozenset({"rcu", "srcu", "lockdep", "lockable"})  # their readers write no line of others'


class _Line(Struct, frozen=True):
    """A changed line of C, with its sign apart; ``struct``: within the definition of which it stands."""

    path: str
    sign: str
    text: str
    struct: str

    @property
    def head(self) -> str:
        """What it says of a variable but for its value."""
        return self.text.partition("=")[0].strip()


def _changed(lines: Iterable[str]) -> Iterator[_Line]:
    path, code, struct = "", False, ""
    for line in lines:
        text = line[1:]
        if match := _FILE.match(line):
            path, code, struct = match[1], match[1].endswith((".c", ".h")), ""
        elif match := _HUNK.match(line):
            struct = opened[1] if (opened := _STRUCT.match(match[1])) else ""
        elif code and line[:1] in (" ", "+", "-") and not line.startswith("--- "):
            if opened := _STRUCT.match(text):
                struct = opened[1]
            elif text[:1] not in ("", " ", "\t", "#"):
                struct = ""
            if line[0] != " " and not touches.is_comment(text):
                yield _Line(path, line[0], text, struct)


def _is_member(text: str) -> bool:
    return text[:1].isspace() and text.rstrip().endswith(";") and not {"(", "="} & {*text}


def _variable(text: str) -> str:
    """The first variable that a line at the begin of a line of C defines; "" of constants, functions, declarations."""
    head, equals, _ = text.partition("=")
    if not equals and not head.rstrip().endswith(";"):
        return ""
    tokens = _TOKEN.findall(_ATTRIBUTE.sub("", head).rstrip("; \t"))
    tokens = [one for one in tokens if not one.startswith("__") and one not in ("static", "volatile")]
    until = next((at for at, one in enumerate(tokens) if not (one[0].isalpha() or one[0] in "_*")), len(tokens))
    *kind, name = tokens[:until] or [""]
    types = [one for one in kind if one not in ("*", "const")]
    fixed = "const" in kind and (kind[-1] == "const" or "*" not in kind)
    if tokens[until : until + 1] not in ([], [","], ["["]) or fixed or _NO_VARIABLE.intersection(tokens):
        return ""
    return name if len(types) > (1 if _TAGS.intersection(types) else 0) and name != "*" else ""


def _thing(line: _Line) -> str:
    """The struct or the variable that a line defines a part of; "" of another line."""
    if line.struct:
        return line.struct if _is_member(line.text) else ""
    text = line.text.lstrip() if line.text.lstrip().startswith("static ") else line.text  # of a function, too
    if _SETTLED.search(text) or text[:1].isspace():
        return ""
    match = _MADE.search(text)
    return match[1] if match and _WORDS.fullmatch(text, 0, match.start()) else _variable(text)


def _calls(text: str) -> Iterator[str]:
    yield from (match[0] for match in _NAMES.finditer(text))
    yield from (name for name in touches.locks_of(text) if not _READS.intersection(name.split("_")))


def names(lines: Iterable[str]) -> tuple[str, ...]:
    """Names of what CPUs share on changed lines of a unified diff: variables, structs, files of locks; what is called.

    A line that only moves counts: that is how a lock's scope shrinks. A variable that has another value does not.
    """
    things, calls = dict[str, None](), dict[str, None]()
    found = tuple(_changed(lines))
    heads = {sign: {one.head for one in found if one.sign == sign} for sign in "+-"}
    for line in found:
        thing = line.path if _OF_LOCKS.match(line.path) and line.text.strip() else _thing(line)
        if (
            thing
            and thing != line.path
            and not line.struct
            and "=" in line.text
            and all(line.head in each for each in heads.values())
        ):
            continue
        things |= dict.fromkeys([thing] if thing else [])
        calls |= dict.fromkeys(_calls(line.text))
    return (*things, *calls)
