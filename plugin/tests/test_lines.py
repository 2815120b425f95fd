# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest of several CPUs and known transfers under the plugin: every figure follows from reading lines_x86_64.S."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from test_counts import COMMON, HERE, LIMIT_S, MACHINE, PASSED, X86, _qemu, _symbols

from kdelta import paths
from kdelta.attribution import lines, profiles
from kdelta.machine.plugin import build

HIGH = 0xFFFFFFFF80000000
ROUNDS = 100
CPUS = (2, 4, 8)


class Result:
    """What a run of the guest gave."""

    def __init__(self, folder: Path, symbols: dict[str, int]) -> None:
        self.symbols = symbols
        self.file = lines.read((folder / "lines").read_bytes())
        self.moves = {one.id: one for one in self.file.intervals}
        self.counts = {one.id: one for one in profiles.read((folder / "counts").read_bytes())}
        self.said = np.frombuffer((folder / "said").read_bytes(), "<u8").tolist()

    def by_site(self, ident: int) -> dict[str, tuple[int, int]]:
        """Reads and writes of the interval by the symbol of the instruction."""
        names = {address: name for name, address in self.symbols.items()}
        found: dict[str, tuple[int, int]] = {}
        for row in self.moves[ident].transfers:
            name = names.get(int(row["pc"]), "")
            reads, writes = found.get(name, (0, 0))
            found[name] = (reads + int(row["reads"]), writes + int(row["writes"]))
        return found

    def executed(self, ident: int, symbol: str) -> int:
        """How often the instruction at ``symbol`` ran, on all CPUs."""
        interval = self.counts[ident]
        row = np.flatnonzero(interval.pcs == np.uint64(self.symbols[symbol]))
        return int(interval.counts[row, 0].sum())


def _facts(at: Mapping[str, int]) -> bytes:
    """What the host tells the plugin of this guest: struct pages of 64 bytes, and two functions that act for others."""
    slab = (at["caches"], at["page_base"], at["direct_base"], 64, 8, 16, 0, 8, 16)
    spans = ((at["take"], at["take_end"]), (at["slow"], at["slow_end"]))
    lines = [f"slab {' '.join(f'{word:x}' for word in slab)}", *(f"caller {low:x} {high:x}" for low, high in spans)]
    return "\n".join(["kdelta-kernel 1", *lines, ""]).encode()


