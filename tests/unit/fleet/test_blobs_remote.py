# SPDX-License-Identifier: GPL-2.0-or-later
"""Blobs over a real ssh server on loopback, and over a stand-in for S3 (moto's server)."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kdelta.errors import HostError
from kdelta.fleet.blobs import Blobs

pytestmark = pytest.mark.full
DATA = b"a kernel" * 300_000


class Sshd:
    """A server of this user's own on a free port of loopback, with keys of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        for name in ("host", ".ssh/id_ed25519"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / name], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        lines = {
            "Port": self.port, "ListenAddress": "127.0.0.1", "HostKey": home / "host", "PidFile": "none",
            "AuthorizedKeysFile": home / ".ssh/id_ed25519.pub", "StrictModes": "no", "UsePAM": "no",
            "PasswordAuthentication": "no", "Subsystem": "sftp internal-sftp",
        }  # fmt: skip
        (home / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        self.url = f"sftp://127.0.0.1:{self.port}{home}/blobs"

    def start(self) -> None:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # of its privilege separation; Debian's unit makes it
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(shutil.which("sshd", path="/usr/sbin:/usr/bin")), "-D", "-e", "-f", self.home / "sshd_config"],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert self.process.poll() is None, (self.home / "log").read_text()
                time.sleep(0.1)
        raise AssertionError("sshd does not listen")

    def stop(self) -> None:
        """With all connections that it has."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.process.kill()
        self.process.wait()
        for child in children:
            subprocess.run(["kill", "-9", child], check=False, capture_output=True)

    def known(self) -> None:
        words = (self.home / "host.pub").read_text().split()[:2]
        (self.home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {' '.join(words)}\n")


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    pytest.importorskip("paramiko")
    if shutil.which("sshd", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("no ssh server: apt-get install openssh-server")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    server = Sshd(tmp_path / "home")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    files: Any = pytest.importorskip("s3fs")
    moto: Any = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    files.S3FileSystem(skip_instance_cache=True).mkdir("lab-kdelta")
    yield "s3://lab-kdelta/kernels"
    server.stop()


def carried(url: str, folder: Path, damage: Callable[[str], None]) -> None:
    """Two hosts and a file: put, seen by the other, fetched, and refused when it is damaged."""
    (folder / "f").write_bytes(DATA)
    name = hashlib.sha256(DATA).hexdigest()
    one, other = Blobs(url), Blobs(url)
    assert not other.has(name)
    assert one.put(folder / "f") == one.put(folder / "f") == name
    assert other.has(name), "another host's answer of before is not kept"
    other.get(name, folder / "there" / "g")
    assert (folder / "there" / "g").read_bytes() == DATA
    damage(name)
    with pytest.raises(HostError, match="is damaged: remove"):
        other.get(name, folder / "there" / "h")
    with pytest.raises(HostError, match="KDELTA_BLOBS") as raised:
        other.get("0" * 64, folder / "there" / "h")
    assert "\n" not in str(raised.value) and [path.name for path in (folder / "there").iterdir()] == ["g"]


def test_over_ssh(sshd: Sshd, tmp_path: Path) -> None:
    def damage(name: str) -> None:
        (sshd.home / "blobs" / name[:2] / name).write_bytes(b"x" + DATA[1:])

    sshd.known()
    carried(sshd.url, tmp_path, damage)


def test_a_server_that_is_not_known_is_sent_nothing(sshd: Sshd) -> None:
    with pytest.raises(HostError, match=rf"known_hosts .*ssh-keyscan -p {sshd.port} 127.0.0.1"):
        Blobs(sshd.url)
    sshd.known()
    Blobs(sshd.url)
    other = (sshd.home / ".ssh/id_ed25519.pub").read_text().split()[1]
    (sshd.home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{sshd.port} ssh-ed25519 {other}\n")
    with pytest.raises(HostError, match="another key"):
        Blobs(sshd.url)


def test_a_connection_that_was_lost_is_made_again(sshd: Sshd, tmp_path: Path) -> None:
    sshd.known()
    (tmp_path / "f").write_bytes(DATA)
    blobs = Blobs(sshd.url)
    name = blobs.put(tmp_path / "f")
    sshd.stop()
    with pytest.raises(HostError, match=r"blobs at sftp://.*check KDELTA_BLOBS") as raised:
        blobs.get(name, tmp_path / "g")
    assert "\n" not in str(raised.value)
    sshd.start()
    blobs.get(name, tmp_path / "g")
    assert (tmp_path / "g").read_bytes() == DATA


def test_over_s3(s3: str, tmp_path: Path) -> None:
    def damage(name: str) -> None:
        pytest.importorskip("s3fs").S3FileSystem(skip_instance_cache=True).pipe_file(
            f"lab-kdelta/kernels/{name[:2]}/{name}", b"x" + DATA[1:]
        )

    carried(s3, tmp_path, damage)
