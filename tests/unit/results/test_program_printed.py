# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that ends well on both kernels and says on one of them that it could not do its work."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from kdelta.model import Case
from kdelta.report.sentences import sentence
from kdelta.results import answer, printed
from kdelta.results.warnings import PrintedLacking, PrintedOtherwise
from kdelta.store.store import Store
from unit.store.store_builders import boot, experiment, run

REFUSED = "100 failed: Function not implemented"


def _stream(lines: tuple[str, ...], failed: str = "") -> bytes:
    found = b""
    said: list[dict[str, str | int]] = [{"t": "out", "j": 0, "text": line} for line in lines]
    said += [{"t": "done", "j": 0, "state": "failed", "why": failed}] if failed else []
    for number, record in enumerate(said):
        body = json.dumps(record)
        found += f"kd1 {number} {zlib.crc32(f'{number} {body}'.encode()):08x} {body}\n".encode()
    return found


def _store(folder: Path, said: Mapping[tuple[int, int], tuple[str, ...]], workload: str = "program") -> Store:
    store = Store(f"sqlite:///{folder / 'store.sqlite'}")
    made = experiment("e1", mode="exact", cases=(Case(workload=workload, label="sysc"),))
    store.create(made)
    for (block, slot), lines in said.items():
        store.save_boot("e1", boot(block, slot, stream=_stream(lines), runs=(run(0),)))
    return store


@pytest.mark.parametrize("refuses", [0, 1])
def test_what_a_program_prints_on_one_kernel_alone_is_told(tmp_path: Path, refuses: int) -> None:
    """listmount(2), which came with 6.8, was +54.9 % from 6.1 to 7.0: there it worked, and on 6.1 it had said so."""
    said = {(block, slot): ("start", REFUSED) if slot == refuses else ("start",) for block in (0, 1) for slot in (0, 1)}
    with _store(tmp_path, said) as store:
        (warning,) = (w for w in answer.result(store, "e1")[0].warnings if isinstance(w, PrintedOtherwise))
    labels = ("6.12", "7.0")
    assert (warning.kernel, warning.other, warning.line) == (labels[refuses], labels[1 - refuses], REFUSED)
    assert f'sysc printed on {labels[refuses]} and not on {labels[1 - refuses]}: "{REFUSED}"' in sentence(warning)


@pytest.mark.parametrize(("there", "told"), [((), 0), (("no proc",), 1)])
def test_what_a_program_does_not_print_where_it_failed_is_not(
    tmp_path: Path, there: tuple[str, ...], told: int
) -> None:
    """On a kernel without /proc ls did not begin, and "may have done other work there, of which the count is"."""
    with _store(tmp_path, {(block, 0): ("total 0",) for block in (0, 1)}) as store:
        for block in (0, 1):
            stream = _stream(there, "mount of proc at /program/proc: No such device")
            store.save_boot("e1", boot(block, 1, stream=stream, runs=(run(0, state="failed"),)))
        made = store.experiment("e1")
        found = printed.otherwise(made, store, store.boots("e1"))
    assert [one.line for one in found] == ["no proc"][:told]


@pytest.mark.parametrize(
    ("said", "workload"),
    [
        ({(0, 0): ("1.2 s",), (1, 0): ("1.3 s",), (0, 1): ("1.1 s",), (1, 1): ("1.1 s",)}, "program"),
        ({(0, 0): ("a",), (1, 0): ("a",), (0, 1): ("a",), (1, 1): ("a",)}, "program"),
        ({(0, 0): ("a",), (1, 0): ("a",)}, "program"),
        ({(0, 0): ("0.1 s",), (0, 1): ("0.2 s",)}, "program"),
        ({(0, 0): ("a",), (1, 0): ("a",), (0, 1): ("b",), (1, 1): ("b",)}, "pipe"),
    ],
    ids=["varies", "alike", "one-kernel-yet", "one-seed-yet", "no-program"],
)
def test_what_varies_or_is_alike_is_not(
    tmp_path: Path, said: dict[tuple[int, int], tuple[str, ...]], workload: str
) -> None:
    with _store(tmp_path, said, workload) as store:
        made = store.experiment("e1")
        assert printed.otherwise(made, store, store.boots("e1")) == ()


