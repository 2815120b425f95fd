# SPDX-License-Identifier: GPL-2.0-or-later
"""Build contrib/container/Containerfile without a registry, and run in it what CI would: tools/container.py [FOLDER]

The base is a Debian made from the archive that this machine's apt is configured for, under the name that the file has
for it. How this machine reaches the archive and PyPI is mounted while the image is built, and in no layer. While it
runs it takes 4 GB below FOLDER, or where temporary files are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kdelta.kernel import apt

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "contrib" / "container" / "Containerfile"
NAME = "localhost/kdelta"
KERNELS = ("debian:6.1/cloud", "debian:6.12/cloud")
_TOOLS = ("buildah", "mmdebstrap")
_UNRELEASED = ("sid", "unstable", "testing")  # the archive of security updates has none for these
_BASE = re.compile(r"^ARG BASE=(\S+/debian:([a-z]+)-slim)$", re.MULTILINE)
# Debian's slim images have no manual pages and no documentation.
_SLIM = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PIP = (sys.executable, "-m", "pip", "config", "list")
_OUTSIDE = "/run/outside"  # where the settings of this machine are while the image is built


def lacking() -> str:
    """Why no image can be made here, "" where one can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return f"apt-get install {' '.join(missing)}" if missing else ""


def _run(argv: Sequence[str | Path], given: str | None = None) -> str:
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False, errors="replace", input=given)
    if done.returncode:
        raise SystemExit(f"{argv[0]} failed with {done.returncode}: {' '.join(map(str, argv))}\n{done.stdout[-4000:]}")
    return done.stdout


def sources(release: str) -> str:
    """The archive of ``release`` as this machine's apt knows it, for mmdebstrap(1)."""
    main, security = apt.archives(apt.machine_sources())
    if main is None:
        raise SystemExit("apt knows no Debian archive")
    lines = [f"deb {main.uri} {release} main"]
    if security and release not in _UNRELEASED:
        lines.append(f"deb {security.uri} {release}-security main")
    return "\n".join(lines) + "\n"


def settings(*beginnings: str) -> list[str]:
    """Lines of this machine's apt configuration."""
    return [line for line in _run(["apt-config", "dump"]).splitlines() if line.startswith(beginnings)]


def pip_settings(certificates: str) -> str:
    """How this machine reaches PyPI, as a pip.conf with the ``certificates`` of another place."""
    chosen = re.findall(r"^global\.(index-url|extra-index-url|proxy)='(.*)'$", _run(_PIP), re.MULTILINE)
    return "\n".join(["[global]", f"cert = {certificates}", *(f"{name} = {value}" for name, value in chosen), ""])


class Engine:
    """buildah(1) with a storage of its own, below ``folder``, and what it mounts while it builds."""

    def __init__(self, folder: Path) -> None:
        self._words: list[str | Path] = ["buildah", "--root", folder / "storage", "--runroot", folder / "run"]
        self._folder = folder

    def __call__(self, *words: str | Path) -> str:
        return _run([*self._words, *words])

    def base(self) -> None:
        """Make the image that the file is built from."""
        found = _BASE.search(FILE.read_text(encoding="utf-8"))
        if found is None:
            raise SystemExit(f"{FILE}: no base of Debian is named")
        made = self._folder / "base.tar"
        argv = ["mmdebstrap", "--quiet", "--variant=minbase", *_SLIM, found[2], str(made), "-"]
        _run(argv, sources(found[2]))
        container = self("from", "scratch").strip()
        self("add", container, made, "/")
        self("commit", "--quiet", "--rm", container, found[1])
        made.unlink()

    def image(self) -> None:
        """Build the file as it is, from that base alone."""
        volumes = [word for place, path in self._outside().items() for word in ("--volume", f"{path}:{place}:ro")]
        options = ["--isolation", "chroot", "--pull-never", *volumes, "--file", str(FILE), "--tag", NAME]
        self("build", *options, str(ROOT))

    def _outside(self) -> dict[str, Path]:
        pip, proxies = self._folder / "pip.conf", self._folder / "apt.conf"
        pip.write_text(pip_settings(f"{_OUTSIDE}.crt"), encoding="utf-8")
        proxies.write_text("".join(f"{line}\n" for line in settings("Acquire::http")))
        return {"/etc/pip.conf": pip, f"{_OUTSIDE}.crt": _CERTIFICATES, "/etc/apt/apt.conf.d/99outside": proxies}

    def ran(self, *words: str, user: str = "") -> str:
        """What a command says in a container of the image, as its user or another; what it wrote is gone then."""
        container = self("from", "--pull-never", NAME).strip()
        try:
            options = ("--isolation", "chroot", *(("--user", user) if user else ()))
            return self("run", *options, container, "--", *words)
        finally:
            self("rm", container)


@contextmanager
def built(folder: Path) -> Iterator[Engine]:
    """The image, in ``folder``; its layers are gone after that."""
    engine = Engine(folder)
    try:
        engine.base()
        engine.image()
        yield engine
    finally:
        engine("rm", "--all")
        engine("rmi", "--all", "--force")


def main() -> int:
    if why := lacking():
        print(f"container: {why}", file=sys.stderr)
        return 1
    place = sys.argv[1] if sys.argv[1:] else None
    with tempfile.TemporaryDirectory(dir=place) as folder, built(Path(folder)) as engine:
        for words in (["--version"], ["doctor"], ["compare", *KERNELS, "--case", "pidfd_open"]):
            print(f"$ kdelta {' '.join(words)}\n{engine.ran('kdelta', *words)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
