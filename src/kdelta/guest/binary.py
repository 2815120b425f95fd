# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest binary, compiled: one static program that is PID 1, the child of each case, and the native mode.

Everything is found by wildcard (guest/*.c, guest/workloads/*.c, guest/suites/SUITE/*.c); the user's own directories and
files may add workloads, cases and unmodified will-it-scale testcases, which guest/wis.h says how to build. Equal
sources, flags and compiler give the same file, kept in the cache under their hash.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from kdelta import digests, distributions
from kdelta.errors import HostError, KdeltaError, UserError
from kdelta.model import Arch
from kdelta.paths import shipped
from kdelta.spec import users

NAME = "kdelta-guest"
_STEP_LIMIT_S = 300

# Our warnings are for who changes the sources, before a commit: a compiler that came later knows more of them.
SILENT = ("-w",)
STRICT = ("-Wall", "-Wextra", "-Werror")
_COMMON = ("-O2", "-std=gnu11", "-fno-pie", "-pthread")
_OURS = (*_COMMON, "-D_GNU_SOURCE")
# What others wrote is compiled as they wrote it.
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
    raise HostError(f"guest: no C compiler for {arch}; install one with: sudo {distributions.install(packages)}")


def _shipped_units(guest: Path, warnings: Sequence[str]) -> list[_Unit]:
    flags = (*_OURS, *warnings)
    units = [_Unit(path, flags) for path in sorted([*guest.glob("*.c"), *guest.glob("workloads/*.c")])]
    for path in sorted(guest.glob("suites/*/*.c")):
        units.append(_Unit(path, (*flags, f"-DCASE_SUITE={path.parent.name}")))
    return units


def _testcase_units(guest: Path, path: Path, symbol: str) -> list[_Unit]:
    """A testcase, and what registers it."""
    defines = (f"-DWIS_SYMBOL={symbol}", f'-DWIS_NAME="{path.stem}"')
    return [
        _Unit(path, (*_COMMON, *_FOREIGN), wis_symbol=symbol, foreign=True),
        _Unit(guest / "wis.c", (*_OURS, *SILENT, *defines)),
    ]


def _users_units(guest: Path, own: Sequence[Path]) -> list[_Unit]:
    units: list[_Unit] = []
    symbols: dict[str, Path] = {}
    for path, kind in users.files(own):
        if kind != "testcase":
            units.append(_Unit(path, (*_COMMON, *_FOREIGN, f"-I{guest}"), foreign=True))
            continue
        if not re.fullmatch(r"[A-Za-z0-9_.+-]+", path.stem):
            raise UserError(f"testcase {path}: its name may have letters, digits and . _ + - only; rename it")
        symbol = re.sub(r"\W", "_", path.stem)
        if other := symbols.get(symbol):
            raise UserError(f"testcase {path}: its name is too similar to {other.name}; rename one of them")
        symbols[symbol] = path
        units += _testcase_units(guest, path, symbol)
    return units


def _included(tools: Toolchain, guest: Path, units: Sequence[_Unit]) -> list[Path]:
    """What the user's sources include but the system's headers, by the compiler's own word."""
    paths = sorted({unit.source for unit in units if unit.foreign})
    if not paths:
        return []
    argv = [tools.gcc, "-MM", "-D_GNU_SOURCE", f"-I{guest}", *map(str, paths)]
    said = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=_STEP_LIMIT_S, check=False)
    rules = said.stdout.replace("\\\n", " ")  # what does not compile is told by the compilation
    words = re.findall(r"(?:\\.|[^\s\\])+", rules)
    found = {Path(re.sub(r"\\(.)", r"\1", word)) for word in words if not word.endswith(":")}
    return sorted(path for path in found if path.is_file())


def own_files(arch: Arch, own: Sequence[Path]) -> list[Path]:
    """The C files that ``own`` stand for, and what they include but for the system's headers and ours.

    Raises:
        HostError: no compiler. UserError: see ``build``.
    """
    guest = shipped("guest")
    units = _users_units(guest, own)
    included = _included(toolchain(arch), guest, units)
    found = {unit.source for unit in units if unit.foreign} | {path for path in included if not _ours(path, guest)}
    return sorted(found)


def _ours(path: Path, guest: Path) -> bool:
    return path.resolve().is_relative_to(guest.resolve())


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:32]


def _parts(unit: _Unit, guest: Path) -> Iterator[bytes]:
    """What decides an object, but the compiler and headers; a moved checkout changes nothing."""
    flags = tuple(flag.replace(str(guest), "GUEST") for flag in unit.flags)
    yield from (unit.source.name.encode(), repr((flags, unit.wis_symbol)).encode(), unit.source.read_bytes())


