# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that changed lines of a patch declare, ask for or stand under: where one is off, they are not built. Pure.

They stand under directives of the preprocessor, and under conditions in C that name options (``conditions``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from msgspec import Struct

from kdelta.kernel import conditions
from kdelta.kernel.conditions import MODULE, Terms
from kdelta.kernel.diff import Change
from kdelta.kernel.locations import changed_lines

_ASKED = re.compile(r"\bCONFIG_([A-Z0-9_]+)\b")
_WAS = re.compile(r"^-(?:.*(?:=|\breturn\b))?\s*IS_(?:ENABLED|BUILTIN|REACHABLE)\(CONFIG_\w+\)\s*[;,]")  # a value
_DECLARED = re.compile(r"^\s*(?:menu)?config\s+([A-Z0-9_]+)\s*$")
_KCONFIG = re.compile(r"(^|/)Kconfig[^/]*$")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(.*)")
_NAME = re.compile(r"\s*CONFIG_([A-Z0-9_]+)\b")
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)|//.*")
_PARAMETER = re.compile(
    r"^\+\s*(?:(?:__setup|early_param)\(\"([^\"\s]+)\"|(core_param|module_param(?:_named)?)\((\w+))"
)  # include/linux/init.h, include/linux/moduleparam.h
_PREPROCESSED = (".c", ".h", ".S")


class LeftOut(Struct, frozen=True, kw_only=True):
    """What of a patch a config does not compile.

    ``options`` are those that it has not set and under which changed lines stand; ``parts`` are files, and what of them
    stands under options that this architecture or their dependencies do not allow, or under their absence. ``builds``
    are options that, set too, would have the files among them compiled.
    """

    options: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()


def unbuilt(path: str) -> str:
    """What a build says of a file that is in no object."""
    return f"{path} is changed by the patch, but this config does not build it"


def off(changes: Iterable[Change], options: Mapping[str, str]) -> tuple[str, ...]:
    """Names of options, as the changes give them, that ``options`` (of the patched kernel's .config) has not set.

    One that these changes declare is off where ``options`` lack it; one that they ask for must stand there as not
    set, or it may belong to another architecture.
    """
    declared, asked = _named(changes)
    unset = [name for name in asked if options.get(name) == "n"]
    return tuple(dict.fromkeys([*(name for name in declared if options.get(name, "n") == "n"), *unset]))


def parameters(changes: Iterable[Change]) -> tuple[str, ...]:
    """Boot parameters that the changes bring, as a command line has them: ``strict``, ``slow=``, ``pipe.slow=``."""
    found = dict[str, None]()
    for change in changes:
        prefix = PurePosixPath(change.path).stem.replace("-", "_")
        for line in (line for hunk in change.hunks for line in hunk.lines):
            if match := _PARAMETER.match(line):
                own = f"{match[3]}=" if match[2] == "core_param" else f"{prefix}.{match[3]}="
                found[match[1] or own] = None
    return tuple(found)


def _named(changes: Iterable[Change]) -> tuple[list[str], list[str]]:
    declared: list[str] = []
    asked: list[str] = []
    for change in changes:
        for line in (line for hunk in change.hunks for line in hunk.lines if line[:1] in ("+", "-")):
            match = _DECLARED.match(line[1:]) if _KCONFIG.search(change.path) else None
            if match and line[0] == "+":
                declared.append(match[1])
            if not _WAS.match(line):  # taken out, it is what this config had: that differs, and is looked at
                asked += [name.removesuffix(MODULE) for name in _ASKED.findall(line)]
    return declared, asked


def around(diff: Iterable[str], read: Callable[[str], str | None], options: Mapping[str, str]) -> LeftOut:
    """What lines that ``diff`` changes stand under and ``options`` do not have; ``read`` gives a file's new text."""
    lines: dict[str, list[int]] = {}
    for path, line in changed_lines(diff):
        if path.endswith(_PREPROCESSED):
            lines.setdefault(path, []).append(line)
    found, parts = dict[str, None](), dict[str, None]()
    for path, numbers in lines.items():
        text = read(path) or ""
        above, within = list(_above(text.split("\n"))), conditions.ranges(text)
        of_blocks = (term for one in within if any(one.first < n <= one.last for n in numbers) for term in one.terms)
        of_lines = (term for number in numbers if number <= len(above) for term in above[number - 1])
        for name, on in itertools.chain(of_lines, of_blocks):
            has = options.get(name)
            if on and has == "n":
                found[name] = None
            elif on and has is None:
                parts[f"{path} (its part under CONFIG_{name})"] = None
            elif not on and has in ("y", "m"):
                parts[f"{path} (its part for CONFIG_{name}=n)"] = None
    return LeftOut(options=tuple(found), parts=tuple(parts))


def _above(lines: Iterable[str]) -> Iterator[Terms]:
    """For each line what must hold so that it is compiled, as far as single options say so.

    A directive stands under what is around it, not under itself.
    """
    stack: list[Terms] = []
    for line in lines:
        match = _DIRECTIVE.match(line)
        word, rest = (match[1], _COMMENT.sub("", match[2])) if match else ("", "")
        popped = stack.pop() if word in ("elif", "else", "endif") and stack else ()
        yield tuple(term for terms in stack for term in terms)
        if word in ("if", "elif"):
            stack.append(conditions.terms(rest))
        elif word in ("ifdef", "ifndef"):
            name = _NAME.match(rest)
            stack.append(((name[1], word == "ifdef"),) if name else ())
        elif word == "else":
            stack.append(((popped[0][0], not popped[0][1]),) if len(popped) == 1 else ())
