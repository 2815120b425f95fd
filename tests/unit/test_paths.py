# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that users write: pipes are read, and what never ends is refused before it fills the memory."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kdelta import paths
from kdelta.cli import main


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("key = 1\n" * 50_000))
    writer.start()
    assert paths.written(pipe) == "key = 1\n" * 50_000
    writer.join()


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "--spec", "/dev/zero"],
        ["check", "/dev/zero"],
        ["compare", "debian:6.12", "debian:7.0", "--case", "getppid", "--on", "/dev/zero:x"],
    ],
)
def test_what_never_ends_is_one_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    assert main.run(words) == 1
    said = capsys.readouterr().err
    assert "/dev/zero" in said and "longer than 16 MiB" in said and said.count("\n") == 1