def _files(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        yield from (path.name.encode(), path.read_bytes())


def _headers(guest: Path) -> list[Path]:
    return sorted(itertools.chain(guest.glob("*.h"), guest.glob("workloads/*.h"), guest.glob("suites/*/*.h")))


def _fingerprint(tools: Toolchain, units: Sequence[_Unit], guest: Path, data: Sequence[Path]) -> str:
    """Digest of all that decides the program."""
    head = (tools.version.encode(), repr((_LINK, _LIBRARIES)).encode())
    sources = itertools.chain.from_iterable(_parts(unit, guest) for unit in units)
    return _digest([*head, *sources, *_files([*_headers(guest), *_included(tools, guest, units), *data])])


def _run(argv: Sequence[str], log: Callable[[str], None]) -> str | None:
    """Run one step; None, or its complaint: the line that says what is wrong."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_STEP_LIMIT_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{Path(argv[0]).name} did not finish within {_STEP_LIMIT_S} s"
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


def _object(tools: Toolchain, unit: _Unit, target: Path, kept: Path | None, log: Callable[[str], None]) -> str | None:
    """Compile, or take the object that was ``kept`` by an earlier build."""
    if kept is not None and digests.is_whole(kept):
        shutil.copyfile(kept, target)
        return None
    complaint = _compile(tools, unit, target, log)
    if kept is not None and complaint is None:
        mine = kept.with_name(f".{target.parent.name}-{target.name}")  # they may be kept on another file system
        shutil.copyfile(target, mine)
        digests.keep(mine, kept)  # atomic: no other build sees half of it
    return complaint


def _kept(tools: Toolchain, guest: Path, units: Sequence[_Unit], folder: Path) -> list[Path | None]:
    """Where the objects of shipped sources are kept, so that a user's file costs its own compilation alone."""
    folder.mkdir(parents=True, exist_ok=True)
    shared = [tools.version.encode(), tools.arch.encode(), *_files(_headers(guest))]
    return [None if unit.foreign else folder / f"{_digest([*shared, *_parts(unit, guest)])}.o" for unit in units]


def _error(foreign: bool, complaint: str, log: Path) -> KdeltaError:
    kind = UserError if foreign else HostError
    return kind(
        f"guest: {'your workloads do' if foreign else 'the guest program does'} not compile: {complaint} ({log})"
    )


def _make(tools: Toolchain, units: Sequence[_Unit], kept: Sequence[Path | None], work: Path, log_path: Path) -> Path:
    def log(text: str) -> None:
        with log_path.open("a", encoding="utf-8") as file:
            file.write(text)

    objects = [work / f"{index}.o" for index in range(len(units))]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        one = lambda unit, target, old: _object(tools, unit, target, old, log)  # noqa: E731
        complaints = list(pool.map(one, units, objects, kept))
    for unit, complaint in zip(units, complaints, strict=True):
        if complaint:
            raise _error(unit.foreign, complaint, log_path)
    target = work / NAME
    complaint = _run((tools.gcc, *_LINK, *map(str, objects), *_LIBRARIES, "-o", str(target)), log)
    if complaint and re.search(r"cannot find -l", complaint):
        remedy = distributions.install(tools.packages)
        raise HostError(f"guest: {complaint}; install the static C library with: sudo {remedy}")
    if complaint:
        raise _error(any(unit.foreign for unit in units), complaint, log_path)
    return target


def build(
    arch: Arch,
    own: Sequence[Path] = (),
    *,
    cache: Path,
    data: Sequence[Path] = (),
    warnings: Sequence[str] = SILENT,
) -> Path:
    """The guest binary for ``arch``, from the cache when nothing has changed and it is whole.

    Args:
        own: directories and C files of the user's: workloads, cases, will-it-scale testcases.
        cache: the cache directory; the result is ``cache/guest/HASH/kdelta-guest``.
        data: data files of the user's workloads: a changed one makes another guest.
        warnings: what the compiler warns of in our sources.

    Raises:
        HostError: no compiler, no static C library, or our own sources do not compile.
        UserError: the user's sources do not compile.
    """
    tools = toolchain(arch)
    guest = shipped("guest")
    units = _shipped_units(guest, warnings) + _users_units(guest, own)
    try:
        folder = cache / "guest" / _fingerprint(tools, units, guest, data)
        target = folder / NAME
        if digests.is_whole(target):
            return target
        folder.mkdir(parents=True, exist_ok=True)
        kept = _kept(tools, guest, units, cache / "guest" / "objects")
        with tempfile.TemporaryDirectory(dir=folder) as work:
            # The move is atomic: a build that was cut short, or one that runs beside this one, is never seen half.
            digests.keep(_make(tools, units, kept, Path(work), folder / "build.log"), target)
    except OSError as error:
        raise HostError(f"guest: {error.filename or cache}: {error.strerror}; free space or set KDELTA_CACHE") from None
    return target
