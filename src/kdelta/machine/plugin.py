# SPDX-License-Identifier: GPL-2.0-or-later
"""The counting plugin, compiled where it will run and kept in the cache under the hash of what it was made from."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache as memoise
from pathlib import Path

from kdelta import digests, distributions
from kdelta.errors import HostError
from kdelta.guest.binary import SILENT
from kdelta.paths import shipped

_FLAGS = ("-std=c11", "-O2", "-flto", "-shared", "-fPIC", "-fvisibility=hidden")
_COMPILE_LIMIT_S = 120
_HELP_LIMIT_S = 20
# 11.0 has interface 6, and nothing by which the plugin could tell it from 11.1 and its 7: plugin/versions.c.
COUNTS_IN = "kdelta counts in QEMU 7.2, 9.0 to 10.0 and 11.1: name one with --qemu, or measure with --timed"


def _compiler() -> tuple[str, str]:
    gcc = shutil.which("gcc")
    if gcc is None:
        remedy = distributions.install("gcc libc6-dev")
        raise HostError(f"plugin: no gcc on this machine to compile it; install it with: sudo {remedy}")
    return gcc, _version(gcc)


@memoise
def _version(gcc: str) -> str:
    said = subprocess.run([gcc, "--version"], capture_output=True, text=True, check=False)
    return said.stdout.partition("\n")[0]


def _digest(files: list[Path], compiler: str, flags: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join((compiler, *flags)).encode())
    for path in files:
        content = path.read_bytes()
        digest.update(f"\0{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def build(cache: Path, warnings: Sequence[str] = SILENT) -> Path:
    """The plugin as a shared object below ``cache``, compiled unless those of the same sources is there, whole.

    Args:
        warnings: what the compiler warns of; where kdelta is used, of nothing: a newer one knows more warnings.

    Raises:
        HostError: no compiler, the compiler refuses, or the cache cannot be written.
    """
    folder = shipped("plugin")
    files = sorted([*folder.glob("*.c"), *folder.glob("*.h")])
    sources = [path.name for path in files if path.suffix == ".c"]  # in their folder: assert() would keep its path
    gcc, compiler = _compiler()
    flags = (*_FLAGS, *warnings)
    target = cache / "plugin" / f"kdelta-{_digest(files, compiler, flags)}.so"
    if digests.is_whole(target):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
            made = (Path(scratch) / target.name).absolute()
            done = subprocess.run(
                [gcc, *flags, "-o", str(made), *sources],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_COMPILE_LIMIT_S,
                check=False,
            )
            if done.returncode:
                lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
                first = next((line for line in lines if " error: " in line), lines[0])
                raise HostError(f"plugin: {gcc} cannot compile {folder}: {first}")
            digests.keep(made, target)
    except OSError as error:
        raise HostError(f"plugin: cannot write below {cache}: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise HostError(f"plugin: {gcc} took more than {_COMPILE_LIMIT_S} s to compile {folder}") from None
    return target


@memoise
def supports_plugins(qemu: Path) -> bool:
    """Whether this QEMU was built with plugins: its own help names the option.

    Raises:
        HostError: it cannot be run at all.
    """
    try:
        said = subprocess.run([str(qemu), "-h"], capture_output=True, text=True, timeout=_HELP_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"QEMU {qemu}: cannot be run ({error}); install it or name another with --qemu") from None
    return any(line.startswith("-plugin ") for line in said.stdout.splitlines())


def refusal(qemu: Path, built: Path) -> str:
    """Why this QEMU does not load the plugin, "" where it does: the plugin then refuses an argument."""
    argv = [str(qemu), "-M", "none", "-display", "none", "-plugin", f"{built},speed=0"]
    try:
        said = subprocess.run(argv, capture_output=True, text=True, timeout=_HELP_LIMIT_S, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it cannot be run: {error}"
    if "unknown argument speed=0" in said:
        return ""
    return said.strip().rpartition(".so: ")[2] or "it says nothing"
