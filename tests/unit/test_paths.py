# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that users write: pipes are read, and what never ends is refused before it fills the memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta import paths
from kdelta.cli import main
from kdelta.errors import HostError


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


@pytest.mark.parametrize(
    "words",
    [
        "compare ~nosuch-user/bzImage debian:7.0",
        "compare debian:6.12 deb:~nosuch-user/x",
        "compare rpm:~nosuch-user/x debian:7.0",
        "compare src:~nosuch-user/x src:debian:7.0",
        "compare src:debian:6.12 src:debian:6.12+~nosuch-user/x.patch",
        "compare src:debian:6.12,config=~nosuch-user/x debian:7.0",
        "review ~nosuch-user/x --tree debian:6.12",
        "check ~nosuch-user/x.toml",
        "watch ~nosuch-user/x --tree debian:6.12",
        "kernels ~nosuch-user/x",
    ],
)
def test_a_user_that_is_none_is_no_traceback(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KDELTA_STATE", str(tmp_path))
    assert main.run(words.split()) == 1
    said = capsys.readouterr().err
    assert "~nosuch-user/x" in said.replace("bzImage", "x") and said.count("\n") == 1


@pytest.mark.parametrize(("place", "name"), [(paths.cache_dir, "KDELTA_CACHE"), (paths.state_dir, "KDELTA_STATE")])
def test_a_user_without_a_home_is_told_what_to_set(
    place: Callable[[], Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "KDELTA_CACHE", "KDELTA_STATE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)  # of no user
    with pytest.raises(HostError, match=f"set HOME, or .*{name}"):
        place()
    monkeypatch.setenv(name, "/x")
    assert place() == Path("/x")
