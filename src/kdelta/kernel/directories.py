# SPDX-License-Identifier: GPL-2.0-or-later
"""In which directory of the source a kernel's functions are, read from the objects that its build left.

A shipped image does not say: it has no DWARF. Of a kernel built here the objects lie in its build folder, one a source
file; they are those of the last patch built there, which moves no function of another one's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from kdelta.errors import HostError
from kdelta.kernel import elf, sandbox, source
from kdelta.kernel.spelling import fold
from kdelta.model import Kernel
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec

_NOT_KERNEL = ("scripts", "tools", "samples")
_DEPTH = 2  # components of a directory that are told apart: net/unix, arch/x86


def _objects(folder: Path) -> Iterator[tuple[str, Path]]:
    """(directory, object) of every object of the kernel; the whole of vmlinux lies above them."""
    for path in sorted(folder.rglob("*.o")):
        parts = path.relative_to(folder).parts
        if len(parts) > 1 and parts[0] not in _NOT_KERNEL and not path.name.startswith("."):
            yield "/".join(parts[:-1][:_DEPTH]), path


def of_objects(folder: Path, functions: Iterable[str]) -> dict[str, str]:
    """The directory of each of ``functions`` that an object below ``folder`` defines; the most frequent of several."""
    wanted = frozenset(functions)
    seen: dict[str, Counter[str]] = {}
    for directory, path in _objects(folder):
        try:
            names = elf.functions(elf.parse(path.read_bytes()))[1]
        except (OSError, elf.ElfError):
            continue  # of another architecture's helpers, or being rewritten: its functions stay unknown
        for name in {fold(name) for name in names} & wanted:
            seen.setdefault(name, Counter())[directory] += 1
    return {name: min(found, key=lambda d: (-found[d], d)) for name, found in seen.items()}


def beside(folder: Path, functions: Iterable[str]) -> frozenset[str]:
    """All functions of the objects below ``folder`` that define one of ``functions``."""
    wanted, found = frozenset(functions), set[str]()
    for _, path in _objects(folder):
        try:
            names = {fold(name) for name in elf.functions(elf.parse(path.read_bytes()))[1]}
        except (OSError, elf.ElfError):
            continue  # as of_objects()
        found |= names if names & wanted else set()
    return frozenset(found)


def functions_of(folder: Path, sources: Iterable[str]) -> frozenset[str]:
    """All functions that the objects of these source files define; of a file that the config does not build none.

    Raises:
        HostError: an object that cannot be read, or that is a link.
    """
    found: set[str] = set()
    for name in sources:
        path = (folder / name).with_suffix(".o")
        if not name.endswith((".c", ".S")) or not path.exists():
            continue
        try:
            symbols = elf.functions(elf.parse(sandbox.plain(path).read_bytes()))[1]
        except (OSError, elf.ElfError) as error:
            raise HostError(f"{path}: {error}") from None
        found |= {fold(symbol) for symbol in symbols if not symbol.startswith(("__pfx_", "__cfi_"))}
    return frozenset(found)


def of(spec: KernelSpec, kernel: Kernel, functions: Iterable[str]) -> tuple[dict[str, str], str]:
    """(the directory of each function that is known, a sentence about what is known)."""
    folder = source.objects(spec) if spec.kind in BUILT_KINDS else None
    if folder is None:
        return {}, (
            f"The directories of {kernel.label}'s functions are not known: its image has no debug information. "
            "Those of a kernel built from source (src:...) are."
        )
    names = list(functions)
    found = of_objects(folder, names)
    return found, f"Directories are known for {len(found)} of {len(names)} functions, from the objects of the build."
