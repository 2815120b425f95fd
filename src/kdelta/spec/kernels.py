# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel grammar: one way to name a kernel, everywhere. Pure; files are looked at by ``kernel``.

[NAME=]SOURCE[,cmdline="..."][,config=FRAGMENT][,arch=arm64]

SOURCE  running | PATH | deb:FILE | debian:VERSION[/FLAVOUR] | debian:FIRST..LAST[/FLAVOUR]
        | src:TREE[@REF][+PATCH|-PATCH...] | src:debian:VERSION[+PATCH|-PATCH...]
"""

from __future__ import annotations

import re
import shlex
from typing import Literal

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.model import Arch

Kind = Literal["running", "image", "deb", "debian", "range", "src", "src-debian"]

_LABEL = re.compile(r"^([A-Za-z0-9][A-Za-z0-9_.@%-]{0,63})=(?=\S)")
_VERSION = re.compile(r"^\d+\.\d+(\.\d+)?([-~+][A-Za-z0-9.+~-]+)*$")
_FLAVOUR = re.compile(r"^[a-z0-9][a-z0-9-]*$")
# A "-" takes a patch out where it cannot be part of a name: after a patch's ending, before ./ or /, or written "+-".
_PATCH_SIGN = re.compile(r"(\+-?|(?<=\.patch)-|(?<=\.mbox)-|(?<=\.diff)-|(?<=\.eml)-|(?<=\.txt)-|-(?=\.{0,2}/))")
_DEBIAN_SOURCE = re.compile(r"^(debian:\d+\.\d+(?:\.\d+)?)-(?=\S)")
_OPTIONS = ("cmdline", "config", "arch")
_ARCHES: dict[str, Arch] = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}

FORMS = (
    "running, a path to an image, deb:FILE, debian:VERSION[/FLAVOUR], debian:FIRST..LAST, "
    "src:TREE[@REF][+PATCH], src:debian:VERSION[+PATCH]"
)


class PatchRef(Struct, frozen=True):
    """A patch to apply, or with ``reverse`` to take out."""

    path: str
    reverse: bool = False


class KernelSpec(Struct, frozen=True, kw_only=True):
    """A kernel as named by a user, parsed. ``target`` is a path, a version or a tree, by ``kind``."""

    text: str
    kind: Kind
    target: str = ""
    last: str = ""  # end of a range
    flavour: str = ""  # "" = the generic one
    ref: str = ""
    patches: tuple[PatchRef, ...] = ()
    cmdline: str = ""
    config: str = ""
    arch: Arch = "x86_64"
    label: str = ""


def _split_options(text: str) -> tuple[str, dict[str, str]]:
    """``a,cmdline="x y"`` -> (``a``, {cmdline: "x y"}); commas inside quotes do not split."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters, lexer.escape = ",", True, "", ""
    try:
        parts = list(lexer)
    except ValueError as error:
        raise UserError(f"kernel {text!r}: unbalanced quotes ({error})") from None
    source, options = (parts[0] if parts else ""), {}
    for part in parts[1:]:
        key, equals, value = part.partition("=")
        if not equals or key not in _OPTIONS:
            raise UserError(f"kernel {text!r}: unknown option {key!r}; one of {', '.join(_OPTIONS)} (as key=value)")
        if key in options:
            raise UserError(f"kernel {text!r}: option {key!r} given twice")
        options[key] = value
    return source, options


def _version(text: str, version: str) -> str:
    if not _VERSION.match(version):
        raise UserError(f"kernel {text!r}: {version!r} is not a version such as 6.12 or 6.12.43")
    return version


def _debian(text: str, body: str) -> dict[str, object]:
    version, slash, flavour = body.partition("/")
    if slash and not _FLAVOUR.match(flavour):
        raise UserError(f"kernel {text!r}: {flavour!r} is not a flavour such as cloud or rt")
    if ".." in version:
        first, _, last = version.partition("..")
        return {"kind": "range", "target": _version(text, first), "last": _version(text, last), "flavour": flavour}
    return {"kind": "debian", "target": _version(text, version), "flavour": flavour}


def _patches(body: str) -> tuple[str, tuple[PatchRef, ...]]:
    pieces = _PATCH_SIGN.split(_DEBIAN_SOURCE.sub(r"\1+-", body))
    refs = tuple(PatchRef(path, sign.endswith("-")) for sign, path in zip(pieces[1::2], pieces[2::2], strict=True))
    return pieces[0], refs


def _source(text: str, body: str) -> dict[str, object]:
    tree, patches = _patches(body)
    if any(not patch.path for patch in patches):
        raise UserError(f"kernel {text!r}: a patch's name is missing after + or -")
    if tree.startswith("debian:"):
        return {"kind": "src-debian", "target": _version(text, tree.removeprefix("debian:")), "patches": patches}
    tree, _, ref = tree.partition("@")
    if not tree:
        raise UserError(f"kernel {text!r}: src: needs a tree, as in src:./linux@mybranch")
    if ref.startswith("-"):
        raise UserError(f"kernel {text!r}: {ref!r} cannot be a git ref")
    return {"kind": "src", "target": tree, "ref": ref, "patches": patches}


def _fields(text: str, source: str) -> dict[str, object]:
    scheme, colon, body = source.partition(":")
    if source == "running":
        return {"kind": "running"}
    if colon and scheme in ("deb", "debian", "src"):
        if not body:
            raise UserError(f"kernel {text!r}: nothing after {scheme}:")
        if scheme == "deb":
            return {"kind": "deb", "target": body}
        return _debian(text, body) if scheme == "debian" else _source(text, body)
    if not source or (colon and "/" not in scheme):
        raise UserError(f"kernel {text!r}: not a kernel; forms: {FORMS}")
    return {"kind": "image", "target": source}


def parse_kernel(text: str) -> KernelSpec:
    """Parse one kernel name.

    Raises:
        UserError: the text fits no form of the grammar.
    """
    if "\0" in text or "\n" in text:
        raise UserError(f"kernel {text!r}: control characters are not allowed")
    label = ""
    rest = text
    if match := _LABEL.match(text):
        label, rest = match.group(1), text[match.end() :]
    source, options = _split_options(rest)
    arch = options.get("arch", "x86_64")
    if arch not in _ARCHES:
        raise UserError(f"kernel {text!r}: unknown arch {arch!r}; one of {', '.join(_ARCHES)}")
    fields = _fields(text, source)
    return KernelSpec(
        text=text,
        label=label,
        arch=_ARCHES[arch],
        cmdline=options.get("cmdline", ""),
        config=options.get("config", ""),
        **fields,  # type: ignore[arg-type]
    )
