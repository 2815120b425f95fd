# SPDX-License-Identifier: GPL-2.0-or-later
"""Which options that are off would have a source file compiled: by its Makefiles, and what Kconfig asks for these.

Pure over the texts of both. Where they do not say it plainly (a variable of make, an
option of other machines), none is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from msgspec import Struct, field

Read = Callable[[str], str | None]
_RULE = re.compile(r"^([\w-]+)-(?:\$\(CONFIG_(\w+)\)|y|objs|m)\s*[+:]?=(.*)$", re.MULTILINE)
_NAME = re.compile(r"^[A-Za-z0-9_]+$")
_ENTRY = re.compile(r"^(?:menu)?config\s+([A-Za-z0-9_]+)")
_PROMPT = re.compile(r"^(?:(?:bool|tristate)\s+[\"']|prompt\b)")
_OPENS, _CLOSES = re.compile(r"^(?:if|menu|choice)\b"), re.compile(r"^end(?:if|menu|choice)\b")
_SELECT = re.compile(r"^select\s+([A-Za-z0-9_]+)")
_DEFAULT = re.compile(r"^default y if ([A-Za-z0-9_]+)(?:=y)?$")
_SOURCE = re.compile(r"^source\s+[\"']?([^\s\"']+)")
_HELP = re.compile(r"^(?:help|---help---)$")
_WORD = re.compile(r"\w+")
_OF_ARCH = {"x86": "X86", "arm64": "ARM64"}  # below arch/
_OTHERS = re.compile(r"ARCH_\w+|ALPHA|ARC|ARM|ARM64|HEXAGON|LOONGARCH|M68K|MIPS|OF|PARISC|PPC|RISCV|S390|SPARC|X86")
_FOR_ALL = ("init/Kconfig", "arch/Kconfig", "lib/Kconfig.debug")
_DEEP = 8  # options of which one needs the next
_MOST = 64  # conditions of one option: who has more does not say plainly what it needs


class _Asked(Struct):
    """An option, or a file, as a Kconfig has it: whether users may set it, and the conditions that it stands under.

    ``selects`` are the options that it sets with itself, ``with_these`` those with one of which it is set.
    """

    prompt: bool
    terms: list[str]
    selects: list[str] = field(default_factory=list)
    with_these: list[str] = field(default_factory=list)


def missing(read: Read, path: str, config: Mapping[str, str], prefer: Sequence[str] = ()) -> tuple[str, ...]:
    """Options to set so that ``path`` is compiled, those that others need first; () where that is not told plainly.

    Args:
        read: the text of a file of the source, None where it has none.
        config: the values of the .config that does not compile it.
        prefer: options that are taken where several would select what compiles it.
    """
    found = dict[str, None]()
    if path.startswith("arch/") and config.get(_OF_ARCH.get(path.split("/")[1], "")) != "y":
        return ()
    at = PurePosixPath(path).parent
    off = [name for name in _of_makefiles(read, path) if config.get(name) not in ("y", "m")]
    known = {name: asked for name in off if (asked := _declared(read, at, name)) is not None}
    if known.keys() != set(off):
        return ()  # of what is declared elsewhere nobody knows whether it is enough
    places = {name: place for name, (asked, place) in known.items() if asked.prompt}
    selected = {name for asked, _ in known.values() for name in asked.selects}
    hidden = frozenset(known.keys() - places.keys() - selected)
    places |= _selecting(read, at, hidden, prefer) if hidden else {}
    plain = all(_add(read, place, name, config, found, _DEEP) for name, place in places.items())
    return tuple(found) if plain else ()


def missing_of(
    read: Read, paths: Iterable[str], config: Mapping[str, str], prefer: Sequence[str] = ()
) -> tuple[str, ...]:
    """``missing`` of several files."""
    return tuple(dict.fromkeys(name for path in paths for name in missing(read, path, config, prefer)))


def _selecting(read: Read, at: PurePosixPath, names: frozenset[str], prefer: Sequence[str]) -> dict[str, PurePosixPath]:
    """The options that select ``names``, as EXT4_FS does JBD2, and where: those that are preferred, or the only one.

    It is looked for in the files that the Kconfig of ``at``, or of the nearest directory above it, names.
    """
    found: dict[str, PurePosixPath] = {}
    for folder in (at, *at.parents):
        file = f"{folder}/Kconfig" if folder.name else "Kconfig"
        for named in (file, *_sourced(read, file)):
            options = _every(read(named) or "").items()
            mine = [one for one, asked in options if asked.prompt and names <= {*asked.selects}]
            found |= {one: PurePosixPath(named).parent for one in mine if one not in found}
            default = [one for name, asked in options if name in names for one in asked.with_these]
            found |= {one: known[1] for one in default if (known := _declared(read, folder, one)) is not None}
        if found:
            break
    liked = {one: found[one] for one in prefer if one in found}
    return liked or (found if len(found) == 1 else {})


def needed(read: Read, files: Iterable[str], name: str, config: Mapping[str, str]) -> tuple[str, ...]:
    """Options without which ``name``, which one of the Kconfig ``files`` declares, is not set; () where not plain."""
    entry = re.compile(rf"^\s*(?:menu)?config\s+{re.escape(name)}\s*$", re.MULTILINE)
    where = next((file for file in files if entry.search(read(file) or "")), "")
    found = dict[str, None]()
    plain = where and _add(read, PurePosixPath(where).parent, name, config, found, _DEEP)
    return tuple(one for one in found if one != name) if plain else ()


def selecting(read: Read, files: Iterable[str], name: str, config: Mapping[str, str]) -> tuple[str, ...]:
    """Options that are on and, by the Kconfig ``files``, select ``name``, or one that does and that no user may set."""
    on = [one for file in files for one in _selects(read(file) or "", config)]
    found, seen, left = dict[str, None](), {name}, [name]
    while left:
        wanted = left.pop()
        for option, prompt, selects in on:
            if wanted in selects and option not in seen:
                seen.add(option)
                found |= {option: None} if prompt else {}
                left += [] if prompt else [option]
    return tuple(found)


class Hidden(Struct, frozen=True):
    """An option that is off and that no user may set, and those that users may and that set it."""

    name: str
    selected_by: tuple[str, ...]


def declared(read: Read, files: Iterable[str], name: str) -> bool:
    """Whether one of the Kconfig ``files`` declares ``name``."""
    return any(name in _every(read(file) or "") for file in files)


def hidden(read: Read, files: Sequence[str], name: str, config: Mapping[str, str]) -> Hidden | None:
    """The option that keeps ``name`` off and that no user may set: itself, or one that it depends on."""
    every: dict[str, _Asked] = {}
    for file in files:
        for one, asked in _every(read(file) or "").items():
            if one not in every or not every[one].prompt:
                every[one] = asked
    seen, left = {name}, [name]
    last = ""
    while left:
        one = left.pop()
        if one not in every:
            continue
        last = last if every[one].prompt else one
        off = [term for term in every[one].terms if "|" not in term and config.get(term) not in ("y", "m")]
        left += [term for term in off if term not in seen]
        seen |= {*off}
    by = tuple(one for one, asked in every.items() if asked.prompt and last in asked.selects)
    return Hidden(last, by) if last else None


def giving(read: Read, files: Iterable[str], name: str, value: str) -> str:
    """The option with which ``name`` has ``value`` by default, as HZ has 1000 with HZ_1000; "" where none is named."""
    default = re.compile(rf"^default {re.escape(value)} if ([A-Za-z0-9_]+)$")
    for file in files:
        option = ""
        for line in _lines(read(file) or ""):
            if match := _ENTRY.match(line):
                option = match[1]
            elif option == name and (match := default.match(line)):
                return match[1]
    return ""


def _selects(text: str, config: Mapping[str, str]) -> Iterator[tuple[str, bool, list[str]]]:
    """Of each option of a Kconfig that is on whether users may set it, and what it selects then."""
    option, prompt, selects = "", False, list[str]()
    for line in (*_lines(text), "config END"):
        if match := _ENTRY.match(line):
            if config.get(option) in ("y", "m"):
                yield option, prompt, selects
            option, prompt, selects = match[1], False, []
        elif _PROMPT.match(line):
            prompt = True
        elif (match := _SELECT.match(line)) and all(
            config.get(one) in ("y", "m") for one in _terms(line[match.end() + 3 :])
        ):
            selects.append(match[1])


def _of_makefiles(read: Read, path: str) -> list[str]:
    """The options under which Makefiles from the root down to ``path`` name it."""
    made_of = PurePosixPath(path).with_suffix(".o")
    at, wanted = made_of.parent, {made_of.name}
    found: list[str] = []
    for folder in (at, *at.parents):
        makefile = read(f"{folder}/Kbuild") or read(f"{folder}/Makefile") if folder.name else read("Kbuild")
        text = (makefile or "").replace("\\\n", " ")
        rules = [(made, option, what.split()) for made, option, what in _RULE.findall(text)]
        for _ in range(2):  # of a module of several objects, its own rule last
            for made, option, what in rules:
                if wanted.intersection(what):
                    found += [option] if option else []
                    wanted |= {f"{made}.o"} if made != "obj" else set()
        wanted = {f"{folder.name}/", str(made_of.relative_to(folder.parent))}  # kvm-intel-y += vmx/vmx.o
    return list(dict.fromkeys(reversed(found)))


def _add(
    read: Read, at: PurePosixPath, name: str, config: Mapping[str, str], found: dict[str, None], deep: int
) -> bool:
    """Put ``name`` behind what it needs into ``found``; False where no user may set one of these."""
    if name in found or config.get(name) in ("y", "m"):
        return True
    if "|" in name:  # which of these is not ours to say
        return any(config.get(one) in ("y", "m") for one in _WORD.findall(name))
    if _OTHERS.fullmatch(name):
        return False
    asked = _entry(read, at, name)
    if asked is not None:  # else it is declared elsewhere, as BLOCK is of fs/
        needs = [term for term in asked.terms if term != name]
        if not asked.prompt or deep == 0 or len(needs) > _MOST:
            return False
        if not all(_add(read, at, one, config, found, deep - 1) for one in needs):
            return False
    found[name] = None
    return True


def _entry(read: Read, at: PurePosixPath, name: str) -> _Asked | None:
    """``name`` as the Kconfig of ``at``, or of a directory above it, declares it, with what is around that file."""
    while at.name:
        every = _every(read(f"{at}/Kconfig") or "")
        for file in [file for file in every if file.startswith(f"{at}/Kconfig")]:  # block/Kconfig.iosched
            inside = _every(read(file) or "").items()
            within = {one: _Asked(prompt=a.prompt, terms=[*every[file].terms, *a.terms]) for one, a in inside}
            every = {**within, **every}
        if name in every:
            return _Asked(prompt=every[name].prompt, terms=[*_around(read, at), *every[name].terms])
        at = at.parent
    return next((every[name] for file in _FOR_ALL if name in (every := _every(read(file) or ""))), None)


def _declared(read: Read, at: PurePosixPath, name: str) -> tuple[_Asked, PurePosixPath] | None:
    """``name`` and the directory of its Kconfig: that of ``at``, one above, or one that these name (FS_VERITY)."""
    if (asked := _entry(read, at, name)) is not None:
        return asked, at
    for folder in (at, *at.parents):
        named = [*_sourced(read, f"{folder}/Kconfig" if folder.name else "Kconfig")]
        further = [one for file in named for one in _sourced(read, file)]  # init/Kconfig names block/Kconfig
        for file in dict.fromkeys((*named, *further)):
            place = PurePosixPath(file).parent
            if name in _every(read(file) or "") and (asked := _entry(read, place, name)) is not None:
                return asked, place
    return None


def _sourced(read: Read, file: str) -> Iterator[str]:
    """The Kconfig files that another one names."""
    return (one for one in _every(read(file) or "") if one.endswith("/Kconfig"))


def _around(read: Read, at: PurePosixPath) -> list[str]:
    """What the Kconfig files above ``at`` have around the line that names its own."""
    found: list[str] = []
    file = f"{at}/Kconfig"
    while at.name:
        at = at.parent
        above = _every(read(f"{at}/Kconfig" if at.name else "Kconfig") or "").get(file)
        if above is not None:
            found, file = [*above.terms, *found], f"{at}/Kconfig"
    return found


@lru_cache(maxsize=64)
def _every(text: str) -> Mapping[str, _Asked]:
    """All options and files that a Kconfig names; of one that it declares several times the first with a prompt."""
    found: dict[str, _Asked] = {}
    stack: list[list[str]] = [[]]  # what the lines at each depth stand under, all in all
    entry: _Asked | None = None
    for line in _lines(text):
        if match := _ENTRY.match(line):
            entry = _Asked(prompt=False, terms=[*stack[-1]])
            if match[1] not in found or not found[match[1]].prompt:
                found[match[1]] = entry
        elif match := _SOURCE.match(line):
            found[match[1]] = _Asked(prompt=True, terms=[*stack[-1]])
        elif _OPENS.match(line):
            inner = _terms(line[2:]) if line.startswith("if") else []
            stack.append([*stack[-1], *inner][: _MOST + 1])
            entry = None
        elif _CLOSES.match(line):
            stack, entry = stack[:-1] or [[]], None
        elif line.startswith("depends on"):
            terms = entry.terms if entry is not None else stack[-1]
            terms += _terms(line.removeprefix("depends on"))
        elif entry is not None and _PROMPT.match(line):
            entry.prompt = True
        elif entry is not None and (match := _SELECT.match(line)):
            entry.selects.append(match[1])
        elif entry is not None and (match := _DEFAULT.match(line)):
            entry.with_these.append(match[1])
    return found


def _lines(text: str) -> Iterator[str]:
    """The lines of a Kconfig without their indentation, comments and texts of help."""
    deep, helping = 0, False
    for line in text.replace("\\\n", " ").expandtabs().split("\n"):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        if helping:
            deep = deep or indent
            helping = indent >= deep and indent > 0
        if _HELP.match(stripped):
            deep, helping = 0, True
        elif not helping:
            yield stripped


def _terms(condition: str) -> list[str]:
    """The single options that a condition asks for, and those of which one is enough as they stand: ``A || B``."""
    condition = condition.split("#")[0]
    if "||" in condition:
        return [] if any(sign in condition for sign in "!=&") else [condition]
    words = (word.strip(" ()") for word in condition.split("&&"))
    return [word for word in words if _NAME.match(word) and word not in ("y", "m", "n")]
