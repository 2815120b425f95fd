# SPDX-License-Identifier: GPL-2.0-or-later
"""A source and what is built of it, as they travel to another machine that builds it in this one's place.

The base's files go as one file: a tarball, or of a git repository a pack of the commit's tree, which git holds against
the tree's hash when it reads it. Patches, uncommitted files and the config go beside it.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from kdelta.errors import HostError
from kdelta.kernel import origin
from kdelta.kernel.config_fragment import Request
from kdelta.kernel.one_build import Wanted
from kdelta.kernel.patch import File
from kdelta.kernel.steps import Step
from kdelta.kernel.toolchain import Toolchain
from kdelta.model import Arch

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


class Carried(Struct, frozen=True, kw_only=True):
    """A build without its base's files; ``name`` is the kernel as the user named it, ``tools`` the compiler's id."""

    name: str
    arch: Arch
    tools: str
    request: Request
    steps: tuple[Step, ...]
    form: Literal["tarball", "git", "folder"]
    key: str
    base: str
    id: str
    title: str
    version: tuple[int, int]
    files: dict[str, File] = {}
    notes: tuple[str, ...] = ()
    tree_id: str = ""

    def encode(self) -> bytes:
        """As JSON of ASCII: texts of source files and patches need not be UTF-8 (``worktree.decode``)."""
        return json.dumps(msgspec.to_builtins(self)).encode()


def decode(data: bytes) -> Carried:
    """What ``Carried.encode`` wrote.

    Raises:
        HostError: it is not that.
    """
    try:
        found = msgspec.convert(json.loads(data), Carried)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise HostError(f"the build that was sent cannot be read ({error})") from None
    if not _KEY.fullmatch(found.key):
        raise HostError(f"the build that was sent names its work tree {found.key[:80]!r}, which is no name")
    return found


def of(wanted: Wanted, name: str) -> Carried:
    """``wanted`` as it travels."""
    source = wanted.origin
    forms: dict[type, Literal["tarball", "git", "folder"]] = {origin.Git: "git", origin.Folder: "folder"}
    return Carried(
        name=name,
        arch=wanted.tools.arch,
        tools=wanted.tools.id,
        request=wanted.request,
        steps=wanted.steps,
        form=forms.get(type(source), "tarball"),
        key=source.key,
        base=source.base,
        id=source.id,
        title=source.title,
        version=source.version,
        files=source.files,
        notes=source.notes,
        tree_id=source.tree_id if isinstance(source, origin.Git) else "",
    )


def pack(source: origin.Origin, scratch: Path) -> Path:
    """The files of the base of ``source`` as one file, below ``scratch`` where it has to be made.

    Raises:
        HostError: git or tar is missing or fails.
    """
    if isinstance(source, origin.Tarball):
        return Path(source.path)
    if isinstance(source, origin.Git):
        words = [f"--git-dir={source.git_dir}", "pack-objects", "--revs", "--stdout", "-q"]
        made = scratch / "source.pack"
        with made.open("wb") as file:
            _run(["git", *words], f"packing {source.title}", stdin=f"{source.tree_id}\n".encode(), out=file.fileno())
        return made
    made = scratch / "source.tar"
    names = b"\0".join(name.encode("utf-8", "surrogateescape") for name, _ in origin.listing(Path(source.path)))
    words = ["--create", f"--file={made}", "--format=posix", f"--directory={source.path}", "--no-recursion"]
    _run(["tar", *words, "--null", "--verbatim-files-from", "--files-from=-"], f"packing {source.title}", stdin=names)
    return made


def wanted(sent: Carried, tools: Toolchain, home: Path) -> Wanted:
    """The build of ``sent`` with its source as ``unpack`` leaves it at ``home``.

    Raises:
        HostError: this machine's compiler is another one.
    """
    if tools.id != sent.tools:
        raise HostError(f"{sent.name}: this machine has another compiler than the one that asks ({tools.title})")
    common = {name: getattr(sent, name) for name in ("key", "base", "id", "title", "version", "files", "notes")}
    at = str(_place(sent, home))
    source: origin.Origin
    if sent.form == "git":
        source = origin.Git(git_dir=at, tree_id=sent.tree_id, **common)
    else:
        source = (origin.Folder if sent.form == "folder" else origin.Tarball)(path=at, **common)
    return Wanted(origin=source, steps=sent.steps, tools=tools, request=sent.request)


def _place(sent: Carried, home: Path) -> Path:
    return home / {"git": "sent.git", "folder": "sent", "tarball": "sent.tar"}[sent.form]


def unpack(sent: Carried, packed: Path, home: Path) -> None:
    """Lay the base's files out at ``home``, whose lock is held, as ``wanted`` expects them.

    Raises:
        HostError: they are damaged, or are not what ``sent`` says.
    """
    at, doing = _place(sent, home), f"unpacking the source of {sent.name}"
    if sent.form == "tarball":
        at.unlink(missing_ok=True)
        packed.rename(at)
    elif sent.form == "folder":
        if at.exists():
            _run(["rm", "-rf", "--", str(at)], doing)
        at.mkdir(parents=True)
        _run(["tar", "--extract", f"--file={packed}", f"--directory={at}", "--no-same-owner"], doing)
    else:
        if not at.exists():
            _run(["git", "init", "--quiet", "--bare", str(at)], doing)
        with packed.open("rb") as file:
            _run(["git", f"--git-dir={at}", "index-pack", "--stdin"], doing, given=file.fileno())
        _run(["git", f"--git-dir={at}", "cat-file", "-e", f"{sent.tree_id}^{{tree}}"], doing)


def _run(argv: list[str], doing: str, stdin: bytes = b"", out: int = subprocess.PIPE, given: int | None = None) -> None:
    """``origin.run`` with input, or output, that may be large."""
    feed: dict[str, object] = {"input": stdin} if given is None else {"stdin": given}
    try:
        done = subprocess.run(  # type: ignore[call-overload]
            argv, check=False, stdout=out, stderr=subprocess.PIPE, env=origin.git_environment(), **feed
        )
    except FileNotFoundError:
        raise HostError(f"{doing}: {argv[0]} is missing") from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise HostError(f"{doing}: {argv[0]} failed: {words[-1]}")
