# SPDX-License-Identifier: GPL-2.0-or-later
"""What this machine's distribution calls a package, and the line that installs it. Source: os-release(5)."""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path

FAMILIES = ("debian", "fedora", "arch")  # the columns of packages.tsv
_PACKAGED = "/usr/lib/kdelta"  # the environment of debian/rules, which has all extras and is nobody's to change
_INSTALL = {"debian": "apt-get install", "fedora": "dnf install", "arch": "pacman -S --needed"}


def family_of(os_release: dict[str, str]) -> str:
    """The family that an os-release file tells of, "" for another. Pure."""
    words = [os_release.get("ID", ""), *os_release.get("ID_LIKE", "").split()]
    return next((word for word in words if word in FAMILIES), "")


@cache
def _family() -> str:
    try:
        return family_of(platform.freedesktop_os_release())
    except OSError:
        return ""


@cache
def _table() -> dict[str, tuple[str, ...]]:
    text = resources.files("kdelta").joinpath("packages.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {row[0]: tuple(row) for row in rows}


def names(packages: Iterable[str], family: str) -> tuple[str, ...]:
    """``packages``, which are Debian's names, as ``family`` calls them, each once; those that it lacks are left out.

    A name that the table does not have is taken to be the same everywhere. Pure.
    """
    column = FAMILIES.index(family)
    found = (_table().get(package, (package,) * len(FAMILIES))[column].split(",") for package in packages)
    return tuple(dict.fromkeys(name for row in found for name in row if name != "-"))


def install(packages: str | Iterable[str], family: str | None = None) -> str:
    """The line that installs ``packages`` (Debian's names) on this machine, or on one of ``family``.

    ``install("gcc libc6-dev")`` is ``apt-get install gcc libc6-dev`` on Debian; where the distribution is another it
    says so instead.
    """
    wanted = packages.split() if isinstance(packages, str) else list(packages)
    family = _family() if family is None else family
    if not family:
        return f"install what Debian calls {', '.join(wanted)}"
    found = names(wanted, family)
    if not found:
        return f"build {', '.join(wanted)} from source: {family} has no package of it"
    return f"{_INSTALL[family]} {' '.join(found)}"


def extra(name: str) -> str:
    """The line that gives this very kdelta what its extra ``name`` (``fleet``, ``lab``, ``serve``) needs."""
    if sys.prefix == _PACKAGED:  # labgrid brings a gRPC with a zlib of its own, which no package of Debian's may
        return "in kdelta's sources: pipx install '.[lab]'" if name == "lab" else "apt-get install --reinstall kdelta"
    here, found = Path(sys.executable).parent, shutil.which("pip")
    pip = "pip" if found and Path(found).parent == here else shlex.join([sys.executable, "-m", "pip"])
    return f"{pip} install 'kdelta[{name}]'"
