# SPDX-License-Identifier: GPL-2.0-or-later
"""In which directory functions are, read from real objects; and what is said where nothing is known."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.kernel import directories
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Kernel


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_functions_are_in_the_directory_of_the_object_that_defines_them(tmp_path: Path) -> None:
    sources = {
        "net/unix/af.c": "int unix_send(int a) { return a; }",
        "fs/proc/deep/er.c": "int proc_read(int a) { return a; } "
        "static int own(void) { return 1; } int (*p)(void) = own;",
        "scripts/basic/fix.c": "int main(void) { return 0; }",
    }
    for name, text in sources.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        subprocess.run(["gcc", "-c", str(path), "-o", str(path.with_suffix(".o"))], check=True)
    (tmp_path / "net/unix/broken.o").write_bytes(b"no object")
    found = directories.of_objects(tmp_path, ["unix_send", "proc_read", "own", "main", "absent"])
    assert found == {"unix_send": "net/unix", "proc_read": "fs/proc", "own": "fs/proc"}
    assert directories.beside(tmp_path, ["own", "main"]) == {"proc_read", "own"}


def test_a_shipped_image_says_nothing_of_directories_and_the_sentence_says_why() -> None:
    kernel = Kernel(label="6.12", spec="debian:6.12", release="6.12", image_path="/i", image_sha256="a")
    found, about = directories.of(parse_kernel("debian:6.12"), kernel, ["f"])
    assert found == {} and "no debug information" in about
