# SPDX-License-Identifier: GPL-2.0-or-later
"""A build sees its tree and the system's programs, and can harm neither the user's files nor anybody by the network."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.errors import HostError
from kdelta.kernel import build, sandbox, source, toolchain
from kdelta.kernel.sources import parse_kernel
from kdelta.model import Quiet
from unit.kernel.tiny_tree import TREE

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")


class Told(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def said(script: str, *readable: Path, writable: tuple[Path, ...] = ()) -> str:
    argv = sandbox.inside(["sh", "-c", script], readable, writable)
    done = subprocess.run(argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


@needs_bwrap
@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
        ("user/max_user_namespaces", "96365", "--security-opt unmask=ALL (Docker: systempaths=unconfined)"),
    ],
)
def test_what_forbids_a_sandbox_is_named(tmp_path: Path, setting: str, value: str, remedy: str) -> None:
    path = tmp_path / setting
    path.parent.mkdir()
    path.write_text(f"{value}\n")
    assert sandbox.remedy(tmp_path).endswith(remedy)


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


@needs_bwrap
def test_root_builds_without_its_rights_and_cannot_turn_the_kernels_screws() -> None:
    rights = said("grep Cap /proc/self/status").split()
    assert {rights[rights.index(f"Cap{name}:") + 1] for name in ("Eff", "Prm")} == {"0" * 16}
    proc = said("grep ' /proc proc ' /proc/mounts").split()[3].split(",")
    assert "ro" in proc
    assert "Read-only" in said("echo 1 > /proc/self/oom_score_adj")
    assert "ermi" in said("mount -t tmpfs x /tmp; mknod /tmp/node c 1 3")  # not permitted, permission denied


@needs_bwrap
@pytest.mark.parametrize("lost", ["-sys_admin", "-net_admin", "-sys_admin,-net_admin,-sys_resource"])
def test_root_of_a_container_has_a_sandbox_too_and_so_has_who_may_start_few_processes(lost: str) -> None:
    """Engines start root without these rights: bubblewrap then makes the namespaces as a user does."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to give up rights")
    if subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode:
        pytest.skip("needs user namespaces")
    code = "from kdelta.kernel import sandbox; print(sandbox.refused() or sandbox._limits())"
    bounds = ["setpriv", f"--bounding-set={lost}", "prlimit", "--nproc=5000", "--fsize=8000000000"]
    done = subprocess.run([*bounds, sys.executable, "-c", code], check=True, capture_output=True, text=True)
    limits = ["--core=0", "--fsize=8000000000", "--nproc=5000", "--"]
    assert done.stdout.strip() == str([shutil.which("prlimit"), *limits])


@needs_bwrap
def test_a_path_that_names_no_directory_of_the_system_takes_no_sandbox_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``doctor`` put it down to namespaces that are forbidden."""
    (tmp_path / "bwrap").symlink_to(str(shutil.which("bwrap")))
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.refused.cache_clear()
    try:
        assert sandbox.refused() == ""
        monkeypatch.setattr(os, "defpath", str(tmp_path))
        sandbox.refused.cache_clear()
        assert (sandbox.refused(), sandbox.lacking()) == ("prlimit is missing", "util-linux")
        assert sandbox.remedy().endswith("install util-linux")
    finally:
        sandbox.refused.cache_clear()


@needs_bwrap
def test_what_a_build_starts_ends_with_it() -> None:
    """A daemon that stayed would hold the pipe, and reading it would never end."""
    argv = sandbox.inside(["sh", "-c", "setsid sleep 600 & (setsid sleep 600 &); echo built"], [], [])
    assert subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout == "built\n"


@needs_bwrap
def test_a_build_has_bounds_of_memory_files_and_processes(tmp_path: Path) -> None:
    sizes = {line.split()[5]: int(line.split()[1]) for line in said("df -k /tmp /dev/shm").splitlines()[1:]}
    assert sizes == {"/tmp": 2 << 20, "/dev/shm": 64 << 10}
    assert "No space" in said("head -c 70M /dev/zero > /dev/shm/full")
    for place in ("/", "/dev", "/usr"):
        assert "Read-only" in said(f"echo x > {place}/planted")
    limits = said("ulimit -c; ulimit -f; cat /proc/self/limits", writable=(tmp_path,))
    assert limits.split()[0] == "0" and limits.split()[1].isdigit() and "16384" in limits
    assert (
        said(f"echo x > {tmp_path}/made; echo y > /tmp/own; cat {tmp_path}/made /tmp/own", writable=(tmp_path,))
        == "x\ny\n"
    )


def test_a_build_sees_no_token_of_the_callers_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "SSH_AUTH_SOCK", "PATCHWORK_TOKEN", "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.setenv(name, "secret")
    assert "secret" not in build.environment(tmp_path).values()


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


def test_a_build_without_a_sandbox_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(sandbox.SWITCH, "1")
    monkeypatch.setattr(toolchain, "missing", lambda arch: [])
    for name, text in TREE.items():
        (tmp_path / "linux" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "linux" / name).write_text(text)
    told = Told()
    source.resolve_source(parse_kernel(f"src:{tmp_path / 'linux'}"), told)
    assert [line for line in told.lines if "WITHOUT a sandbox" in line and "your rights" in line]
