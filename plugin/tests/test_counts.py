# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of known counts under the plugin: every figure exact, on each QEMU there is.

The expected figures follow from reading guest_x86_64.S and guest_aarch64.S. QEMU is the one on PATH, and also the one
that KDELTA_QEMU_ALT names (a qemu-system-x86_64 of 10 or later; its qemu-system-aarch64 is looked for beside it).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta import paths
from kdelta.attribution.profiles import Interval, read
from kdelta.errors import GuestError
from kdelta.machine.plugin import build, refusal

HERE = Path(__file__).resolve().parent
LIMIT_S = 60
X86 = "qemu-system-x86_64"
ARM64 = "qemu-system-aarch64"

COMMON = "-accel tcg -icount shift=0,sleep=off -smp 1 -nic none -display none -serial none -monitor none -no-reboot"
MACHINE = {
    X86: ["-M", "pc", "-m", "256", "-vga", "none", "-device", "isa-debug-exit,iobase=0xf4"],
    ARM64: ["-M", "virt", "-cpu", "max", "-m", "128"],
}
PASSED = {X86: 3, ARM64: 0}  # isa-debug-exit turns 1 into 3

# id: instructions, loads, stores, locked, taken branches, REP executions, REP bytes
X86_EXPECTED = {
    1: (5002, 2000, 2000, 1000, 999, 0, 0),
    2: (8, 0, 0, 0, 0, 3, 4096 + 512 * 8 + 0),
    3: (6, 0, 0, 0, 0, 2, 58 + 58),
    4: (3 + 20, 17, 7, 0, 0, 2, (1 << 20) + 16),
    5: (12 + 4 * 10, 4 + 4 * 13, 3 + 4 * 4, 0, 0, 0, 0),
    6: (7 + 6 * 10, 6 * 13, 6 * 4, 0, 0, 2, (4 * 512 - 1) * 8 + 4096),
    7: (6 + 2 * 10, 2 + 2 * 13, 2 * 4, 0, 0, 0, 0),
    0xDEADBEEF: (31, 10, 10, 0, 9, 0, 0),
    10: (401, 100, 0, 0, 99, 0, 0),
    11: (0, 0, 0, 0, 0, 0, 0),
    13: (2, 0, 0, 0, 0, 0, 0),
    15: (4, 4, 4, 4, 0, 0, 0),
    17: (10 + 3 + 7 + 5 + 6, 24 + 2, 24 + 2, 0, 0, 0, 0),
    18: (140, 33, 31, 0, 29, 1, 128),
    14: (2 + 10 * 9 + 5, 10 + 1, 1, 0, 9, 1, 8),
    21: (3, 2, 1, 0, 0, 0, 0),
    20: (10 + 4 * 10, 4 + 4 * 13, 1 + 4 * 4, 0, 0, 0, 0),
}
ARM64_EXPECTED = {
    1: (5002, 2000, 2000, 1000, 999, 0, 0),
    2: (755, 103, 102, 102, 149, 0, 0),
    3: (6 + 2 * 2, 1, 1, 0, 0, 0, 0),
    0xDEADBEEF: (31, 0, 10, 0, 9, 0, 0),
}

Run = tuple[dict[int, Interval], dict[str, int]]


def _beside(name: str) -> str | None:
    alternative = os.environ.get("KDELTA_QEMU_ALT")
    found = Path(alternative).with_name(name) if alternative else None
    return str(found) if found and found.is_file() else None


def _qemu(which: str, name: str) -> str:
    path = shutil.which(name) if which == "path" else _beside(name)
    if path is None:
        pytest.skip(f"no {name} on PATH" if which == "path" else f"no {name}: tools/fetch_qemu.py")
    if "supports only a minimum version" in (why := refusal(Path(path), build(paths.cache_dir()))):
        pytest.skip(f"{path}: {why}")
    return path


