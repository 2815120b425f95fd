# SPDX-License-Identifier: GPL-2.0-or-later
"""What a first measurement makes and keeps, made by processes beside this one while its kernels are fetched and read.

They only fill the cache: what went wrong there is told by who then makes it himself. They are waited for where it is
needed, and outlive a command that ended before.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from typing import IO

import msgspec

from kdelta import paths
from kdelta.guest import binary
from kdelta.kernel import naming
from kdelta.machine import plugin
from kdelta.model import Kernel

_compiling: list[subprocess.Popen[bytes]] = []
_reading: list[subprocess.Popen[bytes]] = []


def begin_compiling() -> None:
    """Compile the guest's program and the plugin, where none was ever compiled here."""
    cache = paths.cache_dir()
    kept = {"program": (cache / "guest").glob(f"*/{binary.NAME}"), "plugin": (cache / "plugin").glob("*.so")}
    _compiling.extend(_begun(what) for what, found in kept.items() if not any(found))


def begin_reading(kernel: Kernel) -> None:
    """Read the names of a kernel's functions and their calls, where that was never done."""
    image = naming.image_path(kernel)
    if image is None or naming.cached_path(image).exists():
        return
    _reading.append(_begun("names", msgspec.json.encode(kernel)))


def _begun(what: str, told: bytes = b"") -> subprocess.Popen[bytes]:
    """One of these things under way, whose errors nobody hears; it reads what it is ``told``."""
    argv = [sys.executable, "-P", "-m", "kdelta.experiment.ahead", what]  # -P: where it is started may be a json.py
    quiet = subprocess.DEVNULL
    with tempfile.TemporaryFile() as file:
        file.write(told)
        file.seek(0)
        return subprocess.Popen(argv, stdin=file, stdout=quiet, stderr=quiet, start_new_session=True)


def compiled() -> None:
    """Wait until nothing more is compiled."""
    while _compiling:
        _compiling.pop().wait()


def read() -> None:
    """Wait until no kernel's names are read any more."""
    while _reading:
        _reading.pop().wait()


def make(what: str, told: IO[bytes]) -> None:
    """Do one of these things, in a process of its own.

    Raises:
        HostError: it cannot be done: who needs it is told why.
    """
    cache = paths.cache_dir()
    if what == "plugin":
        plugin.build(cache)
    elif what == "program":
        binary.build("arm64" if platform.machine() == "aarch64" else "x86_64", cache=cache)
    else:
        from kdelta.experiment.known import known

        known()(msgspec.json.decode(told.read(), type=Kernel))


if __name__ == "__main__":
    make(sys.argv[1], sys.stdin.buffer)
