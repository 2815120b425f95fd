# SPDX-License-Identifier: GPL-2.0-or-later
"""Why options that a user asked for came out otherwise, where the source's Kconfig files say it plainly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kdelta.kernel import kbuild, sandbox
from kdelta.model import Arch

_MOST = 4  # options, in a line
_OF_CLANG = ("CC_IS_CLANG", "LD_IS_LLD", "AS_IS_LLVM")
_ARCH: dict[Arch, str] = {"x86_64": "arch/x86", "arm64": "arch/arm64"}


def reasons(src: Path, arch: Arch, asked: Mapping[str, str], config: Mapping[str, str]) -> dict[str, str]:
    """By option of ``asked``, with the value that it was to have: what it needs too, or what sets it."""

    def read(path: str) -> str | None:
        file = src / path
        return sandbox.read(file) if file.is_file() and not file.is_symlink() else None

    every = sorted(str(path.relative_to(src)) for path in src.rglob("Kconfig*"))
    files = [path for path in every if not path.startswith("arch/") or path.startswith((_ARCH[arch], "arch/Kconfig"))]
    told: dict[str, str] = {}
    for name, value in asked.items():
        if value != "n" and not kbuild.declared(read, files, name):
            told[name] = "no Kconfig file of this source has it"
        elif value != "n" and (needs := kbuild.needed(read, files, name, config)):
            told[name] = f"it needs {' '.join(f'{one}=y' for one in needs)} too"
        elif value == "n" and (by := kbuild.selecting(read, files, name, config)):
            more = f" and {len(by) - _MOST} more" if len(by) > _MOST else ""
            select, be = ("selects", "it has to be") if len(by) == 1 else ("select", "they have to be")
            told[name] = f"{', '.join(by[:_MOST])}{more} {select} it: {be} n too"
        elif value not in ("y", "n") and (giver := kbuild.giving(read, files, name, value)):
            told[name] = f"set {giver}=y instead"
        elif value != "n" and (one := kbuild.hidden(read, files, name, config)):
            told[name] = _told(one, name)
    return told


def _told(one: kbuild.Hidden, name: str) -> str:
    if one.name in _OF_CLANG:
        return "it needs clang, and kdelta builds with gcc"
    more = f" and {len(one.selected_by) - _MOST} more" if len(one.selected_by) > _MOST else ""
    by = f"only {', '.join(one.selected_by[:_MOST])}{more} {'set' if len(one.selected_by) > 1 else 'sets'}"
    if one.name == name:
        return f"{by} it" if one.selected_by else "no user sets it"
    return f"it needs {one.name}, which {by if one.selected_by else 'no user sets'}"
