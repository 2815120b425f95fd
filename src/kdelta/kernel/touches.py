# SPDX-License-Identifier: GPL-2.0-or-later
"""What a diff touches beside instructions: lifetimes of objects, locks, how long tasks wait. Pure; told by the names
that changed lines call.

The names are those that the kernel uses (Documentation/core-api/kref.rst, refcount_t, memory-allocation.rst,
Documentation/locking/locktypes.rst); a name is taken apart at its underscores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

_CALL = re.compile(r"\b([a-z_][a-z0-9_]*)\s*\(")
_FILE = re.compile(r"^\+\+\+ (?:b/)?(\S+)")
_CODE = re.compile(r"\.(?:c|h|S)$")
_COMMENT = re.compile(r"^\s*(?:\*|//|/\*)")
_LIFETIME = frozenset(
    {"free", "get", "put", "hold", "release", "destroy", "kref", "refcount", "unref", "grab", "tryget"}
    | {"getname", "putname"}
)
_LIFETIME_END = ("alloc", "free", "dup")  # kmalloc, kzalloc, kvfree, kstrdup
_LOCK = frozenset(
    {
        "lock",
        "unlock",
        "trylock",
        "mutex",
        "spin",
        "rwlock",
        "rwsem",
        "seqlock",
        "seqcount",
        "guard",
    }
)
_NO_MUTEX = frozenset({"spin", "raw", "rcu", "rwlock", "read", "write", "rwsem", "seqlock", "seqcount", "down", "up"})
_TAKEN = ("lock", "unlock", "trylock", "relock")
_HOW = ("nested", "interruptible", "killable", "io", "locked")  # may stand behind
_SEMAPHORE = re.compile(r"(?:down|up)(?:_|$)")  # not wake_up, round_down
_SHORT = re.compile(r"[a-z]{1,3}(?:get|put|grab|hold|drop)")  # iput, dget, mmgrab
_NO_OBJECT = re.compile(  # what is got or put is a value
    r"_*(?:unsafe_)?(?:get|put)_(?:user(?!_ns|_pages)|cpu|unaligned|order|cycles|random|option|current)(?:_|$)"
    r"|(?:\w+_)?get_(?:\w+_)?(?:size|count|len|length|order|flags|offset|index|idx|mask|type|mode|nr|bits|max|min|time|blocks|expires|remaining|limit|state|value|rate)$"
    r"|(?:\w+_)?get_(?:nr|max|min|num|total)_"
    r"|ktime_get|nla_get_[subl]|seq_put_|(?:in|out)put$|(?:bud|tar|wid)get$"
)
_LATER = re.compile(r"_*(?:\w+_)?call_s?rcu(?:_|$)")  # what it calls frees, as a rule: Documentation/RCU/whatisRCU.rst
_WAITS = re.compile(  # not jiffies, which is read, nor udelay(), which executes instructions
    r"\b(?:HZ|USER_HZ|[mufns]sleep(?:_\w+)?|\w*[a-z]_(?:to_)?jiffies(?:_\w+)?|\w+_JIFFIES|(?:\w+_)?delayed_work\w*"
    r"|mod_timer\w*|hrtimer_(?:start|forward|set_expires)\w*|\w*(?:timeout|TIMEOUT|timer_slack)\w*)\b"
)


_PREFETCHES = re.compile(  # include/linux/prefetch.h, net/core.h, and what mm/ and kernel/sched/ name after them
    r"\b(?:(?:__builtin_|net_)?prefetchw?|prefetchw?_(?:range|page_address|freepointer|curr_exec_start|prev_lru_folio))"
    r"(?=\s*\()"
)

_CHARGES = re.compile(r"\b(?:__GFP_ACCOUNT|GFP_KERNEL_ACCOUNT|SLAB_ACCOUNT)\b")

_WOKEN = re.compile(
    r"\b(?:s?wake_up|wait_event|prepare_to_wait|add_wait_queue|complete)\w*\s*\(|\b(?:WQ_FLAG_|EPOLL)EXCLUSIVE\b"
)
_HOW_MANY = frozenset({"all", "nr", "exclusive", "EXCLUSIVE", "EPOLLEXCLUSIVE"})


class Touched(Struct, frozen=True, kw_only=True):
    """Names of functions that changed lines call, sorted."""

    lifetimes: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()

    @property
    def mutexes(self) -> tuple[str, ...]:
        """Those of the locks that may be mutexes, by their names: not finish_lock_switch()."""
        return tuple(name for name in self.locks if _may_be_mutex(name.split("_")))


def is_comment(text: str) -> bool:
    """Whether a line of code, without a diff's sign, is one of a comment."""
    return _COMMENT.match(text) is not None