UNAME = "Linux (none) {} #1 SMP PREEMPT_DYNAMIC Debian {}"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (("1.2 s",), ("1.3 s",), 'sysc printed other figures on 7.0, "1.3 s", than on 6.12, "1.2 s"'),
        (("T: 0 Min: 7", "end"), ("T: 0 Min: 10", "end"), 'on 7.0, "T: 0 Min: 10", than on 6.12, "T: 0 Min: 7"'),
        (("1.2 s",), ("1.3 s", "4"), 'sysc printed on 7.0 and not on 6.12: "1.3 s"'),
        (("a",), ("1",), 'sysc printed on 7.0 and not on 6.12: "1"'),
        ((UNAME.format("6.12-x", "6.12-1 (2026)"),), (UNAME.format("7.0-x", "7.0-1~bpo (2025)"),), ""),
        ((UNAME.format("6.12-x", 1), "a"), (UNAME.format("7.0-x", 2), "b"), 'not on 6.12: "b"'),
    ],
    ids=["time", "column", "more-lines", "word", "kernel", "kernel-and-more"],
)
def test_figures_and_the_kernels_own_name_are_no_other_lines(
    tmp_path: Path, old: tuple[str, ...], new: tuple[str, ...], said: str
) -> None:
    """``uname -a`` "may have done other work" on one kernel, and so may cyclictest, which prints latencies."""
    lines = {(block, slot): (old, new)[slot] for block in (0, 1) for slot in (0, 1)}
    with _store(tmp_path, lines) as store:
        made = store.experiment("e1")
        named = tuple(replace(one, release=f"{one.label}-x") for one in made.kernels)
        found = printed.otherwise(replace(made, kernels=named), store, store.boots("e1"))
    assert len(found) == bool(said)
    assert said in "".join(map(sentence, found))


MISSED = "script: failed to execute /bin/sh: No such file or directory"


@pytest.mark.parametrize(
    "line",
    [
        *(MISSED, "sh: 1: convert: not found", "bash: line 1: x: command not found", "`RubyGems' were not loaded."),
        "PHP Warning:  PHP Startup: Unable to load dynamic library 'pdo.so' (tried: /usr/lib/php/pdo.so)",
        "no yaml here: No module named 'yaml'",
        "gpg: error running '/usr/bin/gpg-agent': probably not installed",
        "Fontconfig error: Cannot load default config file: No such file: (null)",
        "man: can't open the manpath configuration file /etc/manpath.config",
    ],
)
def test_a_program_that_says_that_it_lacks_a_file_and_ends_well_is_told(tmp_path: Path, line: str) -> None:
    """``script -qc 'stty -a' /dev/null`` ran nothing, ended with 0, and was "the same" on both kernels."""
    said = {(block, slot): (f"at {block}", line) for block in (0, 1) for slot in (0, 1)}
    with _store(tmp_path, said) as store:
        (warning,) = (w for w in answer.result(store, "e1")[0].warnings if isinstance(w, PrintedLacking))
    assert (warning.case, warning.line) == ("sysc", line)
    assert f'sysc printed "{line}" in the guests' in sentence(warning)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("x: mmap: Cannot allocate memory", "--memory SIZE"),
        ("mmap(MAP_HUGETLB): Cannot allocate memory", "nr_hugepages'"),
        ("x: write error: No space left on device", "--memory SIZE"),
        ("connect: Network is unreachable", "lacks a network"),
        ("unshare: unshare failed: Operation not permitted", "was refused that"),
    ],
)
def test_what_else_a_guest_has_not_is_told_with_what_helps(tmp_path: Path, line: str, remedy: str) -> None:
    """A program that could not map 2 GiB said so and ended well: its figures were of another run."""
    said = {(block, slot): (line,) for block in (0, 1) for slot in (0, 1)}
    with _store(tmp_path, said) as store:
        (warning,) = printed.lacking(store.experiment("e1"), store, store.boots("e1"))
    assert remedy in sentence(warning)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a needle was not found in it", "a needle was not found in it"), (MISSED, "fine"), ("x" * 99 + MISSED,) * 2],
    ids=["prose", "one-seed", "data"],
)
def test_what_is_no_lack_under_all_seeds_is_not(tmp_path: Path, first: str, second: str) -> None:
    said = {(0, 0): (first,), (1, 0): (second,), (0, 1): (first,), (1, 1): (second,)}
    with _store(tmp_path, said) as store:
        made = store.experiment("e1")
        assert printed.lacking(made, store, store.boots("e1")) == ()
