# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpack a QEMU of 10 or later beside the installed one, for tests: prints the path of its wrapper.

Debian's backports for the machine's own release, signatures verified, nothing installed:
    KDELTA_QEMU_ALT=$(.venv/bin/python tools/fetch_qemu.py) make test-full
"""

from __future__ import annotations

import re
import subprocess
import sys

from kdelta import paths
from kdelta.cli.progress import Reporter
from kdelta.kernel.apt import Apt

PACKAGES = ("qemu-system-x86", "qemu-system-arm", "qemu-system-common", "qemu-system-data")
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def backport(stanzas: str) -> str:
    """The version of QEMU 10 or later that was built for Debian 12, from apt's stanzas."""
    versions = re.findall(r"^Version: (1:1\d\.[^\n]*~bpo12\+\d+)$", stanzas, re.MULTILINE)
    if not versions:
        raise SystemExit("fetch_qemu: this archive has no QEMU 10 for Debian 12")
    return str(versions[0])


def main() -> int:
    target = paths.cache_dir() / "qemu-alt"
    wrapper = target / "bin" / "qemu-system-x86_64"
    if not wrapper.exists():
        apt = Apt(paths.cache_dir() / "apt", "amd64")
        reporter = Reporter()
        stanzas = apt.show("^qemu-system-x86$")
        if "~bpo12" not in stanzas:
            apt.update(reporter)
            stanzas = apt.show("^qemu-system-x86$")
        version = backport(stanzas)
        root = target / "root"
        root.mkdir(parents=True, exist_ok=True)
        for package in PACKAGES:
            with apt.download(package, version) as deb:
                subprocess.run(["dpkg-deb", "-x", str(deb), str(root)], check=True)
        wrapper.parent.mkdir(exist_ok=True)
        for name in ("qemu-system-x86_64", "qemu-system-aarch64"):
            script = wrapper.parent / name
            script.write_text(
                "#!/bin/sh\n"
                f'exec env LD_LIBRARY_PATH="{root}/{LIBRARIES}" "{root}/usr/bin/{name}" '
                f'-L "{root}/usr/share/qemu" -L /usr/share/seabios -L /usr/share/qemu "$@"\n'
            )
            script.chmod(0o755)
    print(wrapper)
    return 0


if __name__ == "__main__":
    sys.exit(main())
