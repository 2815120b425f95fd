# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels built here: ``src:TREE[@REF][+PATCH...]`` and ``src:debian:VERSION[+PATCH...]``."""

from __future__ import annotations

import re

from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel.sources._source import Source
from kdelta.model import Kernel
from kdelta.model.progress import Progress
from kdelta.spec.kernels import KernelSpec, PatchRef, version

# A "-" takes a patch out where it cannot be part of a name: after a patch's ending, before ./ or /, or written "+-".
# A "+" may be part of one all the same (g++.patch): kernel/steps.py looks which files there are.
_PATCH_SIGN = re.compile(r"(\+-?|(?<=\.patch)-|(?<=\.mbox)-|(?<=\.diff)-|(?<=\.eml)-|(?<=\.txt)-|-(?=\.{0,2}/))")
_DEBIAN = re.compile(r"^(debian:\d{1,5}\.\d{1,5}(?:\.\d{1,5})?)-(?=\S)")


def _patches(body: str) -> tuple[str, tuple[PatchRef, ...]]:
    pieces = _PATCH_SIGN.split(_DEBIAN.sub(r"\1+-", body))
    refs = tuple(PatchRef(path, sign.endswith("-")) for sign, path in zip(pieces[1::2], pieces[2::2], strict=True))
    return pieces[0], refs


def _parse(spec: KernelSpec, body: str) -> KernelSpec:
    tree, patches = _patches(body)
    if any(not patch.path for patch in patches if patch.reverse) or (patches and not patches[-1].path):
        raise UserError(f"kernel {spec.text!r}: the patch file is missing after + or -")
    if tree.startswith("debian:"):
        target = version(spec.text, tree.removeprefix("debian:"))
        return replace(spec, kind="src-debian", target=target, patches=patches)
    tree, _, ref = tree.partition("@")
    if not tree:
        raise UserError(f"kernel {spec.text!r}: src: needs a tree, as in src:./linux@mybranch")
    if ref.startswith("-"):
        raise UserError(f"kernel {spec.text!r}: {ref!r} is not a valid git ref")
    return replace(spec, kind="src", target=tree, ref=ref, patches=patches)


def _write(spec: KernelSpec) -> str:
    patches = "".join(("+-" if patch.reverse else "+") + patch.path for patch in spec.patches)
    tree = f"debian:{spec.target}" if spec.kind == "src-debian" else spec.target
    return f"src:{tree}{f'@{spec.ref}' if spec.ref else ''}{patches}"


def _check(spec: KernelSpec) -> None:
    from kdelta.kernel import wanted

    wanted.check(spec)


def _resolve(spec: KernelSpec, progress: Progress) -> Kernel:
    from kdelta.kernel.source import resolve_source

    return resolve_source(spec, progress)


SOURCE = Source(
    prefix="src",
    forms="src:TREE[@REF][+PATCH], src:debian:VERSION[+PATCH]",
    about="built here from a tree, a commit of it or Debian's source, with patches",
    kinds=("src", "src-debian"),
    parse=_parse,
    write=_write,
    resolve=_resolve,
    check=_check,
    builds=True,
)
