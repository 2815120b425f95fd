# SPDX-License-Identifier: GPL-2.0-or-later
"""Real RPM packages, made by rpmbuild."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SPEC = """Name: {name}
Version: 6.17.8
Release: 300.fc43
Summary: A kernel
License: GPL-2.0-only
{more}
%description
A kernel.
%install
cp -a {root}/. %{{buildroot}}/
%files
{paths}
"""


def works() -> bool:
    return shutil.which("rpmbuild") is not None and shutil.which("rpm2archive") is not None


def package(
    folder: Path, files: Mapping[str, bytes | str], *, name: str = "kernel-core", payload: str = "w3.zstdio",
    arch: str = "x86_64", more: str = "", listed: str = "", source: bool = False,
) -> Path:  # fmt: skip
    """An RPM of ``files`` by path; a text is the target of a symbolic link. ``payload`` as rpm's _binary_payload.

    ``more``: a further line of the spec file; ``listed``: what is packed, where it lies there before;
    ``source``: the package of the source instead.
    """
    root = folder / "root"
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            (root / path).symlink_to(content)
        else:
            (root / path).write_bytes(content)
    (folder / "k.spec").write_text(
        _SPEC.format(name=name, root=root, paths=listed or "\n".join(f"/{path}" for path in files), more=more)
    )
    defines = {
        "_topdir": str(folder / "top"),
        "_binary_payload": payload,
        "__os_install_post": "%{nil}",
        "_build_id_links": "none",
        "__brp_check_rpaths": "%{nil}",
    }
    argv = ["rpmbuild", "-bs" if source else "-bb", "--quiet", "--nodeps", "--target", arch]
    argv += [word for key, value in defines.items() for word in ("--define", f"{key} {value}")]
    subprocess.run([*argv, str(folder / "k.spec")], check=True, capture_output=True)
    (made,) = (folder / "top" / ("SRPMS" if source else "RPMS")).rglob("*.rpm")
    return made
