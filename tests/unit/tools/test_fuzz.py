# SPDX-License-Identifier: GPL-2.0-or-later
"""A short round of every fuzzing target: inputs that once broke one, and a few hundred more, the same each time."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fuzz
import fuzz_counts
import fuzz_guest
import fuzz_native
import fuzz_one
import fuzz_targets
from kdelta.attribution import lines, profiles
from kdelta.errors import KdeltaError
from kdelta.guest import protocol

INPUTS = 150


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_nothing_that_is_read_raises_what_it_does_not_declare(name: str) -> None:
    dice = random.Random(name)
    seeds = fuzz_targets.seeds(name)
    assert seeds, f"{name} has no seed"
    for data in seeds:
        fuzz_targets.run(name, data)
    for number in range(INPUTS):
        fuzz_targets.run(name, fuzz_targets.mutated(seeds[number % len(seeds)], dice))


def _grown(data: bytes) -> Iterator[bytes]:
    """More digits than Python reads, and brackets deeper than it recurses: longer than what a fuzzer tries."""
    for match in itertools.islice(re.finditer(rb"\d+|[\[({<]", data), 12):
        grown = b"9" * 5000 if match[0].isdigit() else match[0] * 3000
        yield data[: match.start()] + grown + data[match.end() :]


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_numbers_and_nesting_without_end_raise_nothing_else(name: str) -> None:
    for data in _grown(fuzz_targets.seeds(name)[0]):
        fuzz_targets.run(name, data)


def _is_taken(name: str, data: bytes) -> bool:
    try:
        fuzz_targets.TARGETS[name](data)
    except fuzz_one.DECLARED:
        return False
    return True


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_inputs_are_made_of_one_that_is_read_to_its_end(name: str) -> None:
    assert any(_is_taken(name, data) for data in fuzz_targets.seeds(name)), "all are refused: what follows is not tried"


def test_what_is_sealed_passes_its_checksums() -> None:
    run = fuzz_targets.seeds("records-sealed")[0]
    assert protocol.parse(fuzz_guest.sealed_records(run)).state == "ok"
    counts = fuzz_targets.seeds("counts-sealed")[0]
    first, second = profiles.read(fuzz_guest.sealed_counts(counts))
    assert first.stacks is not None and first.system_calls is not None and second.id == 2
    moves = fuzz_targets.seeds("moves-sealed")[0]
    assert lines.read(fuzz_guest.sealed_moves(moves)).intervals[0].total == 9


@pytest.mark.parametrize("begin", [b"[", b'{"x":[', b"\x91", b"\x81\xa1x\x91"], ids=repr)
@pytest.mark.parametrize("name", ["answer", "sent-build", "sent-kernel", "sent-outcome"])
def test_what_is_nested_too_deeply_is_refused_in_a_word(name: str, begin: bytes) -> None:
    with pytest.raises(KdeltaError):
        fuzz_targets.TARGETS[name](begin + begin[-1:] * 100_000)


@pytest.mark.parametrize("name", fuzz_native.LINKED)
def test_nothing_that_is_read_in_c_reaches_beyond_its_memory(name: str, tmp_path: Path) -> None:
    fuzz_native.build(name, tmp_path / "program", alone=True)
    dice = random.Random(name)
    inputs = fuzz_native.seeds(name)
    inputs += [fuzz_targets.mutated(inputs[number % len(inputs)], dice) for number in range(INPUTS)]
    for number, data in enumerate(inputs):
        (tmp_path / f"{number:03}").write_bytes(data)
    files = sorted(str(path) for path in tmp_path.glob("[0-9]*"))
    done = subprocess.run([tmp_path / "program", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_target_that_breaks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> None:
        raise IndexError(data[0])

    monkeypatch.setitem(fuzz_targets.TARGETS, "records", broken)
    with pytest.raises(IndexError):
        fuzz_targets.run("records", b"x")


def test_clean_inputs_add_up_over_runs_and_begin_anew_with_one_that_breaks(tmp_path: Path) -> None:
    assert fuzz_counts.clean(tmp_path) == {}
    assert [fuzz_counts.add(tmp_path, "mail", 700, broke) for broke in (False, False, True, False)] == [
        700,
        1400,
        0,
        700,
    ]
    fuzz_counts.add(tmp_path, "elf", 1_200_000, broke=False)
    assert fuzz_counts.clean(tmp_path) == {"mail": 700, "elf": 1_200_000}
    assert fuzz_counts.table(fuzz_counts.clean(tmp_path), ["plugin-sites"], ["elf"]).splitlines()[2:] == [
        "| plugin-sites | C | 0 |",
        "| elf | Python | 1,200,000 |",
    ]


def test_on_a_new_machine_counts_go_on_from_the_document(tmp_path: Path) -> None:
    document = fuzz_counts.table({"mail": 700, "elf": 1_200_000}, ["plugin-sites"], ["elf", "mail"])
    fuzz_counts.add(tmp_path / "new", "mail", 5, broke=True)  # of its own: what broke here is not clean elsewhere
    fuzz_counts.go_on(tmp_path / "new", document)
    assert fuzz_counts.clean(tmp_path / "new") == {"plugin-sites": 0, "elf": 1_200_000, "mail": 0}
    assert fuzz_counts.add(tmp_path / "new", "elf", 300, broke=False) == 1_200_300


def test_what_took_long_once_is_no_hang(tmp_path: Path) -> None:
    """A fuzzer that was stopped for longer than an input may take told one of it."""
    program = [sys.executable, "-c", "import sys; sys.exit(open(sys.argv[2]).read() == 'hangs')"]
    hangs, ends = tmp_path / "timeout-1", tmp_path / "timeout-2"
    hangs.write_text("hangs")
    ends.write_text("ends")
    assert fuzz.hung(program, 9, hangs) and hangs.exists()
    assert not fuzz.hung(program, 9, ends) and not ends.exists()
