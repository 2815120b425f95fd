# SPDX-License-Identifier: GPL-2.0-or-later
"""Which files a program cannot start without: interpreters and shared libraries, as the loaders look for them.

Sources: ld.so(8) for the order (RPATH, LD_LIBRARY_PATH, RUNPATH, cache, default paths); execve(2) for ``#!``. What a
program opens by itself (plugins, modules of an interpreter, its data) is not in here: packing.py and follow.py.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment
from msgspec import Struct

from kdelta.errors import UserError
from kdelta.guest import shims
from kdelta.spec.counted import SCRATCH

_DEFAULT = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")  # the last one is musl's
_CACHED = re.compile(r"^\s*(\S+) \(([^)]*)\) => (\S+)$")
_TAGS = {"EM_X86_64": "x86-64", "EM_AARCH64": "AArch64", "EM_386": ""}  # as ldconfig(8) has them
_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_386": "x86_64"}  # by which kernels each is run
# What begins a line of a shell's and mostly is no program: POSIX.1-2024, XCU 2.4 and 2.15, and bash's.
_OF_A_SHELL = frozenset((
    ".", ":", "[[", "{", "(", "!", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare",
    "eval", "exec", "exit", "export", "fg", "for", "function", "hash", "if", "jobs", "let", "local", "mapfile",
    "popd", "pushd", "read", "readonly", "return", "select", "set", "shift", "source", "time", "times", "trap",
    "type", "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
))  # fmt: skip
_BETWEEN_COMMANDS = re.compile(r"[;|&<>]|\$\(")  # of a shell's line
_ENV_TAKES = re.compile(r"-[a-zA-Z0]*[uC]|--unset|--chdir")  # options of env(1) whose value is the next word
_SHEBANGS_MOST = 5  # as the kernel has it: BINPRM_MAX_RECURSION


class _Elf(Struct, frozen=True):
    """What the loader reads of a file."""

    machine: str
    bits: int
    interpreter: str
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]


_SEGMENTS_BYTES = 65536  # fs/binfmt_elf.c, load_elf_phdrs(): "Sanity check the number of program headers"
# What pyelftools 0.33 raises of damaged files: beside its own errors whatever its code runs into.
_DAMAGE = (ELFError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


@cache  # the C library is needed by all
def _elf(path: Path) -> _Elf | None:
    """None where it is no ELF file."""
    try:
        facts = path.stat()
    except OSError as error:
        raise UserError(f"program: {path} cannot be read: {error.strerror}") from None
    return read_elf(path, (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns))


@lru_cache(maxsize=1024)
def read_elf(path: Path, _stamp: tuple[int, ...]) -> _Elf | None:
    """As ``_elf``: programs share most of their libraries, so one that stays what it is is read once."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return None
            return _read(ELFFile(file), path)
    except OSError as error:
        raise UserError(f"program: {path} cannot be read: {error.strerror}") from None
    except _DAMAGE as error:
        raise UserError(f"program: {path} is a damaged ELF file: {error or type(error).__name__}") from None


def _read(elf: ELFFile, path: Path) -> _Elf:
    size, many = elf.structs.Elf_Phdr.sizeof(), elf["e_phnum"]
    if many and (elf["e_phentsize"] != size or many * size > _SEGMENTS_BYTES):
        raise ELFError(f"{many} program headers of {elf['e_phentsize']} bytes, which Linux does not run")
    interpreter, found = "", {"DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": []}  # type: tuple[str, dict[str, list[str]]]
    for segment in elf.iter_segments():
        if isinstance(segment, InterpSegment):
            interpreter = segment.get_interp_name()
        elif isinstance(segment, DynamicSegment):
            for tag in segment.iter_tags():
                if tag.entry.d_tag in found:
                    found[tag.entry.d_tag].append(getattr(tag, tag.entry.d_tag[3:].lower()))
    folders = {key: tuple(_expanded(text, path) for one in found[key] for text in one.split(":")) for key in found}
    return _Elf(
        elf["e_machine"],
        elf.elfclass,
        interpreter,
        tuple(found["DT_NEEDED"]),
        () if found["DT_RUNPATH"] else folders["DT_RPATH"],
        folders["DT_RUNPATH"],
    )


def _expanded(text: str, path: Path) -> str:
    origin = str(path.resolve().parent)
    return text.replace("$ORIGIN", origin).replace("${ORIGIN}", origin)


@cache
def _cached() -> dict[tuple[str, str], str]:
    """What ld.so.cache has: (name, machine) -> path."""
    program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
    if program is None:
        return {}
    said = subprocess.run([program, "-p"], capture_output=True, text=True, errors="replace", check=False, timeout=30)
    found: dict[tuple[str, str], str] = {}
    for line in said.stdout.splitlines():
        if match := _CACHED.match(line):
            machine = next(tag for tag in _TAGS.values() if tag in match[2])
            found.setdefault((match[1], machine), match[3])
    return found


