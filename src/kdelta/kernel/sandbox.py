# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds run what the source says: Makefiles, scripts, host programs. Here they see the system's programs, read-only,
the tree that they build and where they write, and nothing else: no network, no home, no other process; and where root
builds, they have none of its rights over the machine. What a build left is read and replaced here with care: a link in
its place would lead out again.

bubblewrap makes it of the kernel's namespaces, without root (bwrap(1)). systemd-run is not used: without a manager of
the user's own it needs root.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from kdelta import distributions
from kdelta.errors import HostError
from kdelta.kernel import cache

SWITCH = "KDELTA_UNSANDBOXED"  # set to 1: builds run as any program of the user's
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_FILES = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_ALONE = (
    "--unshare-net",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
)
# Of root bubblewrap takes no rights by itself, and leaves it the kernel's settings (0.8.0: it covers no directory that
# access(2) calls read-only, and /proc/sys says so, unlike the files below it).
_POWERLESS = ("--cap-drop", "ALL", "--remount-ro", "/proc")
# /tmp and /dev/shm are memory; /dev and the root are such file systems too, where nothing is to be written.
_MEMORY = {"/tmp": 2 << 30, "/dev/shm": 64 << 20}  # bytes
_CLOSED = ("--remount-ro", "/dev", "--remount-ro", "/")
# Of a process, or of all in the sandbox, as prlimit(1) calls them. None of address space: sanitizers and hosts of many
# CPUs reserve much of it.
_LIMITS = {
    "core": (resource.RLIMIT_CORE, 0),
    "fsize": (resource.RLIMIT_FSIZE, 32 << 30),
    "nproc": (resource.RLIMIT_NPROC, 16384),
}
# What bubblewrap as root needs: to mount, and to bring up a network of its own (capabilities(7): 21 and 12). Root of a
# container may neither, and gets namespaces as any user does.
_OF_A_MACHINE = 1 << 21 | 1 << 12
# Settings by which a system forbids namespaces to users, and their values that do: Debian's (linux 4.9 to 5.10 there),
# Ubuntu's (23.10), the kernel's own (user_namespaces(7), 4.9).
_FORBIDDING = {
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "user.max_user_namespaces": ("0", "15000"),
}


def inside(argv: Iterable[str], readable: Iterable[Path], writable: Iterable[Path]) -> list[str]:
    """``argv`` as it runs in the sandbox; as it is where the user wants none.

    Directories keep their paths, which build products would show. What is ``writable`` exists.

    Raises:
        HostError: bubblewrap is missing, or may not make namespaces here.
    """
    words = list(argv)
    if off():
        return words
    if why := refused():
        raise HostError(
            f"{why}; a build runs code of the patch, so it needs a sandbox: {remedy()}; "
            "or build without one, with your own rights and files: kdelta --unsandboxed COMMAND ..."
        )
    return [*_base(), *_binds("--ro-bind", readable), *_binds("--bind", writable), *_CLOSED, "--", *_limits(), *words]


def off() -> bool:
    """Whether the user wants none."""
    return os.environ.get(SWITCH) == "1"


def which(program: str) -> str | None:
    """Where a build finds ``program``: outside of the system's directories it sees none."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    seen = (place for place in places if off() or place.startswith(_SYSTEM))
    return shutil.which(program, path=os.pathsep.join(seen))


def plain(path: Path) -> Path:
    """``path`` where it is what it seems.

    Raises:
        HostError: the build left a link in its place.
    """
    if path.is_symlink():
        raise HostError(f"{path}: the build left a link there, which is not followed; look at what its patch does")
    return path


def read(path: Path) -> str:
    """The text of a file that a build may have made.

    Raises:
        HostError: it is a link.
    """
    return plain(path).read_text("utf-8", "replace")


def write(path: Path, text: str) -> None:
    """Replace a file where a build may write; a link there is replaced, not followed.

    Raises:
        HostError: the disk is full.
    """
    cache.write_atomically(path, text.encode("utf-8", "surrogateescape"))


def lacking() -> str:
    """The package of the program that a sandbox needs and that is not here, by Debian's name; "" where all are."""
    if shutil.which("bwrap") is None:
        return "bubblewrap"
    return "" if _prlimit() else "util-linux"


def remedy(settings: Path = Path("/proc/sys")) -> str:
    """What makes a sandbox possible where there is none; ``settings`` is the directory of sysctl(8)."""
    if package := lacking():
        return distributions.install(package)
    for name, (forbids, allows) in _FORBIDDING.items():
        path = settings / name.replace(".", "/", 1)
        if path.is_file() and path.read_text("ascii", "replace").strip() == forbids:
            return f"sysctl -w {name}={allows}"
    return (
        "allow namespaces; of a container: --security-opt seccomp=unconfined "
        "and --security-opt unmask=ALL (Docker: systempaths=unconfined)"
    )


def _base() -> list[str]:
    system = [word for path in (*_SYSTEM, *_FILES) for word in ("--ro-bind-try", path, path)]
    memory = [word for path, size in _MEMORY.items() for word in (*_sized(size), "--tmpfs", path)]
    own = ["--proc", "/proc", "--dev", "/dev", *memory, "--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp"]
    users = ["--unshare-user"] if os.geteuid() == 0 and not _owns_the_machine() else []
    return ["bwrap", *_ALONE, *users, *system, *own, *_POWERLESS]


@lru_cache(maxsize=1)
def _owns_the_machine() -> bool:
    status = Path("/proc/self/status").read_text("ascii", "replace")
    rights = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return int(rights, 16) & _OF_A_MACHINE == _OF_A_MACHINE


def _prlimit() -> str | None:
    """Where prlimit(1) is, of the directories that a build sees: PATH may name others alone."""
    return which("prlimit") or shutil.which("prlimit", path=os.defpath)


def _limits() -> list[str]:
    """The limits, none above what this process may set, which prlimit(1) would refuse."""
    words = []
    for name, (kind, most) in _LIMITS.items():
        hard = resource.getrlimit(kind)[1]
        words.append(f"--{name}={most if hard == resource.RLIM_INFINITY else min(most, hard)}")
    return [_prlimit() or "prlimit", *words, "--"]


@lru_cache(maxsize=1)
def _knows_sizes() -> bool:
    """Whether bubblewrap limits what it makes of memory (0.7.0); an older one leaves the kernel's limit, half of it."""
    done = subprocess.run(["bwrap", "--help"], check=False, capture_output=True, stdin=subprocess.DEVNULL)
    return b"--size" in done.stdout + done.stderr


def _sized(size: int) -> tuple[str, ...]:
    return ("--size", str(size)) if _knows_sizes() else ()


def _binds(option: str, paths: Iterable[Path]) -> list[str]:
    return [word for path in paths for word in (option, str(path.resolve()), str(path))]


@lru_cache(maxsize=1)
def refused() -> str:
    """Why there is no sandbox on this machine, "" where there is."""
    if package := lacking():
        return f"{'bwrap' if package == 'bubblewrap' else 'prlimit'} is missing"
    argv = [*_base(), *_CLOSED, "--", *_limits(), _prlimit() or "", "--version"]
    done = subprocess.run(argv, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return ""
    words = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
    return f"bwrap does not work here ({words[-1]})"
