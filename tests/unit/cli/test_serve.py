# SPDX-License-Identifier: GPL-2.0-or-later
"""The command as a user starts and ends it."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unit.serve.serve_store import filled

COMMAND = [sys.executable, "-c", "from kdelta.cli.main import main; main()", "serve"]


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(process, the address that it printed)."""
    env = {**os.environ, "KDELTA_STORE": f"sqlite:///{folder / 'kdelta.sqlite'}"}
    with subprocess.Popen(
        [*COMMAND, "--port", "0", *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def get(port: int, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return connection.getresponse()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop_and_ends_without_a_trace(tmp_path: Path, number: int) -> None:
    filled(tmp_path).close()
    with served(tmp_path) as (process, address):
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", address)
        assert match is not None, address
        answer = get(int(match[1]), "/experiments/first")
        assert answer.status == 200 and answer.getheader("server") is None
        assert get(int(match[1]), "/history?case=" + "x" * 100_000).status == 200
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said and said.endswith("kdelta serve: ended\n")


def test_a_token_is_printed_where_one_is_asked_for(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with served(tmp_path, "--host", "0.0.0.0") as (process, address):
        match = re.fullmatch(r"http://[^:/]+:(\d+)/\?token=([A-Za-z0-9_-]{32})", address)
        assert match is not None, address
        assert get(int(match[1]), "/").status == 403
        assert get(int(match[1]), f"/?token={match[2]}").status == 303
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, "--port", str(port)],
            env={**os.environ, "KDELTA_STATE": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1 and not done.stdout
    assert (
        done.stderr == f"kdelta: port {port} on 127.0.0.1 is in use: choose another with --port, 0 for any free one\n"
    )


def test_an_address_of_another_machine_is_one_clear_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--host", "192.0.2.1"],
        env={**os.environ, "KDELTA_STATE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "192.0.2.1" in done.stderr
