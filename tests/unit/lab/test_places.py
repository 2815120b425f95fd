# SPDX-License-Identifier: GPL-2.0-or-later
"""Places of a real coordinator of labgrid, and machines that need none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.errors import HostError, UserError
from kdelta.lab import boot, places
from kdelta.lab.describe import described
from kdelta.lab.places import Places

_BIN = Path(sys.executable).parent
_YAML = """
targets:
  bench1:
    resources: {RemotePlace: {name: rack}}
    drivers: {SSHDriver: {}}
"""


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    pytest.importorskip("labgrid")
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "lab.toml").write_text('[bench1]\naddress = "192.0.2.7"\n')
    return f"{tmp_path / 'lab.toml'}:bench1"


def test_a_machine_that_another_kdelta_has_is_not_had(plain: str) -> None:
    mine = Places([plain])
    assert mine.texts == {"bench1": plain} and mine.acquire("bench1") == ""
    mine.release("bench1")
    with boot.held(described(plain)):
        assert "in use by another kdelta" in mine.acquire("bench1")
        with pytest.raises(HostError, match="in use by another kdelta"):
            mine.survey()


def test_what_a_machine_is_is_asked_while_it_is_had(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "identity", lambda machine: {"machine": machine.name})
    assert Places([plain]).survey() == {"bench1": {"machine": "bench1"}}
    with pytest.raises(UserError, match="no machine 'bench2'"):
        Places([plain.replace("bench1", "bench2")])


@pytest.fixture
def coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A coordinator with a place ``rack``; the description of a machine that is that place."""
    pytest.importorskip("labgrid")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    monkeypatch.setenv("LG_COORDINATOR", address)
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "lab.yaml").write_text(_YAML)
    words = [str(_BIN / "labgrid-coordinator"), "--listen", address]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        end = time.monotonic() + 60
        while _client("create"):
            assert time.monotonic() < end, "the coordinator does not answer"
        yield f"{tmp_path / 'lab.yaml'}:bench1"
        server.kill()


def _client(what: str, user: str = "") -> int:
    environment = {**os.environ, **({"LG_USERNAME": user} if user else {})}
    words = [str(_BIN / "labgrid-client"), "-p", "rack", what]
    return subprocess.run(words, env=environment, capture_output=True, check=False).returncode


@pytest.mark.full  # labgrid's programs take a second to start
def test_a_place_is_acquired_and_released_and_left_to_who_has_it(coordinator: str) -> None:
    mine = Places([coordinator])
    assert mine.acquire("bench1") == "" and _client("acquire", "other") != 0
    mine.release("bench1")
    assert _client("acquire", "other") == 0
    assert "already acquired by" in mine.acquire("bench1")
    assert _client("release", "other") == 0
    assert _client("acquire") == 0, "by hand"
    assert mine.acquire("bench1") == ""
    mine.release("bench1")
    assert _client("acquire", "other") != 0, "what was acquired by hand is kept"
