# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest of known calls under the plugin: every tree follows from reading stacks_x86_64.S."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from test_counts import COMMON, HERE, LIMIT_S, MACHINE, PASSED, X86, _assemble, _qemu, _symbols

from kdelta import paths
from kdelta.attribution.profiles import Interval, read
from kdelta.machine.plugin import build

HIGH = 0xFFFFFFFF80000000
TICKED = 120_000
# As enum function_role in stacks.h; what is not named here is a function.
ROLES = {"split_cold": "part", "return_thunk": "part", "functions_end": "end"}
FUNCTIONS = ("make_task", "switch_to", *re.findall(r"FUNCTION\((\w+)\):", (HERE / "stacks_x86_64.S").read_text()))

# interval: call stack -> instructions of the last function itself, and how often it was entered there
EXPECTED: dict[int, dict[str, tuple[int, int]]] = {
    1: {
        "top": (10, 1),
        "top leaf": (8, 4),
        "top tail": (2, 1),
        "top thunk": (3, 1),
        "top split": (3, 1),
        "top split split_cold": (3, 1),
        "top split split_cold leaf": (2, 1),
        "top recur": (4, 1),
        "top recur return_thunk": (1, 1),
        "top recur recur": (4, 1),
        "top recur recur return_thunk": (1, 1),
        "top recur recur recur": (3, 1),
        "top recur recur recur return_thunk": (1, 1),
        "top filler": (4, 1),
    },
    3: {
        "faulting": (7, 1),
        "faulting leaf": (2, 1),
        "faulting page_fault": (22, 2),
        "faulting page_fault leaf": (4, 2),
    },
    4: {
        "asks": (4, 1),
        "asks leaf": (2, 1),
        "asks give": (10, 2),
        "asks give switch_to": (6, 2),
        "spin": (3, 1),
        "spin spin_inner": (7, 2),
        "spin spin_inner yields": (9, 2),
        "spin spin_inner yields switch_to": (6, 2),
    },
}


class Result:
    """What a run of the guest gave."""

    def __init__(self, counts: bytes, symbols: dict[str, int]) -> None:
        self.names = {HIGH + symbols[name]: name for name in FUNCTIONS}
        self.intervals = {one.id: one for one in read(counts)}

    def tree(self, ident: int) -> dict[str, tuple[int, int]]:
        """By call stack what its last function did itself."""
        table = self.intervals[ident].stacks
        assert table is not None
        paths = [""]
        found = {}
        for parent, function, instructions, calls in table[1:].tolist():
            paths.append(f"{paths[parent]} {self.names[function % 2**64]}".strip())
            found[paths[-1]] = (instructions, calls)
        return found

    def lost(self, ident: int) -> int:
        """Calls and functions of the interval for which there was no room."""
        table = self.intervals[ident].stacks
        assert table is not None
        return int(table[0, 3])


def kernel(interval: Interval) -> int:
    """Instructions in the upper half."""
    return int(interval.counts[interval.pcs >= np.uint64(1 << 63), 0].sum())


def run(which: str, plugin: Path, folder: Path, timer: str = "irq") -> Result:
    guest = _assemble(X86, folder, *(["-DSTUB"] if timer == "vector" else []), source="stacks_x86_64.S")
    symbols = _symbols(guest)
    at = {name: f"{HIGH + symbols[name]:x}" for name in FUNCTIONS}
    entries = [
        f"call {at['make_task']} 0",
        f"fault {at['page_fault']} 2",
        *([f"irq {at['timer']} 1"] * (timer != "entry")),
    ]
    entries.sort(key=lambda line: line.split()[1])
    (folder / "entries").write_text("\n".join(["kdelta-entries 1", *entries, ""]))
    roles = ROLES | {"stubs": "vector"} | ({"timer": "entry"} if timer == "entry" else {})
    placed = sorted((at[name], roles.get(name, "function")) for name in FUNCTIONS)
    (folder / "functions").write_text("\n".join(["kdelta-functions 1", *map(" ".join, placed), ""]))
    option = f"{plugin},out={folder / 'counts'},entries={folder / 'entries'},functions={folder / 'functions'}"
    argv = [_qemu(which, X86), *COMMON.split(), *MACHINE[X86], "-kernel", str(guest), "-plugin", option]
    ended = subprocess.run(argv, timeout=LIMIT_S, capture_output=True, text=True, check=False)
    assert ended.returncode == PASSED[X86], ended.stderr
    return Result((folder / "counts").read_bytes(), symbols)


