# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU 7.2 and a QEMU of 10 or later count the same instructions, or the report names the functions that differ."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "fetch_qemu.py"
KERNELS = ("debian:6.1/cloud", "debian:6.12/cloud")
# One task, and no allocation beyond what a call gives back before the next: nothing here depends on where memory lies.
SYSCALLS = (
    "getppid",
    "pidfd_open:flags=0|nonblock",
    "pidfd_open:target=child",
    "pidfd_open:held=1",
    "lifetimes:path=open_fails",
    "object_cost:object=pidfd|had_pidfd|vma",
    "syscalls/getpid",
)
# Dentries: their hash chains and slabs depend on where the guest's memory lies. Names: each path is copied to the same
# slot of a slab, under all seeds, and 6.1 pays a branch more where that is in a tail page.
ALLOCATING = ("path_lookup", "path_lookup:paths=hits")


@pytest.fixture(scope="module")
def second_qemu(cache: Path) -> str:
    """The QEMU that KDELTA_QEMU_ALT names, else Debian's backport, unpacked into the cache."""
    named = os.environ.get("KDELTA_QEMU_ALT")
    if named:
        assert Path(named).is_file(), f"KDELTA_QEMU_ALT names no file: {named}"
        return named
    done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        pytest.skip(f"no second QEMU: {(done.stderr.strip().splitlines() or ['tools/fetch_qemu.py failed'])[-1]}")
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.full
def test_both_qemus_count_the_same_or_the_report_says_what_differs(
    second_qemu: str,
    kdelta: Callable[..., subprocess.CompletedProcess[str]],
    answer: Callable[..., dict],  # type: ignore[type-arg]
) -> None:
    cases = [part for case in (*SYSCALLS, *ALLOCATING) for part in ("--case", case)]
    first = answer("compare", *KERNELS, *cases)
    second = answer("compare", *KERNELS, *cases, "--qemu", second_qemu)
    names = [result["experiment"]["id"] for result in (first, second)]
    assert first["host"]["qemu"] != second["host"]["qemu"]

    found = answer("report", names[0], "--against", names[1])
    assert "QEMU" in {fact["what"] for fact in found["differences"]}
    by_call = {(pair["case"], pair["kernel"]): pair for pair in found["counts"]}
    assert len(by_call) == 2 * len({row["case"] for row in first["results"]})
    for (case, kernel), pair in by_call.items():
        if case not in ALLOCATING:
            assert pair["call"] == "exact", f"{case} on {kernel}: {pair['percent']} %: {pair['functions'][:3]}"
        elif pair["call"] != "exact":
            assert pair["call"] in ("within", "within-floor"), (case, kernel, pair["percent"], pair["functions"][:3])
            assert pair["functions"], f"{case} on {kernel} differs, and no function is named"
    verdicts = [
        {(r["case"], r["metric"]): r["verdict"] for r in result["results"] if r["primary"]}
        for result in (first, second)
    ]
    assert verdicts[0] == verdicts[1]

    text = kdelta("report", names[0], "--against", names[1]).stdout
    assert text.rstrip().splitlines()[-1].partition(" ")[0].isdigit()
    differing = [pair for pair in found["counts"] if pair["call"] in ("within", "within-floor", "differs")]
    assert all(pair["functions"][0]["function"] in " ".join(text.split()) for pair in differing)
