# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a kernel that was built here has no function of a name that its source has: not built, or part of others."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from kdelta.errors import KdeltaError
from kdelta.kernel import definitions, kbuild, kconfig, sandbox, source
from kdelta.kernel.build import not_built
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec

_FOLDERS = {"x86_64": "x86", "arm64": "arm64"}  # below arch/
_ELSEWHERE = frozenset({"Documentation", "LICENSES", "samples", "scripts", "tools"})
_CALL = r"\b%s\s*\("
_HEAD = r"^\w[^\n;{}#=]*\b%s\([^;{}]*\)\s*\{"  # also with an empty line before its brace
_ENTRY = re.compile(r"^__do_sys_")
_ENTRIES = ("__x64_sys_", "__arm64_sys_", "__se_sys_")
_HOSTS, _DEEP = 3, 3  # hosts that are told; calls between an inlined function and its host


def why(spec: KernelSpec, name: str, known: Collection[str]) -> str:
    """A sentence on why the kernel of ``spec`` has no function ``name``; "" where its source does not tell.

    Args:
        known: the functions that the kernel has.
    """
    try:
        folder = source.objects(spec) if spec.kind in BUILT_KINDS else None
        return _why(folder, spec, name, known) if folder is not None else ""
    except (KdeltaError, OSError):
        return ""


def _why(folder: Path, spec: KernelSpec, name: str, known: Collection[str]) -> str:
    tree = folder.parent / "src"
    texts = dict(_holding(tree, _FOLDERS.get(spec.arch, spec.arch), name))
    head = re.compile(_HEAD % re.escape(name), re.MULTILINE)
    defined = [path for path, text in texts.items() if definitions.of(name, path, text) or head.search(text)]
    bodies = [path for path in defined if path.endswith((".c", ".S"))]
    left_out = not_built(folder, tree.name, bodies, lambda made, _: made.exists())
    if bodies and len(left_out) == len(defined):
        return f"{left_out[0]} has it, which this config does not build{_remedy(tree, folder, spec, left_out[0])}"
    hosts = sorted(_hosts(texts, name, frozenset(known), _DEEP)) if defined else []
    if not hosts:
        return ""
    more = f" and {len(hosts) - _HOSTS} more" if len(hosts) > _HOSTS else ""
    return f"it is inlined; ask for what calls it: {', '.join(hosts[:_HOSTS])}{more}"


def _holding(tree: Path, arch: str, name: str) -> Iterator[tuple[str, str]]:
    """(path, text) of the sources that hold the word ``name``."""
    word = name.encode()
    for at, folders, files in os.walk(tree):
        inside = Path(at).relative_to(tree).parts
        keep = {arch} if inside == ("arch",) else None
        folders[:] = sorted(
            one for one in folders if (keep is None or one in keep) and (inside or one not in _ELSEWHERE)
        )
        for one in sorted(files):
            if one.endswith((".c", ".h", ".S")):
                path = Path(at) / one
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                if word in content and word in definitions.words(content):
                    yield "/".join((*inside, one)), content.decode("utf-8", "surrogateescape")


def _hosts(texts: dict[str, str], name: str, known: frozenset[str], deep: int) -> set[str]:
    """The functions of ``known`` that call ``name``, by others that are none where it must be."""
    found: set[str] = set()
    call = re.compile(_CALL % re.escape(name))
    for path, text in texts.items():
        for host, bodies in definitions.every(path, text).items() if call.search(text) else ():
            inside = ("\n".join(definitions.code(body.text)).partition("{")[2] for body in bodies)
            if host == name or not any(call.search(code) for code in inside):
                continue
            own = [one for one in (host, *(_ENTRY.sub(entry, host) for entry in _ENTRIES)) if one in known]
            found |= set(own[:1]) or (_hosts({path: text}, host, known, deep - 1) if deep > 1 else set())
    return found


def _remedy(tree: Path, folder: Path, spec: KernelSpec, path: str) -> str:
    """The options that build ``path``, as what to write behind the kernel; "" where no Makefile says it plainly."""

    def read(name: str) -> str | None:
        return sandbox.read(tree / name) if (tree / name).is_file() else None

    names = kbuild.missing(read, path, kconfig.parse(sandbox.read(folder / ".config")))
    if not names:
        return ""
    with_ = "" if spec.config else f': {spec.text},config="{" ".join(f"{name}=y" for name in names)}"'
    return f" ({', '.join(f'CONFIG_{name}' for name in names)} {'is' if len(names) == 1 else 'are'} off{with_})"
