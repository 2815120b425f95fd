# SPDX-License-Identifier: GPL-2.0-or-later
"""A list of entries into the kernel that cannot be followed is refused; counts of known guests stay as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from test_counts import LIMIT_S, PASSED, X86, X86_EXPECTED, _argv, _assemble, _qemu, _total

from kdelta import paths
from kdelta.attribution.profiles import read
from kdelta.machine.plugin import build


def _run(which: str, plugin: Path, folder: Path, lines: list[str]) -> subprocess.CompletedProcess[str]:
    (folder / "entries").write_text("\n".join(["kdelta-entries 1", *lines, ""]))
    argv = _argv(_qemu(which, X86), X86, _assemble(X86, folder), plugin, folder / "counts")
    argv[-1] += f",entries={folder / 'entries'}"
    return subprocess.run(argv, timeout=LIMIT_S, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def plugin() -> Path:
    return build(paths.cache_dir())  # where set-up compiled it: to compile one takes 3.6 s of a processor


@pytest.mark.parametrize("which", ["path", "alternative"])
def test_counts_are_the_same_with_entries(which: str, plugin: Path, tmp_path: Path) -> None:
    ended = _run(which, plugin, tmp_path, ["call ffffffff81000000 0", "irq ffffffff81000010 1"])
    assert ended.returncode == PASSED[X86], ended.stderr
    found = {interval.id: interval for interval in read((tmp_path / "counts").read_bytes())}
    assert {ident: _total(found[ident]) for ident in X86_EXPECTED} == X86_EXPECTED
    assert all(interval.system_calls is not None for interval in found.values())


@pytest.mark.parametrize(
    "lines",
    [[], ["call 10"], ["call 20 0", "irq 10 0"], ["take 10 0"], ["call 10 99999999"], ["call 10 0", "call 10 1"]],
)
def test_a_list_of_entries_that_cannot_be_followed_is_refused(plugin: Path, tmp_path: Path, lines: list[str]) -> None:
    ended = _run("path", plugin, tmp_path, lines)
    assert ended.returncode != 0
    assert "is no list of entries into the kernel" in ended.stderr