@pytest.mark.parametrize("which", ["path", "alternative"])
@pytest.mark.parametrize("ident", EXPECTED)
def test_instructions_lie_under_the_calls_that_led_to_them(results: dict[str, Result], which: str, ident: int) -> None:
    assert results[which].tree(ident) == EXPECTED[ident]


@pytest.mark.parametrize("which", ["path", "alternative", "entry", "vector"])
def test_ticks_between_any_two_blocks_move_no_call(results: dict[str, Result], which: str) -> None:
    tree = results[which].tree(2)
    ticked = {
        "ticked": 3 + 5 * TICKED,
        "ticked leaf": 6 * TICKED,
        "ticked thunk": 3 * TICKED,
        "ticked tail": 2 * TICKED,
    }
    calls = {"ticked": 1, "ticked leaf": 3 * TICKED, "ticked thunk": TICKED, "ticked tail": TICKED}
    assert {path: tree[path] for path in ticked} == {path: (n, calls[path]) for path, n in ticked.items()}
    ticks = Counter[str]()
    for path, (instructions, entered) in tree.items():
        under, _, handler = path.replace(" stubs", "").partition(" timer")
        if path in ticked:
            continue
        if path.endswith(" stubs"):
            assert which == "vector" and instructions > 0
            continue
        assert under in ticked and handler in ("", " handle")
        assert instructions == entered * (3 if handler else 4)
        ticks[handler] += entered
    assert ticks[""] == ticks[" handle"] > 50
    assert len({path for path in tree if path.endswith(" timer")}) > 1


def test_the_tree_holds_each_instruction_of_the_kernel_once(results: dict[str, Result]) -> None:
    for ident, interval in results["path"].intervals.items():
        assert interval.stacks is not None
        assert int(interval.stacks[:, 2].sum()) == kernel(interval), ident
        assert bool(results["path"].lost(ident)) == (ident == 5)


def test_calls_too_deep_to_follow_are_told_and_what_follows_is_right(results: dict[str, Result]) -> None:
    tree = results["path"].tree(5)
    assert results["path"].lost(5) > 700
    assert tree["deep leaf"] == (2, 1)
    assert max(path.count("recur ") for path in tree) <= 256


@pytest.fixture(scope="session")
def plugin() -> Path:
    return build(paths.cache_dir())  # where set-up compiled it: to compile one takes 3.6 s of a processor


@pytest.fixture(scope="module")
def results(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    found = {which: run(which, plugin, tmp_path_factory.mktemp(which)) for which in ("path", "alternative")}
    others = {timer: run("path", plugin, tmp_path_factory.mktemp(timer), timer) for timer in ("entry", "vector")}
    return found | others


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kdelta-functions 1\n",
        "kdelta-functions 1\n10 role\n",
        "functions 1\n10 part\n",
        "kdelta-functions 1\n10 part\n10 part\n",
        "kdelta-functions 1\nx part\n",
    ],
)
def test_a_list_of_functions_that_cannot_be_read_is_refused(plugin: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "entries").write_text("kdelta-entries 1\ncall 10 0\n")
    (tmp_path / "functions").write_text(text)
    assert "is no list of functions" in _refusal(plugin, tmp_path, "entries", "functions")


def test_functions_are_followed_from_where_the_kernel_is_entered(plugin: Path, tmp_path: Path) -> None:
    assert "functions=PATH takes entries=PATH" in _refusal(plugin, tmp_path, "functions")


def _refusal(plugin: Path, folder: Path, *given: str) -> str:
    option = ",".join([str(plugin), f"out={folder / 'counts'}", *(f"{name}={folder / name}" for name in given)])
    words = [_qemu("path", X86), "-M", "pc", "-display", "none", "-nic", "none", "-plugin", option]
    ended = subprocess.run(words, timeout=LIMIT_S, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    return ended.stderr
