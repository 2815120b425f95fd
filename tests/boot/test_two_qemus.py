# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU 7.2 and a QEMU of 10 or later count the same instructions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ALTERNATIVE = os.environ.get("KDELTA_QEMU_ALT", "")
CASES = ("--case", "getppid", "--case", "pidfd_open", "--case", "path_lookup")


@pytest.mark.full
@pytest.mark.skipif(not Path(ALTERNATIVE).is_file(), reason="KDELTA_QEMU_ALT names no QEMU (tools/fetch_qemu.py)")
def test_both_qemus_count_the_same(answer) -> None:  # type: ignore[no-untyped-def]
    command = ("compare", "debian:6.1/cloud", "debian:6.12/cloud", *CASES)
    found = [
        {(row["case"], row["metric"]): row for row in answer(*command, *extra)["results"]}
        for extra in ((), ("--qemu", ALTERNATIVE))
    ]
    for metric in ("instructions", "user_instructions"):
        for side in ("baseline", "patched"):
            assert found[0]["getppid", metric][side] == found[1]["getppid", metric][side]
    for case in ("pidfd_open", "path_lookup"):
        before, after = (by[case, "instructions"] for by in found)
        assert after["baseline"] == pytest.approx(before["baseline"], rel=0.001)
        assert after["verdict"] == before["verdict"]
