# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the kernel has ended a task for a bug of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.paths import shipped

SOURCE = '#include "oom.h"\nint main(int argc, char **argv) { return argc > 1 && is_taint_of_death(argv[1]); }\n'


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: kdelta doctor names the package")
def test_a_kernel_that_died_is_known_by_its_taint(tmp_path: Path) -> None:
    """A case that oopsed was "killed by SIGKILL, by a process, perhaps its own"."""
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run(["gcc", "-I", shipped("guest"), tmp_path / "a.c", "-o", tmp_path / "a"], check=True)
    said = [subprocess.run([tmp_path / "a", f"{taint}\n"], check=False).returncode for taint in (0, 512, 128, 4736)]
    assert said == [0, 0, 1, 1]