def _assemble(name: str, folder: Path, *defines: str, source: str = "") -> Path:
    prefix, usual, start, text = (
        ("", "guest_x86_64.S", "start32", "0x100000")
        if name == X86
        else ("aarch64-linux-gnu-", "guest_aarch64.S", "_start", "0x40080000")
    )
    if not shutil.which(f"{prefix}gcc"):
        pytest.skip(f"no {prefix}gcc to assemble the guest")
    made = folder / f"{name}.elf"
    flags = [
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,-N",
        "-Wl,--build-id=none",
        f"-Wl,-Ttext={text}",
        f"-Wl,-e,{start}",
        *defines,
    ]
    subprocess.run(
        [f"{prefix}gcc", *flags, "-o", str(made), str(HERE / (source or usual))], check=True, capture_output=True
    )
    return made


def _argv(qemu: str, name: str, guest: Path, plugin: Path, out: Path) -> list[str]:
    escaped = str(out).replace(",", ",,")
    return [qemu, *COMMON.split(), *MACHINE[name], "-kernel", str(guest), "-plugin", f"{plugin},out={escaped}"]


def _symbols(guest: Path) -> dict[str, int]:
    with guest.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        return {symbol.name: symbol["st_value"] for symbol in table.iter_symbols() if symbol.name}


@pytest.fixture(scope="session")
def plugin() -> Path:
    return build(paths.cache_dir())  # where set-up compiled it: to compile one takes 3.6 s of a processor