def _musl_folders(interpreter: str) -> list[str]:
    """Where musl's loader looks; its list is in /etc."""
    match = re.search(r"/ld-musl-([^/]+)\.so", interpreter)
    if not match:
        return []
    try:
        return re.split(r"[:\n]", Path(f"/etc/ld-musl-{match[1]}.path").read_text(encoding="utf-8").strip())
    except OSError:
        return []


def _candidates(
    name: str, elf: _Elf, rpath: tuple[str, ...], interpreter: str, given: tuple[str, ...]
) -> Iterator[str]:
    if "/" in name:
        yield name
        return
    for folder in (*(() if elf.runpath else (*elf.rpath, *rpath)), *given, *elf.runpath, *_musl_folders(interpreter)):
        yield f"{folder}/{name}"
    if "ld-musl" not in interpreter and (found := _cached().get((name, _TAGS.get(elf.machine, "?")))):
        yield found
    for folder in _DEFAULT:
        yield f"{folder}/{name}"


def _fits(path: Path, elf: _Elf) -> bool:
    if not path.is_file():
        return False
    other = _elf(path)
    return other is not None and (other.machine, other.bits) == (elf.machine, elf.bits)


def _libraries(path: Path, elf: _Elf, given: tuple[str, ...]) -> Iterator[Path]:
    """All shared libraries of an ELF file, those of its libraries too.

    Raises:
        UserError: one of them is not on this machine.
    """
    seen: set[str] = set()
    left = [(path, elf, ())]  # type: list[tuple[Path, _Elf, tuple[str, ...]]]
    while left:
        user, of, rpath = left.pop(0)
        for name in of.needed:
            if name in seen:
                continue
            seen.add(name)
            candidates = _candidates(name, of, rpath, elf.interpreter, given)
            where = next((Path(c) for c in candidates if _fits(Path(c), elf)), None)
            if where is None and name.startswith(("libc.musl-", "ld-linux", "ld-musl")):
                continue  # the loader itself
            if where is None:
                raise UserError(f"program: {user} needs {name}, which {_not_found(name, elf)}")
            yield where
            inner = _elf(where)
            if inner is not None:
                left.append((where, inner, (*of.rpath, *rpath)))


def preloaded(text: str, cwd: Path, given: tuple[str, ...] = ()) -> list[Path]:
    """The libraries that a LD_PRELOAD or LD_AUDIT of ``text`` names, for this machine's programs, with what they need.

    Raises:
        UserError: one is not on this machine; the loader would say so, and go on without it.
    """
    own = _elf(Path(sys.executable).resolve())
    found: dict[Path, None] = {}
    for name in filter(None, re.split(r"[:\s]+", text)):
        among = [str(cwd / name)] if "/" in name or own is None else _candidates(name, own, (), own.interpreter, given)
        path = next((Path(one) for one in among if os.path.isfile(one)), None)
        if path is None:
            raise UserError(f"program: the library {name}, to be loaded first, is not where the loader looks")
        found |= dict.fromkeys(needed(Path(os.path.abspath(path)), given))
    return list(found)


def _not_found(name: str, elf: _Elf) -> str:
    """What is said of a library that the loader does not find in the environment that the program has there."""
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        if _fits(Path(folder) / name, elf):
            return f"only LD_LIBRARY_PATH has here; give the program --env LD_LIBRARY_PATH={shlex.quote(folder)}"
    where = "is not where its loader looks"
    return f"{where}; install its package, or say where it is: --env LD_LIBRARY_PATH=DIR"


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(256)


def _shebang(path: Path) -> list[str]:
    """The words behind ``#!``; none where it is no script."""
    head = _head(path)
    if not head.startswith(b"#!"):
        return []
    return head[2:].split(b"\n")[0].decode("utf-8", "replace").split(None, 1)


def needed(program: Path, given: tuple[str, ...] = (), depth: int = 0) -> list[Path]:
    """The program and all that it cannot start without, as found (symbolic links are not followed).

    Args:
        given: the directories of its LD_LIBRARY_PATH, absolute: of the environment that it will have.
        depth: how many scripts deep this is.

    Raises:
        UserError: a file is missing or cannot be read, or is for another machine.
    """
    elf = _elf(program)
    if elf is None:
        return [program, *_of_script(program, given, depth)]
    if _MACHINES.get(elf.machine) != platform.machine():
        raise UserError(f"program: {program} is for {elf.machine.removeprefix('EM_')}, not for {platform.machine()}")
    found = [program]
    if elf.interpreter:
        if not Path(elf.interpreter).is_file():
            raise UserError(f"program: {program} needs {elf.interpreter}, which is not on this machine")
        found.append(Path(elf.interpreter))
    return [*found, *_libraries(program, elf, given)]


