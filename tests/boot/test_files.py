# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations on files: on tmpfs with any kernel, on a file system of a RAM disk where the kernel has both built in."""

from __future__ import annotations

import pytest

from kdelta.spec.workloads import catalogue

CONFIG = "BLOCK=y EXT4_FS=y XFS_FS=y BTRFS_FS=y F2FS_FS=y BLK_DEV=y BLK_DEV_RAM=y BLK_DEV_RAM_SIZE=524288"
OPERATIONS = catalogue(())["files"].params["op"].choices
LACKS = {  # operations that these have not
    "tmpfs": {"fiemap", "clone"},
    "ext4": {"clone"},
    "xfs": set(),
    "btrfs": set(),
    "f2fs": {"clone"},
}


def _rows(answer, kernel: str, *cases: str) -> dict[str, dict]:  # type: ignore[no-untyped-def, type-arg]
    words = [word for case in cases for word in ("--case", case)]
    got = answer("run", "--kernel", kernel, "--exact", "--boots", "1", *words)
    return {row["case"]: row for row in got["results"] if row["metric"] == "instructions"}


def test_a_kernel_of_debian_has_files_on_tmpfs_alone(answer) -> None:  # type: ignore[no-untyped-def]
    rows = _rows(answer, "debian:6.12/cloud", f"files:op={'|'.join(OPERATIONS)}", "files:on=ext4")
    assert rows.pop("files:on=ext4")["state"] == "unsupported"
    states = {case.partition("op=")[2] or "create": row["state"] for case, row in rows.items()}
    not_there = {name for name, state in states.items() if state == "unsupported"}
    assert not_there == LACKS["tmpfs"] and set(states.values()) == {"ok", "unsupported"}, states


@pytest.mark.full  # builds a kernel
def test_every_operation_runs_on_every_file_system_that_has_it(answer) -> None:  # type: ignore[no-untyped-def]
    kernel = f'src:debian:6.12,config="{CONFIG}"'
    for name, lacks in LACKS.items():
        rows = _rows(answer, kernel, *(f"files:on={name},op={one}" for one in OPERATIONS))
        failed = {case: row["state"] for case, row in rows.items() if row["state"] != "ok"}
        assert {case.partition("op=")[2] or "create" for case in failed} == lacks, failed
        assert set(failed.values()) <= {"unsupported"}
