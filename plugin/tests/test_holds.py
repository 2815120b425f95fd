# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions between two places of a guest of known code (guest_x86_64.S): every hold exact, on each QEMU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from test_counts import LIMIT_S, PASSED, X86, _argv, _assemble, _qemu, _symbols

from kdelta import paths
from kdelta.attribution import holds
from kdelta.machine.plugin import build

# what, symbol, bytes before it, site, group; an instruction before each that takes is the call
PLACES = [
    ("ask", "loop_top", 7, 0, 0),
    ("acq", "loop_top", 0, 0, 0),
    ("rel", "loop_branch", 0, 0, 0),
    ("ask", "rep_movsb", 5, 1, 1),
    ("acq", "rep_movsb", 0, 1, 1),
    ("rel", "rep_nothing", 0, 0, 1),
    ("ask", "rep_cmpsb", 5, 2, 2),
    ("acq", "rep_cmpsb", 0, 2, 2),
    ("ask", "rep_scasb", 2, 3, 2),
    ("acq", "rep_scasb", 0, 3, 2),
]
AGAIN = ("ask", "loop_branch", 0, 0, 0)  # each turn of the loop comes from a call


def _run(which: str, plugin: Path, folder: Path, lines: list[str]) -> subprocess.CompletedProcess[str]:
    guest = _assemble(X86, folder)
    (folder / "sites").write_text("\n".join(["kdelta-hold-sites 2", *lines, ""]))
    argv = _argv(_qemu(which, X86), X86, guest, plugin, folder / "counts")
    argv[-1] += f",sites={folder / 'sites'},holds={folder / 'holds'}"
    return subprocess.run(argv, timeout=LIMIT_S, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def plugin() -> Path:
    return build(paths.cache_dir())  # where set-up compiled it: to compile one takes 3.6 s of a processor


@pytest.mark.parametrize("which", ["path", "alternative"])
@pytest.mark.parametrize(("more", "turns"), [([AGAIN], 1000), ([], 1)])
def test_each_hold_has_the_instructions_that_stand_between_its_places(
    which: str, more: list[tuple[str, str, int, int, int]], turns: int, plugin: Path, tmp_path: Path
) -> None:
    """Of 1000 turns of a loop whose first instruction stands behind a call, one comes from there."""
    symbols = _symbols(_assemble(X86, tmp_path))
    rows = [(symbols[name] - back, what, site, group) for what, name, back, site, group in [*PLACES, *more]]
    places = sorted(rows, key=lambda row: (row[0], ("acq", "rel", "ask").index(row[1])))
    ended = _run(which, plugin, tmp_path, [f"{what} {pc:x} {site} {group}" for pc, what, site, group in places])
    assert ended.returncode == PASSED[X86], ended.stderr
    found = holds.read((tmp_path / "holds").read_bytes())
    assert found[1].holds == {0: holds.Hold(count=turns, total=4 * turns, most=4)}
    assert found[2].holds == {1: holds.Hold(count=1, total=4, most=4)}  # a REP is one instruction
    assert (found[3].holds, found[3].unclear) == ({}, {2: 1})  # began twice, never ended
    assert found[4].holds == {}


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["acq 10"],
        ["acq 20 0 0", "rel 10 0 0"],
        ["ask 10 0 0", "rel 10 0 0"],
        ["take 10 0 0"],
        ["acq 10 99999999 0"],
    ],
)
def test_a_list_of_places_that_cannot_be_followed_is_refused(plugin: Path, tmp_path: Path, lines: list[str]) -> None:
    ended = _run("path", plugin, tmp_path, lines)
    assert ended.returncode != 0
    assert "is not a list of lock sites" in ended.stderr


def test_places_without_an_output_are_refused(plugin: Path, tmp_path: Path) -> None:
    argv = _argv(_qemu("path", X86), X86, _assemble(X86, tmp_path), plugin, tmp_path / "counts")
    argv[-1] += ",sites=nothing"
    ended = subprocess.run(argv, timeout=LIMIT_S, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "go together" in ended.stderr
