# SPDX-License-Identifier: GPL-2.0-or-later
"""The QEMU that guests of several CPUs are counted in: the installed one, else Debian's backport in a private folder.

Short turns need QEMU 8.1 (with 7.2 they corrupt guests: flags and memory), telling the CPUs apart needs 9.0 (plugins
read registers from there on). Debian 12 has 7.2 and, in its backports, 10.0.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from kdelta import paths
from kdelta.errors import HostError
from kdelta.kernel.debian import Archive
from kdelta.machine import probe, turns
from kdelta.machine.qemu import binary_name
from kdelta.model import Arch, Progress

SEVERAL_CPUS = (9, 0)
_PACKAGES = ("qemu-system-x86", "qemu-system-arm", "qemu-system-common", "qemu-system-data")
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_UNPACK_LIMIT_S = 600
_FOLDER = "qemu-alt"


def backport(stanzas: str) -> str:
    """The version of QEMU 10 or later that was built for Debian 12, from apt's stanzas.

    Raises:
        HostError: there is none.
    """
    versions = re.findall(r"^Version: (1:1\d\.[^\n]*~bpo12\+\d+)$", stanzas, re.MULTILINE)
    if not versions:
        raise HostError("this machine's Debian archive has no QEMU 10 for Debian 12 (bookworm-backports)")
    return str(versions[0])


def _unpack(root: Path, progress: Progress) -> None:
    archive = Archive("x86_64", progress)
    archive.index()
    stanzas = archive.apt.show("^qemu-system-x86$")
    if "~bpo12" not in stanzas:
        archive.update()
        stanzas = archive.apt.show("^qemu-system-x86$")
    version = backport(stanzas)
    progress.step(f"fetching QEMU {version} into {root}")
    with archive.apt.downloads(_PACKAGES, version) as debs:
        for done, deb in enumerate(debs):
            progress.step(f"unpacking QEMU {version} into {root}", done, len(debs))
            argv = ["dpkg-deb", "-x", str(deb), str(root)]
            try:
                unpacked = subprocess.run(argv, capture_output=True, text=True, timeout=_UNPACK_LIMIT_S, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise HostError(f"dpkg-deb cannot unpack {deb.name}: {error}") from None
            if unpacked.returncode:
                raise HostError(f"dpkg-deb cannot unpack {deb.name}: {unpacked.stderr.strip()}")


def fetched(progress: Progress) -> Path:
    """The folder with Debian 12's QEMU 10 for all architectures, fetched on first use; signatures verified by apt.

    Nothing is installed: the packages are unpacked below the cache, and run with their own libraries.

    Raises:
        HostError: no Debian archive, no such package, or the disk is full.
    """
    target = paths.cache_dir() / _FOLDER
    programs = target / "bin"
    if (programs / binary_name("x86_64")).exists():
        return programs
    root = target / "root"
    try:
        root.mkdir(parents=True, exist_ok=True)
        _unpack(root, progress)
        programs.mkdir(exist_ok=True)
        for name in (binary_name("arm64"), binary_name("x86_64")):  # the last one says that all is there
            script = programs / name
            words = ["exec", "env", f"LD_LIBRARY_PATH={root / _LIBRARIES}", f"QEMU_MODULE_DIR={root / _LIBRARIES}/qemu"]
            words += [str(root / "usr/bin" / name), "-L", str(root / "usr/share/qemu")]
            words += ["-L", "/usr/share/seabios", "-L", "/usr/share/qemu"]
            script.write_text(f'#!/bin/sh\n{shlex.join(words)} "$@"\n')
            script.chmod(0o755)
    except OSError as error:
        raise HostError(f"cannot unpack QEMU below {target}: {error.strerror or error}") from None
    return programs


def of_several_cpus(arch: Arch) -> probe.Qemu | None:
    """The QEMU of ``for_several_cpus``, where nothing has to be fetched for it.

    Raises:
        HostError: no QEMU.
    """
    name = binary_name(arch)
    found = probe.find_qemu(name, arch)
    if found.version >= SEVERAL_CPUS:
        return found
    kept = paths.cache_dir() / _FOLDER / "bin" / name
    return probe.find_qemu(name, arch, str(kept)) if kept.exists() else None


def for_several_cpus(arch: Arch, chosen: str, progress: Progress) -> probe.Qemu:
    """A QEMU that can count guests of several CPUs.

    Raises:
        HostError: the user's choice cannot, or none can be had.
    """
    name = binary_name(arch)
    found = probe.find_qemu(name, arch, chosen)
    if found.version >= SEVERAL_CPUS:
        if turns.unchecked(found.path):
            progress.note(
                f"{found.path} exports none of its functions: whether its CPUs' turns are short is not checked"
            )
        return found
    needs = f"{found.path} is QEMU {found.text}: to count guests of several CPUs it takes 9.0 or later"
    if chosen:
        raise HostError(f"{needs}; leave --qemu out")
    progress.note(f"{needs}; Debian's backport is used, in a folder of its own")
    try:
        return probe.find_qemu(name, arch, str(fetched(progress) / name))
    except HostError as error:
        raise HostError(f"{needs}; its backport cannot be had ({error}); name another with --qemu") from None
