# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory pressure beside a case: what may be asked for, and the host's stress-ng packed for a guest."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kdelta import distributions
from kdelta.errors import HostError, UserError
from kdelta.model import Arch

_FORM = re.compile(r"^([1-9][0-9]?)x([1-9][0-9]?)%?$")
_MOST_WORKERS, _MOST_PERCENT = 64, 95  # as guest/pressure.c has them
_LIBRARY = re.compile(r"^\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)$")
MACHINES = {"x86_64": "x86_64", "aarch64": "arm64"}
_INSTALL = f"install it with: sudo {distributions.install('stress-ng')}"


def parse(text: str) -> str:
    """``2x60%`` (workers x percent of the guest's memory, all workers together), canonical.

    Raises:
        UserError: it is neither that nor within 1..64 workers and 1..95 percent.
    """
    match = _FORM.match(text.strip())
    if match is None or int(match[1]) > _MOST_WORKERS or int(match[2]) > _MOST_PERCENT:
        raise UserError(
            f"--pressure {text!r}: give WORKERSxPERCENT% of the guest's memory, as in 2x60% "
            f"(at most {_MOST_WORKERS} workers, {_MOST_PERCENT}%)"
        )
    return f"{int(match[1])}x{int(match[2])}%"


def libraries(ldd: str) -> dict[str, Path]:
    """What ``ldd`` printed -> {where the library goes in the guest: its file}. The loader keeps its own path. Pure."""
    found: dict[str, Path] = {}
    for line in ldd.splitlines():
        if match := _LIBRARY.match(line):
            name, path = match[1], Path(match[2])
            place = f"pressure/lib/{Path(name).name}" if name else str(path).lstrip("/")
            found[place] = path
    return found


def programs(arches: Sequence[Arch]) -> dict[str, Path]:
    """The files of stress-ng: path in the guest without its leading slash -> file of this host.

    Raises:
        HostError: it is not installed, or these guests cannot run this host's programs.
    """
    host = MACHINES.get(platform.machine())
    if foreign := [arch for arch in arches if arch != host]:
        raise HostError(
            f"--pressure: a guest of {foreign[0]} cannot run the stress-ng of this {host} host; leave it out"
        )
    program = shutil.which("stress-ng")
    if program is None:
        raise HostError(f"--pressure needs stress-ng, which is not installed; {_INSTALL}")
    try:
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"--pressure: ldd {program} failed: {error}; {_INSTALL}") from None
    if "not found" in said.stdout:
        missing = next(line.strip() for line in said.stdout.splitlines() if "not found" in line)
        raise HostError(f"--pressure: {program} lacks a library ({missing}); {_INSTALL}")
    return {"pressure/stress-ng": Path(program), **libraries(said.stdout)}
