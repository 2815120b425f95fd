# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest binary, compiled: one static program that is PID 1, the child of each case, and the native mode.

Everything is found by wildcard (guest/*.c, guest/workloads/*.c); a folder of the user's may add workloads (a C file
with a TOML file beside it) and unmodified will-it-scale testcases, which guest/wis.h says how to build. Equal sources,
flags and compiler give the same file, kept in the cache under their hash.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from kdelta import digests
from kdelta.errors import HostError, KdeltaError, UserError
from kdelta.model import Arch
from kdelta.paths import shipped

NAME = "kdelta-guest"
_STEP_LIMIT_S = 300

_COMMON = ("-O2", "-std=gnu11", "-fno-pie", "-pthread")
_STRICT = ("-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror")
# What others wrote is compiled as they wrote it: our warnings are not their errors.
_FOREIGN = ("-D_GNU_SOURCE=", "-w")
_LINK = ("-static", "-no-pie", "-pthread", "-s")
_LIBRARIES = ("-lm",)

# What guest/wis.c calls the four names that every testcase defines or may define.
_WIS_NAMES = {
    "testcase": "testcase",
    "testcase_description": "description",
    "testcase_prepare": "prepare",
    "testcase_cleanup": "cleanup",
}
_WIS_MARKS = (b"testcase_description", b"testcase(")

_MACHINES: dict[Arch, tuple[str, str]] = {
    "x86_64": ("x86_64-linux-gnu", "gcc-x86-64-linux-gnu libc6-dev-amd64-cross"),
    "arm64": ("aarch64-linux-gnu", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
}
_NATIVE: dict[str, Arch] = {"x86_64": "x86_64", "aarch64": "arm64"}
_COMPLAINT = re.compile(r"error:|undefined reference|multiple definition|cannot find|fatal")


class Toolchain(Struct, frozen=True):
    """The programs that make binaries for one architecture; ``version`` is what the compiler says of itself."""

    arch: Arch
    gcc: str
    objcopy: str
    version: str
    packages: str


class _Unit(Struct, frozen=True):
    """One object file: ``source`` compiled with ``flags``; a testcase's own names become ``wis_SYMBOL_...``."""

    source: Path
    flags: tuple[str, ...]
    wis_symbol: str = ""
    foreign: bool = False


def toolchain(arch: Arch) -> Toolchain:
    """Find the compiler for ``arch``.

    Raises:
        HostError: there is none; names the packages that have it.
    """
    triplet, packages = _MACHINES[arch]
    native = _NATIVE.get(platform.machine()) == arch
    if native:
        packages = "gcc libc6-dev"
    prefixes = (f"{triplet}-", "") if native else (f"{triplet}-",)
    for prefix in prefixes:
        gcc, objcopy = shutil.which(f"{prefix}gcc"), shutil.which(f"{prefix}objcopy")
        if gcc and objcopy:
            said = subprocess.run([gcc, "--version"], capture_output=True, text=True, check=False)
            return Toolchain(arch, gcc, objcopy, said.stdout.splitlines()[0] if said.stdout else gcc, packages)
    raise HostError(f"guest: no C compiler for {arch}; install one with: sudo apt install {packages}")


def _own_units(guest: Path, extra: Sequence[Path]) -> list[_Unit]:
    units = [_Unit(path, (*_COMMON, *_STRICT)) for path in sorted([*guest.glob("*.c"), *guest.glob("workloads/*.c")])]
    return units + [_Unit(path, (*_COMMON, *_FOREIGN, f"-I{guest}"), foreign=True) for path in sorted(extra)]


def _is_testcase(path: Path) -> bool:
    text = path.read_bytes()
    return all(mark in text for mark in _WIS_MARKS)


def _folder_units(guest: Path, folder: Path) -> list[_Unit]:
    """The user's folder: workloads of their own, and two units for each testcase (itself, and its registration)."""
    if not folder.is_dir():
        raise UserError(f"workloads {folder}: no such folder")
    units: list[_Unit] = []
    symbols: dict[str, Path] = {}
    for path in sorted(folder.glob("*.c")):
        if path.with_suffix(".toml").exists():
            units.append(_Unit(path, (*_COMMON, *_FOREIGN, f"-I{guest}"), foreign=True))
            continue
        if not _is_testcase(path):
            continue
        if not re.fullmatch(r"[A-Za-z0-9_.+-]+", path.stem):
            raise UserError(f"testcase {path}: its name may have letters, digits and . _ + - only; rename it")
        symbol = re.sub(r"\W", "_", path.stem)
        if other := symbols.get(symbol):
            raise UserError(f"testcase {path}: its name is too close to {other.name}; rename one of them")
        symbols[symbol] = path
        units.append(_Unit(path, (*_COMMON, *_FOREIGN), wis_symbol=symbol, foreign=True))
        defines = (f"-DWIS_SYMBOL={symbol}", f'-DWIS_NAME="{path.stem}"')
        units.append(_Unit(guest / "wis.c", (*_COMMON, *_STRICT, *defines)))
    return units


def _fingerprint(tools: Toolchain, units: Sequence[_Unit], guest: Path) -> str:
    """SHA-256 over all that decides the result; paths count relative to their folder, so that a moved checkout hits."""
    digest = hashlib.sha256()

    def add(*parts: bytes) -> None:
        for part in parts:
            digest.update(len(part).to_bytes(8, "little") + part)

    add(tools.version.encode(), repr((_LINK, _LIBRARIES)).encode())
    for unit in units:
        flags = tuple(flag.replace(str(guest), "GUEST") for flag in unit.flags)
        add(unit.source.name.encode(), repr((flags, unit.wis_symbol)).encode(), unit.source.read_bytes())
    for folder in sorted({guest, guest / "workloads", *(unit.source.parent for unit in units)}):
        for header in sorted(folder.glob("*.h")):
            add(header.name.encode(), header.read_bytes())
    return digest.hexdigest()[:32]


def _run(argv: Sequence[str], log: Callable[[str], None]) -> str | None:
    """Run one step; None, or its complaint: the line that says what is wrong."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_STEP_LIMIT_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{Path(argv[0]).name} did not end within {_STEP_LIMIT_S} s"
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    log("\n".join([" ".join(argv), *lines, ""]))
    return next((line for line in lines if _COMPLAINT.search(line)), lines[-1] if lines else f"{argv[0]} failed")


def _compile(tools: Toolchain, unit: _Unit, target: Path, log: Callable[[str], None]) -> str | None:
    complaint = _run((tools.gcc, *unit.flags, "-c", str(unit.source), "-o", str(target)), log)
    if complaint or not unit.wis_symbol:
        return complaint
    argv = [tools.objcopy]
    for name, ours in _WIS_NAMES.items():
        renamed = f"wis_{unit.wis_symbol}_{ours}"
        argv += ["--redefine-sym", f"{name}={renamed}", "--keep-global-symbol", renamed]
    return _run((*argv, str(target)), log)


def _error(foreign: bool, complaint: str, log: Path) -> KdeltaError:
    kind = UserError if foreign else HostError
    return kind(
        f"guest: {'your workloads do' if foreign else 'the guest program does'} not compile: {complaint} ({log})"
    )


def _make(tools: Toolchain, units: Sequence[_Unit], work: Path, log_path: Path) -> Path:
    def log(text: str) -> None:
        with log_path.open("a", encoding="utf-8") as file:
            file.write(text)

    objects = [work / f"{index}.o" for index in range(len(units))]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        complaints = list(
            pool.map(lambda pair: _compile(tools, pair[0], pair[1], log), zip(units, objects, strict=True))
        )
    for unit, complaint in zip(units, complaints, strict=True):
        if complaint:
            raise _error(unit.foreign, complaint, log_path)
    target = work / NAME
    complaint = _run((tools.gcc, *_LINK, *map(str, objects), *_LIBRARIES, "-o", str(target)), log)
    if complaint and re.search(r"cannot find -l", complaint):
        raise HostError(f"guest: {complaint}; install the static C library with: sudo apt install {tools.packages}")
    if complaint:
        raise _error(any(unit.foreign for unit in units), complaint, log_path)
    return target


def build(arch: Arch, extra_sources: tuple[Path, ...] = (), *, cache: Path, wis_dir: Path | None = None) -> Path:
    """The guest binary for ``arch``, from the cache when nothing has changed and it is whole.

    Args:
        extra_sources: further C files that register workloads.
        cache: the cache folder; the result is ``cache/guest/HASH/kdelta-guest``.
        wis_dir: a folder of the user's with workloads (C and TOML) and will-it-scale testcases.

    Raises:
        HostError: no compiler, no static C library, or our own sources do not compile.
        UserError: the user's sources do not compile.
    """
    tools = toolchain(arch)
    guest = shipped("guest")
    units = _own_units(guest, extra_sources) + (_folder_units(guest, wis_dir) if wis_dir else [])
    try:
        folder = cache / "guest" / _fingerprint(tools, units, guest)
        target = folder / NAME
        if digests.is_whole(target):
            return target
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            # The move is atomic: a build that was cut short, or one that runs beside this one, is never seen half.
            digests.keep(_make(tools, units, Path(work), folder / "build.log"), target)
    except OSError as error:
        raise HostError(f"guest: {error.filename or cache}: {error.strerror}; free space or set KDELTA_CACHE") from None
    return target
