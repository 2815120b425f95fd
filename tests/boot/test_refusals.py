# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input gets one clear line and exit code 1 or 2, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("compare", "debian:6.12", "debian:99.1"), 1, "99.1"),
        (("compare", "debian:6.12", "debain:7.0"), 1, "not a kernel"),
        (("compare", "debian:6.12", "debian:7.0", "--case", "pidfd_opne"), 1, "pidfd_open"),
        (("compare", "debian:6.12", "debian:7.0", "--case", "pipe:wirters=2"), 1, "writers"),
        (("compare", "debian:6.12", "debian:7.0", "--precision", "lots"), 1, "--precision"),
        (("compare", "debian:6.12", "debian:7.0", "--format", "pdf"), 1, "pdf"),
        (("compare", "debian:6.12", "debian:7.0", "--fail-on", "slower"), 1, "--fail-on"),
        (("compare", "debian:6.12", "/nonexistent/bzImage"), 1, "/nonexistent/bzImage"),
        (("compare", "debian:6.12", "debian:7.0", "--qemu", "/nonexistent/qemu"), 1, "/nonexistent/qemu"),
        (("compare", "debian:6.12", "debian:7.0", "--kvm", "off", "--smp", "65"), 1, "counts up to 64 CPUs"),
        (("report", "20010101"), 1, "20010101"),
        (("compare", "debian:6.12"), 1, "two kernels"),
        (("comapre",), 1, "compare"),
    ],
)
def test_a_mistake_is_named_in_one_line(kdelta, args: tuple[str, ...], code: int, words: str) -> None:  # type: ignore[no-untyped-def]
    done = kdelta(*args, check=code)
    lines = [line for line in done.stderr.splitlines() if line.startswith("kdelta: ")]
    assert len(lines) == 1
    assert words in lines[0]


def test_random_bytes_are_no_kernel(kdelta, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    image = tmp_path / "image"
    image.write_bytes(bytes(range(256)) * 4096)
    done = kdelta("compare", "debian:6.12/cloud", str(image), check=1)
    assert str(image) in done.stderr


def test_a_deb_that_is_no_kernel_is_refused(kdelta, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    deb = tmp_path / "x.deb"
    deb.write_bytes(b"!<arch>\nnot really")
    done = kdelta("compare", "debian:6.12/cloud", f"deb:{deb}", check=1)
    assert str(deb) in done.stderr
