# SPDX-License-Identifier: GPL-2.0-or-later
"""Files in the place of kernels: what they are is told, and kernels are taken under any name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdelta.cli import _meant
from unit.cli import test_first_commands
from unit.kernel import synthetic

nowhere = test_first_commands.nowhere
refused = test_first_commands.refused


@pytest.mark.parametrize("name", ["a.patch", "series.mbox", "mail"])
def test_a_patch_in_the_place_of_a_kernel_is_answered(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(name).write_text("From 1234 Mon Sep 17 00:00:00 2001\n", encoding="utf-8")
    for words in (f"compare ./{name}", f"compare debian:6.12 ./{name}", f"run --kernel ./{name}"):
        refused(words, f"kdelta review {name} --tree", capsys)


@pytest.mark.parametrize("begins", [b"#!/bin/sh\n", b"\x7fELF\2\1\1" + bytes(9) + b"\3\0\x3e\0" + bytes(200)])
def test_a_program_in_the_place_of_a_kernel_is_answered(begins: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """``run ./a.out`` was told that it is an ELF file without a banner, ``kdelta ./a.out`` to run it as a kernel."""
    Path("a.out").write_bytes(begins)
    Path("a.out").chmod(0o755)
    refused("./a.out", "did you mean: kdelta run -- ./a.out", capsys)
    for words in ("run ./a.out", "compare debian:6.12 debian:7.0 ./a.out", "run --kernel a.out"):
        refused(words, "is a program, not a kernel: put -- before it, as in -- ", capsys)


def test_a_kernel_that_may_be_executed_is_no_program(capsys: pytest.CaptureFixture[str]) -> None:
    """ld makes each vmlinux executable; under another name it was taken for a program."""
    Path("patched.elf").write_bytes(synthetic.vmlinux().replace(b"Xen\0", b"Xin\0"))
    Path("patched.elf").chmod(0o755)
    assert not _meant.is_program("patched.elf")
    refused("compare ./patched.elf ./patched.elf", "a vmlinux without a PVH entry cannot be booted", capsys)


def test_a_fifo_in_the_place_of_a_kernel_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("fifo")
    refused("compare debian:6.12 ./fifo", "fifo is not a regular file", capsys)
