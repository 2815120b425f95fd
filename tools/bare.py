# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the tests on a bare Debian: tools/bare.py [--release NAME] [--in FOLDER] [COMMAND], as root; COMMAND is .ci/run.

A machine on which kdelta is made has more than set-up installs, and perhaps another Python: here a Debian of nothing
but git, make and Python is made from the archive that this machine's apt is configured for, HEAD is put into /root, and
COMMAND is run there, with that Debian as its root. It takes 6 GB in FOLDER, which is kept, and gone on with next time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import container

ROOT = Path(__file__).resolve().parents[1]
_INCLUDE = "ca-certificates,git,make,python3,python3-venv"
_TOOLS = ("mmdebstrap", "unshare", "git")
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_HOME = "root/kdelta"
# A root of its own, not chroot(2)'s: in that nobody may make a user namespace, as bubblewrap does.
_INSIDE = """
set -e
mount --bind "$0" "$0" && cd "$0" && mkdir -p .outside
for place in proc sys dev; do mount --rbind "/$place" "./$place"; done
mount -t tmpfs tmpfs ./tmp
pivot_root . .outside && cd / && umount -l /.outside
cd "/$1" && exec bash -c "$2"
"""


def lacking() -> str:
    """Why it cannot be done here, "" where it can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"apt-get install {' '.join('util-linux' if tool == 'unshare' else tool for tool in missing)}"
    return "" if os.geteuid() == 0 else "it makes a Debian with its owners and mounts it: run it as root"


def make(release: str, root: Path) -> None:
    """A Debian of ``release`` in ``root``; how this machine reaches the archive and PyPI is the same there."""
    settings = container.settings("Acquire::http", "Acquire::Check-Valid-Until")
    options = [f"--aptopt={line}" for line in settings]
    argv = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={_INCLUDE}", *options, release, str(root), "-"]
    subprocess.run(argv, input=container.sources(release), text=True, check=True)
    (root / "etc/pip.conf").write_text(container.pip_settings(f"/{_CERTIFICATES}"), encoding="utf-8")
    for name in ("etc/resolv.conf", _CERTIFICATES):
        if Path("/", name).is_file():
            shutil.copyfile(f"/{name}", root / name)


def put(root: Path) -> None:
    """This checkout's HEAD, without what is not committed; what was installed there before stays."""
    home = root / _HOME
    if not home.exists():
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(home)], check=True)
    for words in (["fetch", "--quiet", str(ROOT), "HEAD"], ["checkout", "--quiet", "--force", "FETCH_HEAD"]):
        subprocess.run(["git", "-C", str(home), *words], check=True)


def run(root: Path, command: str) -> int:
    """The status of ``command``, in the checkout there."""
    words = ["unshare", "--mount", "--propagation", "private", "bash", "-c", _INSIDE, str(root), _HOME, command]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    kept = {name: os.environ[name] for name in ("PYTEST_ADDOPTS", "TERM") if name in os.environ}
    return subprocess.run(words, env=environment | kept, check=False).returncode


def _place(folder: Path | None) -> AbstractContextManager[str]:
    if folder:
        return nullcontext(str(folder))
    return tempfile.TemporaryDirectory(prefix="kdelta-bare-", dir="/var/tmp")  # on a disk: /tmp may be memory


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--release", default="bookworm", help="of Debian, by its name (default: bookworm)")
    parser.add_argument("--in", dest="folder", type=Path, metavar="FOLDER", help="keep it there")
    parser.add_argument("command", nargs="?", default=".ci/run")
    asked = parser.parse_args(words)
    if why := lacking():
        sys.stderr.write(f"bare: {why}\n")
        return 1
    with _place(asked.folder) as folder:
        root = Path(folder).resolve() / asked.release
        root.parent.mkdir(parents=True, exist_ok=True)
        try:
            if not (root / "etc/pip.conf").exists():
                make(asked.release, root)
            put(root)
        except subprocess.CalledProcessError as error:  # which has said why itself
            sys.stderr.write(f"bare: {error.cmd[0]} failed with {error.returncode}\n")
            return 1
        return run(root, asked.command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
