# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel grammar: one way to name a kernel, everywhere. Pure; files are looked at by ``kernel``.

[NAME=]SOURCE[,cmdline="..."][,config=FRAGMENT][,arch=arm64]

A NAME, the label, begins with a letter or digit and has at most 64 letters, digits and ``_ . @ % -``.
What a SOURCE may look like is said by the files of ``kernel/sources``, one for each kind. Texts may be hostile: they
are bounded, and every pattern takes time in proportion to what it reads.
"""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.model import Arch
from kdelta.model import PatchRef as PatchRef

BUILT_KINDS = ("src", "src-debian")  # of kernels that are built here
MAX_CHARS = 16_384
_WHOLE_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LABEL = re.compile(r"^([A-Za-z0-9][A-Za-z0-9_.@%-]{0,63})=(?=\S)")
_HEAD = re.compile(r"^([^=,:\"'/+]*)=(.*)$", re.DOTALL)  # what stands before an = that can be no part of a SOURCE
_COMMIT = re.compile(r"(HEAD|master|main|[0-9a-f]{7,40})([~^]\d*)*")
_RELEASED = re.compile(r"^v?\d{1,5}(\.\d{1,5}){1,2}(-rc\d{1,3})?(\.\.v?\d{1,5}(\.\d{1,5}){1,2})?$", re.ASCII)
_VERSION = re.compile(r"^\d{1,5}\.\d{1,5}(\.\d{1,5})?([-~+][A-Za-z0-9.+~-]{1,100})?$", re.ASCII)
_OPTIONS = ("cmdline", "config", "arch")
ARCHES: dict[str, Arch] = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}


class KernelSpec(Struct, frozen=True, kw_only=True):
    """A kernel as named by a user, parsed. ``target`` is a path, a version or a tree, by ``kind``."""

    text: str
    kind: str  # of those that the files of kernel/sources know
    target: str = ""
    last: str = ""  # end of a range
    flavour: str = ""  # "" = the generic one
    ref: str = ""
    patches: tuple[PatchRef, ...] = ()
    cmdline: str = ""
    config: str = ""
    arch: Arch = "x86_64"
    label: str = ""

    @property
    def is_range(self) -> bool:
        """Whether it names several kernels."""
        return bool(self.last)

    @property
    def short_ref(self) -> str:
        """``ref`` as kernels are called by it: of the whole name of a commit, 12 digits, as in Fixes: tags."""
        return self.ref[:12] if _WHOLE_COMMIT.fullmatch(self.ref) else self.ref


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
        if key in _OPTIONS and (not equals or (key == "config" and not value.strip())):
            raise UserError(f"kernel {text!r}: option {key!r} has no value, as in {key}=...")
        if not equals and part.strip():
            raise UserError(f"kernel {text!r}: {part!r} is no option; each kernel is a word: {' '.join(parts)}")
        if key not in _OPTIONS:
            raise UserError(f"kernel {text!r}: unknown option {key!r}; one of {', '.join(_OPTIONS)} (as key=value)")
        if key in options:
            raise UserError(f"kernel {text!r}: option {key!r} was given twice")
        options[key] = value
    return source, options


def released(source: str) -> str:
    """A version or a range of them alone, as in 6.12, v6.12 or 6.1..7.3, without the v of a tag; "" for other texts."""
    return re.sub(r"(^|\.\.)v", r"\1", source) if _RELEASED.match(source) else ""


def is_commit(source: str) -> bool:
    """Whether a name alone can only be meant as a commit of some git tree, as in HEAD~1, master and 610dbbea2f59."""
    return _COMMIT.fullmatch(source) is not None


def packaged(source: str) -> str:
    """``source`` with the prefix of its kind, where it is the path of a package alone; "" for other texts."""
    _, dot, kind = source.lower().rpartition(".")
    return f"{kind}:{source}" if dot and kind in ("deb", "rpm") and ":" not in source else ""


def version(text: str, wanted: str) -> str:
    """``wanted`` without the v of a tag, where it is a kernel's version; ``text`` is for the message.

    Raises:
        UserError: it is none.
    """
    if len(wanted.split()) > 1:
        raise UserError(f"kernel {text!r}: {wanted!r} is not one version; each kernel is a word, quoted by itself")
    plain = re.sub(r"^v(?=\d)", "", wanted)
    if not _VERSION.match(plain):
        raise UserError(
            f"kernel {text!r}: {wanted!r} is not a version such as 6.12 or 6.12.43; "
            "kdelta kernels list --available has those that there are"
        )
    return plain


def _label(text: str) -> tuple[str, str]:
    """A label in front of a kernel's name, "" without one, and the rest.

    Raises:
        UserError: nothing behind it, or it breaks the rule for labels.
    """
    if match := _LABEL.match(text):
        return match.group(1), text[match.end() :]
    head = _HEAD.match(text)
    if head is None:
        return "", text
    if not head[2].strip():
        raise UserError(f"kernel {text!r}: there is no kernel behind the label, as in {head[1] or 'old'}=debian:6.12")
    raise UserError(
        f"kernel {text!r}: {head[1]!r} is no label: one begins with a letter or digit and has at most 64 letters, "
        "digits and _ . @ % -; a file of that name is written ./FILE"
    )


def split(text: str) -> tuple[KernelSpec, str]:
    """The options and label of a kernel's name as a spec without a kind, and its SOURCE.

    Raises:
        UserError: control characters, too long a name, an unknown option.
    """
    if "\0" in text or "\n" in text:
        raise UserError(f"kernel {text[:200]!r}: control characters are not allowed")
    if len(text) > MAX_CHARS:
        raise UserError(f"kernel {text[:60]!r}...: its name has {len(text)} characters, more than {MAX_CHARS}")
    label, rest = _label(text)
    source, options = _split_options(rest)
    arch = options.get("arch", "x86_64")
    if arch not in ARCHES:
        raise UserError(f"kernel {text!r}: unknown arch {arch!r}; one of {', '.join(ARCHES)}")
    bare = KernelSpec(
        text=text,
        kind="",
        label=label,
        arch=ARCHES[arch],
        cmdline=options.get("cmdline", ""),
        config=options.get("config", ""),
    )
    return bare, source


def joined(spec: KernelSpec, source: str) -> str:
    """The inverse of ``split``: a kernel's name from its SOURCE and the options and label of ``spec``."""
    if source != source.strip() or any(sign in source for sign in ",='\""):  # else it ends there
        source = _quoted(source)
    given = {"cmdline": spec.cmdline, "config": spec.config, "arch": spec.arch if spec.arch != "x86_64" else ""}
    options = "".join(f",{key}={_quoted(value)}" for key, value in given.items() if value)
    return f"{spec.label}={source}{options}" if spec.label else source + options


def _quoted(value: str) -> str:
    """``value`` as one word of ``_split_options``: in double quotes, its own double quotes in single ones."""
    return '"' + value.replace('"', '"\'"\'"') + '"'