def refuse_unstartable(program: Path) -> None:
    """What execve(2) would not start: a shell runs a file without ``#!`` itself, and nobody looks for ``sh\\r``.

    Raises:
        UserError: the program is such a file.
    """
    line, name = _shebang(program), shlex.quote(str(program))
    if line and _head(program).split(b"\n")[0].endswith(b"\r"):
        raise UserError(f"program: {program}: its first line ends in a carriage return: sed -i 's/\\r$//' {name}")
    if not line and _elf(program) is None:
        remedy = f"name its interpreter first, as in -- sh {name}"
        raise UserError(f"program: {program} is neither an ELF file nor begins with #!; {remedy}")


def _of_script(program: Path, given: tuple[str, ...], depth: int) -> list[Path]:
    line = _shebang(program)
    if not line:
        return []
    if depth == _SHEBANGS_MOST:
        raise UserError(f"program: {program}: a script whose interpreter is a script, {depth} times over")
    interpreter = Path(line[0])
    if not interpreter.is_file():
        raise UserError(f"program: {program} needs {interpreter}, which is not on this machine")
    found = needed(interpreter, given, depth + 1)
    if (by_env := found_by_env(program)) is not None:
        found += needed(by_env, given, depth + 1)
    return found


def found_by_env(program: Path) -> Path | None:
    """The interpreter of a script that begins ``#!/usr/bin/env NAME``, as found here; else None.

    Raises:
        UserError: it is not on this machine.
    """
    line = _shebang(program)
    if len(line) < 2 or Path(line[0]).name != "env":
        return None
    words = line[1].split()
    name = next((word for at, word in enumerate(words) if _is_started(word, words[at - 1] if at else "")), "")
    return on_path(name) if name else None


def _is_started(word: str, before: str) -> bool:
    """Whether env(1) starts this one of its words, which stands behind ``before``."""
    return not word.startswith("-") and "=" not in word and not _ENV_TAKES.fullmatch(before)


def on_path(name: str, cwd: Path = Path()) -> Path:
    """Where the program of that name is, absolute; with a slash in it, from ``cwd``. Of a shim: what it stands for.

    Raises:
        UserError: nowhere, or it cannot be executed.
    """
    if "/" in name:
        path = Path(os.path.abspath(cwd / name))
        if path.is_dir() or not path.exists():
            why = "a directory" if path.is_dir() else f"there is no such file{_meant(name)}"
            raise UserError(f"program {name}: {why}")
        if not os.access(path, os.X_OK):
            raise UserError(f"program {name}: it may not be executed; chmod +x {name}, or name its interpreter first")
        return shims.meant(path)
    found = shutil.which(name)
    if found is None:
        remedy = _meant(name) or "; give its path, or install it"
        raise UserError(f"program {name}: it is not on this machine's PATH{remedy}")
    return shims.meant(Path(os.path.abspath(found)))


def bases(here: Path, runs_in: str) -> tuple[Path, ...]:
    """Where relative paths of a command may begin: here, and in --cwd, as after a ``cd``; guests have a /tmp."""
    return (here, here / runs_in) if runs_in not in ("", SCRATCH) else (here,)


def base_of(name: str, here: Path, runs_in: str) -> Path:
    """Where the path ``name`` begins; here, if it is nowhere."""
    return next((base for base in bases(here, runs_in) if os.path.exists(base / name)), here)


def as_typed(name: str, found: str, cwd: Path) -> str:
    """The path by which a shell starts ``name`` from ``cwd``, a script's $0; ``found`` where that is another."""
    plain = "/" in name and os.path.normpath(name) == name.removeprefix("./")  # no link/../x
    return name if plain and os.path.abspath(cwd / name) == found else found


def _meant(name: str) -> str:
    """What was meant where ``name`` is what a shell takes: ``A=1 ls``, ``'ls | wc'``, ``'for ...'``, cd; else ""."""
    first, *others = name.split() or [""]
    if name in _OF_A_SHELL:
        return f": a shell does that itself, as in -- sh -c '{name} ...'"
    if others and (first in _OF_A_SHELL or shutil.which(first) or _BETWEEN_COMMANDS.search(name)):
        return f"; a shell's line is run by -- sh -c {shlex.quote(name)}"
    if "=" in first and first.partition("=")[0].isidentifier():
        return f"; a variable is set by --env {first}"
    return ""


def no_input(path: Path) -> str:
    """Why what is at ``path`` cannot be a program's standard input, or ""."""
    if path.is_file():
        return ""
    if path.is_dir():
        return "a directory"
    stream = path.exists() or path.name == "-"
    return "each run reads it from its beginning, so put it into a file first" if stream else "there is no such file"
