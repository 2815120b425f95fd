# SPDX-License-Identifier: GPL-2.0-or-later
"""Sockets of QEMU in directories whose names are longer than a socket's address."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from kdelta.machine import links

ADDRESS_BYTES = 107  # unix(7), without the NUL


def test_a_socket_in_a_directory_with_a_long_name_is_reached(tmp_path: Path) -> None:
    folder = tmp_path / ("cache" * 20) / ("of a user" * 8)
    folder.mkdir(parents=True)
    assert len(os.fsencode(folder)) > ADDRESS_BYTES
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        handle = os.open(folder, os.O_PATH)
        server.bind(f"/proc/self/fd/{handle}/qmp.sock")  # as QEMU does from within
        os.close(handle)
        server.listen()
        with links.connected(folder / "qmp.sock") as link:
            theirs, _ = server.accept()
            theirs.sendall(b"hello")
            theirs.close()
            assert link.recv(5) == b"hello"


def test_nobody_there_is_an_oserror_and_leaves_no_descriptor(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (tmp_path / "none.sock", tmp_path / "no folder" / "none.sock"):
        with pytest.raises(OSError):
            links.connected(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