def locks_of(text: str) -> Iterator[str]:
    """The functions of locks that a line of code calls, without a diff's sign."""
    return (name for name in _calls(text) if _is_lock(name, frozenset(name.split("_"))))


def _changed(lines: Iterable[str]) -> Iterator[str]:
    """The lines of code that a diff adds or takes out, without their sign."""
    code = False
    for line in lines:
        if match := _FILE.match(line):
            code = bool(_CODE.search(match[1]))
        elif code and line[:1] in "+-" and not line.startswith("---") and not _COMMENT.match(line[1:]):
            yield line[1:]


def _calls(line: str) -> Iterator[str]:
    """What a line calls: not the function of which it is the head (Documentation/process/coding-style.rst)."""
    found = (match[1] for match in _CALL.finditer(line))
    yield from found if line[:1] in " \t#" else islice(found, 1, None)


def of(lines: Iterable[str]) -> Touched:
    """What the changed lines of a unified diff call."""
    names = {name for line in _changed(lines) for name in _calls(line)}
    parts = {name: frozenset(name.split("_")) for name in names}
    return Touched(
        lifetimes=tuple(sorted(name for name, words in parts.items() if _is_lifetime(name, words))),
        locks=tuple(sorted(name for name, words in parts.items() if _is_lock(name, words))),
    )


def waits(lines: Iterable[str], known: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of how long is waited, or of what waits, on changed lines of a diff that ``known``, another one, has not.

    In the order in which they come first.
    """
    return _named(_WAITS, lines, known)


def prefetches(lines: Iterable[str], known: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of what fetches a cache line ahead, on changed lines of a diff that ``known``, another one, has not."""
    return _named(_PREFETCHES, lines, known)


def _named(names: re.Pattern[str], lines: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    has = frozenset(_changed(known))
    found = (match[0] for line in _changed(lines) if line not in has for match in names.finditer(line))
    return tuple(dict.fromkeys(found))


def woken(lines: Iterable[str]) -> tuple[str, ...]:
    """Names by which a diff has more or fewer of those that wait woken at once, in the order in which they come."""
    balance = Counter[str]()
    for line in lines:
        sign = 0 if line.startswith(("+++", "---")) else {"+": 1, "-": -1}.get(line[:1], 0)
        for match in _WOKEN.finditer(line) if sign and not _COMMENT.match(line[1:]) else ():
            balance[match[0].rstrip("( \t")] += sign
    return tuple(name for name, count in balance.items() if count and _HOW_MANY.intersection(name.split("_")))


def charges(lines: Iterable[str]) -> tuple[str, ...]:
    """Flags that have memory charged to its user's cgroup, and that a diff brings or takes out more often; sorted."""
    balance = Counter[str]()
    for line in lines:
        sign = 0 if line.startswith(("+++", "---")) else {"+": 1, "-": -1}.get(line[:1], 0)
        for name in _CHARGES.findall(line) if sign and not _COMMENT.match(line[1:]) else ():
            balance[name] += sign
    return tuple(sorted(name for name, count in balance.items() if count))


def _may_be_mutex(words: Sequence[str]) -> bool:
    *_, last = words[:-1] if len(words) > 1 and words[-1] in _HOW else words
    return ("mutex" in words or "guard" in words or last in _TAKEN) and not _NO_MUTEX.intersection(words)


def _makes(words: frozenset[str]) -> bool:
    """Whether it makes or frees something, as ``locks_alloc_lock``, which takes no lock."""
    return any(word.endswith(_LIFETIME_END) for word in words)


def _is_lifetime(name: str, words: frozenset[str]) -> bool:
    short = any(_SHORT.fullmatch(word) for word in words)
    named = bool(words & _LIFETIME) or short or _makes(words) or _LATER.match(name) is not None
    return named and not _NO_OBJECT.match(name)


def _is_lock(name: str, words: frozenset[str]) -> bool:
    return (bool(words & _LOCK) or _SEMAPHORE.match(name) is not None) and not _makes(words)
