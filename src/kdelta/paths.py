# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are: the user's cache and store, and the files that ship with kdelta."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from kdelta.errors import HostError


def expanded(name: str | Path) -> Path:
    """``name`` with the home that ~ or ~USER stands for, as a shell has it: as it is, where there is none."""
    return Path(os.path.expanduser(name))


def _home() -> Path:
    """Raises:
    HostError: the user has none, as where a container runs under a number.
    """
    try:
        return Path.home()
    except RuntimeError:
        raise HostError("this user has no home directory: set HOME, or KDELTA_STATE and KDELTA_CACHE") from None


def cache_dir() -> Path:
    """``$KDELTA_CACHE``, else ``$XDG_CACHE_HOME/kdelta``: kernels, guest binaries, snapshots; all rebuildable.

    Absolute: QEMU and builds do not run where kdelta does.
    """
    root = os.environ.get("KDELTA_CACHE")
    if root:
        return Path(root).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache").absolute() / "kdelta"


def state_dir() -> Path:
    """``$KDELTA_STATE``, else ``$XDG_STATE_HOME/kdelta``: results and consoles; not rebuildable."""
    root = os.environ.get("KDELTA_STATE")
    if root:
        return Path(root)
    return Path(os.environ.get("XDG_STATE_HOME") or _home() / ".local" / "state") / "kdelta"


def named_store() -> str:
    """``$KDELTA_STORE``, an SQLAlchemy URL; "" where the user names none."""
    return os.environ.get("KDELTA_STORE", "")


def store_url() -> str:
    """``named_store()``, else SQLite in the state directory."""
    return named_store() or f"sqlite:///{state_dir() / 'kdelta.sqlite'}"


_MOST_TEXT = 16 << 20


def written(path: Path) -> str:
    """The text that a user wrote into a file, or hands over in a pipe.

    Raises:
        OSError: it cannot be read, or does not end within 16 MiB, as /dev/zero never does.
        UnicodeDecodeError: it is no text.
    """
    with path.open("rb") as file:
        data = file.read(_MOST_TEXT + 1)
    if len(data) > _MOST_TEXT:
        raise OSError(errno.EFBIG, f"longer than {_MOST_TEXT >> 20} MiB", str(path))
    return data.decode()


def shipped(name: str) -> Path:
    """The directory ``guest``, ``plugin`` or ``recipes``, from the checkout or from the installed package.

    Raises:
        HostError: the installation lacks it.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data" / name, package.parents[1] / name):
        if candidate.is_dir():
            return candidate
    raise HostError(f"kdelta's own directory {name!r} is missing beside {package}: reinstall kdelta")
