# SPDX-License-Identifier: GPL-2.0-or-later
"""A build sees its tree and the system's programs, and can harm neither the user's files nor anybody by the network."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.kernel import sandbox

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")


def said(script: str, *readable: Path, writable: tuple[Path, ...] = ()) -> str:
    argv = sandbox.inside(["sh", "-c", script], readable, writable)
    done = subprocess.run(argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


@needs_bwrap
def test_what_a_build_may_see_and_write(tmp_path: Path) -> None:
    tree, obj, home = tmp_path / "tree", tmp_path / "obj", tmp_path / "home"
    for folder in (tree, obj, home):
        folder.mkdir()
        (folder / "file").write_text("secret")
    assert (
        said(f"cat {tree}/file; gcc --version >/dev/null && echo built > {obj}/made", tree, writable=(obj,)) == "secret"
    )
    assert (obj / "made").read_text() == "built\n"
    assert "Read-only" in said(f"echo x > {tree}/file", tree, writable=(obj,))
    assert "No such file" in said(f"cat {home}/file", tree, writable=(obj,))
    assert "Read-only" in said("echo x > /usr/bin/planted", tree)
    assert "secret" not in said(f"cat {Path.home()}/* /etc/shadow /proc/1/environ", tree)
    assert (tree / "file").read_text() == "secret"


@needs_bwrap
def test_there_is_no_network_and_no_other_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        call = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        argv = sandbox.inside(["python3", "-c", call], [], [])
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode != 0 and ("refused" in done.stderr or "unreachable" in done.stderr)
    assert said("ls -d /proc/[0-9]* | wc -l").strip() in {"2", "3", "4"}


def test_without_a_sandbox_nothing_is_built_unless_the_user_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.refused.cache_clear()
    try:
        with pytest.raises(HostError, match=r"apt-get install bubblewrap.*--unsandboxed"):
            sandbox.inside(["make"], [], [])
        monkeypatch.setenv(sandbox.SWITCH, "1")
        assert sandbox.inside(["make"], [], []) == ["make"]
    finally:
        sandbox.refused.cache_clear()


def test_a_link_that_a_build_left_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    (tmp_path / "user").write_text("mine")
    (tmp_path / ".config").symlink_to(tmp_path / "user")
    with pytest.raises(HostError, match="left a link"):
        sandbox.read(tmp_path / ".config")
    sandbox.write(tmp_path / ".config", "theirs")
    assert (tmp_path / "user").read_text() == "mine" and sandbox.read(tmp_path / ".config") == "theirs"