def start(
    qemu: str, plugin: Path, folder: Path, cpus: int, name: str = "lines_x86_64.S"
) -> subprocess.CompletedProcess[str]:
    """A guest of ``cpus``, until it ends; what it gave lies in ``folder``."""
    guest = folder / "guest.elf"
    linked = ["-Wl,-N", "-Wl,--build-id=none", "-Wl,-Ttext=0x100000", "-Wl,-e,start32"]
    source = str(HERE / name)
    subprocess.run(
        ["gcc", "-nostdlib", "-static", "-no-pie", *linked, f"-DCPUS={cpus}", "-o", str(guest), source],
        check=True,
        capture_output=True,
    )
    machine = [*COMMON.replace("-smp 1", f"-smp {cpus}").split(), *MACHINE[X86]]
    said = ["-chardev", f"file,id=said,path={folder / 'said'}", "-device", "isa-debugcon,iobase=0xe9,chardev=said"]
    option = f"{plugin},out={folder / 'counts'},lines={folder / 'lines'}"
    if "caches" in (symbols := _symbols(guest)):
        (folder / "facts").write_bytes(_facts(symbols))
        option += f",kernel={folder / 'facts'}"
    argv = [qemu, *machine, *said, "-kernel", str(guest), "-plugin", option]
    return subprocess.run(argv, timeout=LIMIT_S, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def plugin() -> Path:
    return build(paths.cache_dir())  # where set-up compiled it: to compile one takes 3.6 s of a processor


@pytest.fixture(scope="module", params=CPUS)
def run(request: pytest.FixtureRequest, plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("lines")
    ended = start(_qemu("alternative", X86), plugin, folder, request.param)
    assert ended.returncode == PASSED[X86], ended.stderr
    return Result(folder, _symbols(folder / "guest.elf"))


def test_a_cell_that_two_cpus_add_to_in_turn_moves_twice_a_round(run: Result) -> None:
    assert run.by_site(1) == {"locked_add": (0, 2 * ROUNDS - 1)}
    (line,) = run.moves[1].lines
    assert int(line["address"]) == HIGH + run.symbols["shared"]
    assert (int(line["written"]), int(line["shared"]), int(line["cpus"])) == (0xFF, 0xFF, 3)


def test_cpus_that_ran_code_of_their_own_for_long_are_told_apart_where_they_share_some(
    plugin: Path, tmp_path: Path
) -> None:
    """Each had agreed with QEMU's number, 4096 times, in blocks that it had translated itself."""
    ended = start(_qemu("alternative", X86), plugin, tmp_path, 2, "apart_x86_64.S")
    assert ended.returncode == PASSED[X86], ended.stderr
    found = Result(tmp_path, _symbols(tmp_path / "guest.elf"))
    assert found.by_site(1) == {"locked_add": (0, 2 * ROUNDS - 1)}


def test_a_word_read_and_answered_moves_once_for_each(run: Result) -> None:
    found = run.by_site(2)
    assert found.pop("answer") == (0, 2 * ROUNDS)
    assert [reads for reads, _ in found.values()] == [2 * ROUNDS]
    assert [writes for _, writes in found.values()] == [0]


def test_two_words_of_one_line_move_it_and_no_byte_is_shared(run: Result) -> None:
    assert run.by_site(3) == {"false_share": (0, 2 * ROUNDS - 1)}
    (line,) = run.moves[3].lines
    assert (int(line["written"]), int(line["shared"])) == (0xFFFF << 16, 0)


def test_lines_of_one_cpu_never_move(run: Result) -> None:
    assert run.moves[4].total == 0
    assert run.executed(4, "private_add") == ROUNDS * run.file.cpus


def test_each_reader_of_what_one_cpu_wrote_is_a_transfer(run: Result) -> None:
    others = run.file.cpus - 1
    assert run.by_site(5) == {"publish": (0, ROUNDS - 1), "consume": (ROUNDS * others, 0)}


def test_what_a_lock_protects_moves_as_often_as_the_lock_changes_hands(run: Result) -> None:
    found = run.by_site(6)
    # The first holder finds the line with nobody, and reads what no CPU of this interval wrote.
    assert run.said[0] > run.file.cpus
    assert found["protected_read"] == (run.said[0] - 1, 0)
    assert found["protected_write"][0] == 0
    assert found["test_and_set"][1] > run.said[0]  # also those that find it taken take its line
    assert sum(int(row["shared"]) != 0 for row in run.moves[6].lines) == 2


def test_who_takes_a_lock_is_told_of_its_function_and_of_its_slow_path(run: Result) -> None:
    at, half = run.symbols, ROUNDS  # of two CPUs half of their rounds each
    entries = {tuple(row.tolist()) for row in run.moves[7].entries}
    assert entries == {
        (at["take"], at["call_quickly"], at["call_quickly"], half),
        (at["take"], at["call_slowly"], at["call_slowly"], half),
        (at["slow"], at["call_slow_path"], at["call_slowly"], half),
    }
    found: dict[tuple[str, int], int] = {}
    for row in run.moves[7].transfers:
        where = "slow" if at["slow"] <= int(row["pc"]) < at["slow_end"] else "take"
        found[where, int(row["caller"])] = found.get((where, int(row["caller"])), 0) + int(row["writes"])
    assert found == {("take", at["call_quickly"]): half - 1, ("take", at["call_slowly"]): half}
    assert not any(row["caller"] for row in run.moves[1].transfers), "who is not listed acts for itself"


def test_a_line_that_was_allocated_has_its_slab_cache(run: Result) -> None:
    at, shared = run.symbols, HIGH + run.symbols["shared"]
    assert run.moves[1].caches == {at["cache"]: lines.Cache(name="kmalloc-64", size=64)}
    assert run.moves[1].slabs[shared] == (at["cache"], 4096 + at["shared"] % 4096)
    assert run.moves[1].vmemmap


@pytest.mark.parametrize(
    "text", ["", "kdelta-kernel 2\n", "kdelta-kernel 1\ncaller 20 10\n", "kdelta-kernel 1\nslab 1\n"]
)
def test_what_describes_no_kernel_is_refused(plugin: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "facts").write_text(text)
    option = f"{plugin},out={tmp_path / 'counts'},lines={tmp_path / 'l'},kernel={tmp_path / 'facts'}"
    argv = [_qemu("alternative", X86), "-M", "pc", "-smp", "2", "-display", "none", "-plugin", option]
    ended = subprocess.run(argv, timeout=LIMIT_S, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "is no description of a kernel" in ended.stderr


def test_the_same_run_gives_the_same_bytes(run: Result, plugin: Path, tmp_path: Path) -> None:
    if run.file.cpus != 4:
        pytest.skip("once is enough")
    ended = start(_qemu("alternative", X86), plugin, tmp_path, 4)
    assert ended.returncode == PASSED[X86], ended.stderr
    again = lines.read((tmp_path / "lines").read_bytes())
    for one, other in zip(run.file.intervals, again.intervals, strict=True):
        assert one.transfers.tobytes() == other.transfers.tobytes()


def test_a_qemu_that_cannot_tell_its_cpus_is_refused(plugin: Path, tmp_path: Path) -> None:
    qemu = _qemu("path", X86)
    version = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=True).stdout
    if "version 7." not in version and "version 8." not in version:
        pytest.skip("the QEMU on PATH can")
    ended = start(qemu, plugin, tmp_path, 2)
    assert ended.returncode != 0
    assert "with several CPUs QEMU 9.0 or later is needed" in ended.stderr


@pytest.mark.parametrize("other", ["sites=x,holds=y", "entries=x"])
def test_locks_and_calls_are_not_followed_with_lines(plugin: Path, tmp_path: Path, other: str) -> None:
    option = f"{plugin},out={tmp_path / 'counts'},lines={tmp_path / 'l'},{other}"
    argv = [_qemu("path", X86), "-M", "pc", "-display", "none", "-plugin", option]
    ended = subprocess.run(argv, timeout=LIMIT_S, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "lines=PATH excludes" in ended.stderr