@pytest.fixture(scope="module", params=["path", "alternative"])
def run(request: pytest.FixtureRequest, plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    done: dict[str, Run] = {}

    def runner(name: str) -> Run:
        if name not in done:
            qemu = _qemu(request.param, name)
            folder = tmp_path_factory.mktemp("guest, with a comma")
            guest, out = _assemble(name, folder), folder / "counts"
            ended = subprocess.run(_argv(qemu, name, guest, plugin, out), timeout=LIMIT_S, capture_output=True)
            assert ended.returncode == PASSED[name], ended.stderr.decode()
            done[name] = {interval.id: interval for interval in read(out.read_bytes())}, _symbols(guest)
        return done[name]

    return runner


def _total(interval: Interval) -> tuple[int, ...]:
    return tuple(int(v) for v in interval.counts.sum(axis=0))


def _at(result: Run, ident: int, symbol: str) -> tuple[int, ...]:
    interval, address = result[0][ident], result[1][symbol]
    row = np.flatnonzero(interval.pcs == np.uint64(address))
    return tuple(int(v) for v in interval.counts[row].sum(axis=0))


@pytest.mark.parametrize("ident", X86_EXPECTED, ids=hex)
def test_every_x86_interval_has_the_counts_that_its_source_says(run: Callable[[str], Run], ident: int) -> None:
    assert _total(run(X86)[0][ident]) == X86_EXPECTED[ident]


@pytest.mark.parametrize("ident", ARM64_EXPECTED, ids=hex)
def test_every_arm64_interval_has_the_counts_that_its_source_says(run: Callable[[str], Run], ident: int) -> None:
    assert _total(run(ARM64)[0][ident]) == ARM64_EXPECTED[ident]


def test_lines_of_the_kernels_data_count_once_and_for_who_touched_them_first(run: Callable[[str], Run]) -> None:
    intervals, at = run(X86)
    touched, none = intervals[18].touched, intervals[1].touched
    assert touched is not None and none is not None
    high = 0xFFFFFFFF80000000
    expected = {high + at["touch_inc"]: 10, high + at["touch_across"]: 2, high + at["touch_rep"]: 2}
    assert {int(pc): int(lines) for pc, lines, _ in touched} == expected
    assert not len(none), "what lies in the lower half is no kernel's"


def test_the_intervals_are_those_that_were_marked_and_ended(run: Callable[[str], Run]) -> None:
    assert set(run(X86)[0]) == {*X86_EXPECTED, 9, 16, 22, 23}  # 12 was abandoned by the BEGIN of 13


def test_an_interrupted_rep_is_one_execution_also_when_its_handler_runs_the_same_instruction(
    run: Callable[[str], Run],
) -> None:
    assert _at(run(X86), 4, "copy_rep") == (2, 0, 0, 0, 0, 2, (1 << 20) + 16)


@pytest.mark.parametrize(
    ("ident", "symbol", "expected"),
    [
        (5, "fault_load", (1, 1, 0, 0, 0, 0, 0)),
        (5, "fault_store", (1, 0, 1, 0, 0, 0, 0)),
        (5, "fault_push", (1, 1, 1, 0, 0, 0, 0)),
        (5, "fault_call", (1, 0, 1, 0, 0, 0, 0)),
        (6, "fault_stosq", (1, 0, 0, 0, 0, 1, (4 * 512 - 1) * 8)),
        (6, "fault_movsb", (1, 0, 0, 0, 0, 1, 4096)),
        (7, "fault_jmp", (1, 1, 0, 0, 0, 0, 0)),
        (7, "fault_ret", (1, 1, 0, 0, 0, 0, 0)),
        (20, "fault_cmp", (1, 1, 0, 0, 0, 0, 0)),
        (20, "fault_add", (1, 1, 1, 0, 0, 0, 0)),
        (20, "fault_movzx", (1, 1, 0, 0, 0, 0, 0)),
        (20, "fault_pop", (1, 1, 0, 0, 0, 0, 0)),
        (10, "device_top", (100, 100, 0, 0, 0, 0, 0)),
        (14, "cross_load", (10, 10, 0, 0, 0, 0, 0)),
        (14, "crossing_branch", (10, 0, 0, 0, 9, 0, 0)),
        (14, "crossing_rep", (1, 0, 0, 0, 0, 1, 8)),
    ],
)
def test_an_instruction_that_qemu_starts_twice_or_alone_counts_once(
    run: Callable[[str], Run], ident: int, symbol: str, expected: tuple[int, ...]
) -> None:
    assert _at(run(X86), ident, symbol) == expected


def test_ticks_at_any_place_leave_the_branch_counts_exact(run: Callable[[str], Run]) -> None:
    result = run(X86)
    ticks = _at(result, 9, "timer_return")[0]
    assert ticks > 20
    assert _at(result, 9, "ticked_branch") == (300_000, 0, 0, 0, 299_999, 0, 0)
    assert _at(result, 9, "ticked_even") == (300_000, 0, 0, 0, 150_000, 0, 0)
    total = _total(result[0][9])
    assert total[0] == 1 + 300_000 * 4 + 150_000 + 7 * ticks
    assert total[4] == 299_999 + 150_000 + ticks


def test_ticks_are_charged_to_no_instruction_that_they_follow(run: Callable[[str], Run]) -> None:
    result = run(X86)
    ticks = _at(result, 16, "timer_return")[0]
    assert ticks > 50
    assert _at(result, 16, "returns") == (600_000, 600_000, 0, 0, 0, 0, 0)
    assert _at(result, 16, "ticked_call") == (300_000, 0, 300_000, 0, 0, 0, 0)
    assert _at(result, 16, "ticked_jump") == (300_000, 0, 0, 0, 0, 0, 0)
    assert _at(result, 16, "page_end_load") == (300_000, 300_000, 0, 0, 0, 0, 0)
    total = _total(result[0][16])
    assert total[:3] == (1 + 300_000 * 11 + 7 * ticks, 300_000 * 4 + 11 * ticks, 300_000 * 3 + ticks)


def test_what_follows_the_end_of_a_block_hides_no_execution_of_it(run: Callable[[str], Run]) -> None:
    """An interrupt behind a sysret that ran once in its block hid that of each system call: 0.3 % of getppid."""
    result = run(X86)
    each = 300_000
    for ident, instructions, stores, loads in (
        (22, 5, 0, {"ticked_clock": 0, "ticked_pause": 0, "ticked_hop": each}),
        (23, 29, 2, {"late_return": each, "ticked_sysret": 0, "ticked_return": each}),
    ):
        ticks = _at(result, ident, "timer_return")[0]
        assert ticks > 20
        assert {symbol: _at(result, ident, symbol) for symbol in loads} == {
            symbol: (each, own, 0, 0, 0, 0, 0) for symbol, own in loads.items()
        }
        total = _total(result[0][ident])
        assert (total[0], total[2]) == (1 + each * instructions + 7 * ticks, each * stores + ticks)


def test_several_tasks_are_refused_where_no_switch_was_ever_seen(plugin: Path, tmp_path: Path) -> None:
    guest, out = _assemble(X86, tmp_path, "-DBLIND"), tmp_path / "counts"
    done = subprocess.run(_argv(_qemu("path", X86), X86, guest, plugin, out), timeout=LIMIT_S, capture_output=True)
    assert done.returncode == PASSED[X86]
    with pytest.raises(GuestError, match="no task switch of this kernel was recognised"):
        read(out.read_bytes())


@pytest.mark.parametrize("which", ["path", "alternative"])
def test_what_runs_bare_before_the_intervals_changes_no_count(plugin: Path, tmp_path: Path, which: str) -> None:
    guest, out = _assemble(X86, tmp_path, "-DWITH_QUIET"), tmp_path / "counts"
    *argv, option = _argv(_qemu(which, X86), X86, guest, plugin, out)
    done = subprocess.run([*argv, f"{option},lazy=on"], timeout=LIMIT_S, capture_output=True)
    assert done.returncode == PASSED[X86], done.stderr.decode()
    counted = {interval.id: _total(interval) for interval in read(out.read_bytes())}
    assert {ident: counted.get(ident) for ident in X86_EXPECTED} == X86_EXPECTED


@pytest.mark.parametrize("lazy", ["", ",lazy=on"])
def test_an_interval_over_code_that_is_left_bare_is_refused(plugin: Path, tmp_path: Path, lazy: str) -> None:
    guest, out = _assemble(X86, tmp_path, "-DBARE"), tmp_path / "counts"
    *argv, option = _argv(_qemu("path", X86), X86, guest, plugin, out)
    done = subprocess.run([*argv, option + lazy], timeout=LIMIT_S, capture_output=True)
    assert done.returncode == PASSED[X86], done.stderr.decode()
    with pytest.raises(GuestError, match=r"nothing was instrumented|inside an interval"):
        read(out.read_bytes())


def test_a_killed_qemu_leaves_output_that_is_refused(plugin: Path, tmp_path: Path) -> None:
    qemu, out = _qemu("path", X86), tmp_path / "counts"
    endless = _assemble(X86, tmp_path)
    argv = [
        word for word in _argv(qemu, X86, endless, plugin, out) if "isa-debug-exit" not in word and word != "-device"
    ]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LIMIT_S
        while out.stat().st_size < 1000 if out.exists() else True:
            assert time.monotonic() < deadline and process.poll() is None, "the plugin wrote nothing"
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(LIMIT_S)
    with pytest.raises(GuestError, match=r"no trailer|cut off"):
        read(out.read_bytes())


@pytest.mark.parametrize(
    ("argument", "extra", "complaint"),
    [
        ("", [], "out=PATH is missing"),
        (",counted=off,out=OUT", [], "counted=off goes with no other argument"),
        (",speed=11", [], "unknown argument speed=11"),
        (",out=/nowhere/at/all", [], "cannot create /nowhere/at/all"),
        (",out=OUT", ["-smp", "2"], "one vCPU"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_a_reason(
    plugin: Path, tmp_path: Path, argument: str, extra: list[str], complaint: str
) -> None:
    qemu = _qemu("path", X86)
    words = ["-M", "pc", "-display", "none", "-nic", "none", *extra]
    option = f"{plugin}{argument}".replace("OUT", str(tmp_path / "counts"))
    ended = subprocess.run([qemu, *words, "-plugin", option], timeout=LIMIT_S, capture_output=True, text=True)
    assert ended.returncode != 0
    assert complaint in ended.stderr
