# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel whose tables only it can read is asked in a guest."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta import digests
from kdelta.experiment import functions, survey
from kdelta.experiment.programs import programs_for
from kdelta.kernel import elf, kallsyms, naming, symbols
from kdelta.kernel.resolve import resolve
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel, MachineOptions

DIGITS = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00"


def reordered(data: bytes) -> bytes:
    """``data`` with tokens 0 and 1 of its kallsyms exchanged, in the table and in all names: the same to the kernel."""
    tables = kallsyms._find(data)
    out = bytearray(data)
    at = data.index(DIGITS, tables.names_at)
    out[at : at + 4] = b"1\x000\x00"
    swap = bytes.maketrans(b"01", b"10")
    at = tables.names_at
    for _ in range(tables.count):
        length = data[at]
        at += 1
        if length & 0x80:
            length = (length & 0x7F) | data[at] << 7
            at += 1
        out[at : at + length] = data[at : at + length].translate(swap)
        at += length
    return bytes(out)


@pytest.fixture
def unreadable(tmp_path: Path, cache: Path) -> Path:
    plain = resolve(parse_kernel("debian:6.12/cloud")).vmlinux_path
    assert plain is not None
    (tmp_path / "vmlinux").write_bytes(reordered(Path(plain).read_bytes()))
    return tmp_path / "vmlinux"


def _forget(kernel: Kernel) -> None:
    path = naming.image_path(kernel)
    assert path is not None
    for stored in naming.cached_path(path).parent.glob(f"{digests.of_file(path)}*"):
        stored.unlink()


@pytest.mark.full
def test_names_that_only_the_kernel_can_read_come_from_its_guest(
    unreadable: Path,
    answer: Callable[..., dict],  # type: ignore[type-arg]
) -> None:
    kernel = resolve(parse_kernel(str(unreadable)))
    _forget(kernel)
    assert isinstance(naming.load(kernel), symbols.NoSymbols)
    original = naming.load(resolve(parse_kernel("debian:6.12/cloud")))
    pair = (f"a={unreadable}", f"b={unreadable},cmdline=init_on_alloc=0")
    result = answer("compare", *pair, "--case", "pidfd_open", "--seeds", "8")
    told = naming.load(kernel)
    assert isinstance(told, symbols.SymbolTable) and isinstance(original, symbols.SymbolTable)
    assert told.source == "guest"
    assert (told.addresses_le, told.text) == (original.addresses_le, original.text)
    functions = [delta["function"] for row in result["results"] for delta in row["because"]]
    assert any(name.startswith("memset") for name in functions), functions


SERIES = [f"debian:{one}" for one in ("6.1", "6.12", "6.16", "6.17", "6.18", "6.19", "7.0", "7.1", "7.2", "7.3")]
FLAVOURS = ["debian:6.12/cloud", "debian:7.3/cloud", "debian:6.12/rt", "debian:6.12/cloud,arch=arm64"]


def _stripped(spec: str, folder: Path) -> Kernel:
    """An own build without its symbol table, named by path."""
    built = resolve(parse_kernel(spec))
    subprocess.run(["strip", "-o", str(folder / "vmlinux"), built.image_path], check=True)
    return resolve(parse_kernel(str(folder / "vmlinux")))


@pytest.mark.full
@pytest.mark.parametrize("spec", [*SERIES, *FLAVOURS, "src:debian:6.12", "src:debian:7.2"])
def test_all_names_are_those_that_the_running_kernel_tells(spec: str, tmp_path: Path, cache: Path) -> None:
    kernel = _stripped(spec, tmp_path) if spec.startswith("src:") else resolve(parse_kernel(spec))
    table = naming.load(kernel)
    assert isinstance(table, symbols.SymbolTable) and table.source == "kallsyms"
    programs, options = programs_for((kernel,), ()), MachineOptions()
    ground = survey.survey((kernel,), "off", "", programs)
    said = functions.ask(survey.site((kernel,), options, "timed", programs, ground), kernel)
    assert isinstance(said, bytes)
    told: dict[int, set[str]] = {}
    for line in said.decode().splitlines():
        address, _, name = line.split(" ")
        if any(low <= int(address, 16) < high for low, high in table.ranges):
            told.setdefault(int(address, 16), set()).add(name)
    bounds = set(elf.BOUNDS)
    told = {address: names for address, names in told.items() if names - bounds}
    wrong = [(hex(a), n) for a, n in zip(table.addresses.tolist(), table.all_names, strict=True) if n not in told[a]]
    assert not wrong
    assert set(table.addresses.tolist()) == told.keys()
    assert len(table) > 30_000
