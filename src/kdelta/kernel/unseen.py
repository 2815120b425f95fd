# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a change its kernel is not made of, or does not follow; patches brought it, or the commits of a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kdelta.errors import UserError
from kdelta.kernel import build, changed, defaults, diff, guards, kbuild, mail, source
from kdelta.kernel.changed import Commits
from kdelta.kernel.guards import LeftOut
from kdelta.kernel.worktree import Worktree
from kdelta.model import Kernel
from kdelta.spec.kernels import BUILT_KINDS, KernelSpec
from kdelta.spec.workloads import rare_options

_HEAD = "Subject: commits\n\n---\n"


class Unseen(Struct, frozen=True, kw_only=True):
    """``options`` guard something of the change and are not set, ``parts`` are files, or what of them is not built.

    ``builds`` are options that would have such files built.

    ``defaults`` (``FOO=y``) are those that the change brings and that the config, which was there before, does not
    follow; ``parameters`` those of the boot that nothing gives.
    """

    options: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()


def of(kernel: Kernel, specs: Sequence[KernelSpec]) -> Unseen:
    """What ``kernel``, that of the last of ``specs``, does not show of what makes it differ from the first.

    Raises:
        UserError: a tree or patch that cannot be read. HostError: git fails.
    """
    patched = [spec for spec in specs if spec.kind in BUILT_KINDS and spec.patches]
    if patched:
        found = _of_patches(kernel, patched)
    else:
        commits = changed.of_commits(specs[0], specs[-1]) if len(specs) > 1 else None
        found = _of_commits(kernel, specs[-1], commits) if commits is not None else Unseen()
    if not found.parameters:
        return found
    return replace(found, parameters=source.not_given(_as_in(kernel, found.parameters), specs[-1]))


def _as_in(kernel: Kernel, parameters: Sequence[str]) -> tuple[str, ...]:
    """``parameters`` of modules by the names that the kernel knows: kernel/rcu/tree.c has ``rcutree.``.

    The prefix is that of the module (several files may make one) or what the file defines, and the source of a file
    does not tell it; the whole name is a string of the image (include/linux/moduleparam.h).
    """
    if not any("." in name for name in parameters):
        return tuple(parameters)
    try:
        image = Path(kernel.vmlinux_path or kernel.image_path).read_bytes()
    except OSError:
        return tuple(parameters)
    return tuple(_known_as(name, image) for name in parameters)


def _known_as(parameter: str, image: bytes) -> str:
    prefix, dot, name = parameter.removesuffix("=").rpartition(".")
    if not dot:
        return parameter
    whole = re.compile(rb"(?<![\w.])((?:\w+\.)+" + re.escape(name.encode()) + rb")\0")
    known = {match[1].decode() for match in whole.finditer(image)}
    return f"{known.pop()}=" if len(known) == 1 and f"{prefix}.{name}" not in known else parameter


def _of_patches(kernel: Kernel, specs: Sequence[KernelSpec]) -> Unseen:
    left_out = [known.left_out for spec in specs if (known := source.remembered(spec)) is not None]
    off = (name for spec in specs for name in source.options_off(spec, kernel))
    return Unseen(
        options=tuple(dict.fromkeys([*off, *(name for one in left_out for name in one.options)])),
        parts=tuple(dict.fromkeys(part for one in left_out for part in one.parts)),
        builds=tuple(dict.fromkeys(name for one in left_out for name in one.builds)),
        defaults=tuple(dict.fromkeys(name for spec in specs for name in source.other_defaults(spec, kernel))),
        parameters=tuple(dict.fromkeys(name for spec in specs for name in source.parameters(spec))),
    )


def _of_commits(kernel: Kernel, spec: KernelSpec, commits: Commits) -> Unseen:
    lines, options = commits.diff(3), source.options(kernel)
    changes = _changes(lines)
    around = guards.around(lines, commits.read, options) if options else LeftOut()
    missing = _not_built(spec, commits)
    parts = (part for part in around.parts if part.partition(" ")[0] not in missing)
    off = guards.off(changes, options) if options else ()
    return Unseen(
        options=tuple(dict.fromkeys([*off, *around.options])),
        parts=(*missing, *parts),
        builds=kbuild.missing_of(commits.read, missing, options, rare_options()) if options else (),
        defaults=defaults.not_followed(changes, options) if options else (),
        parameters=source.not_given(guards.parameters(changes), spec),
    )


def _changes(lines: Iterable[str]) -> tuple[diff.Change, ...]:
    """The changes of a diff between commits, but for those of modes, names and files that are no text."""
    files: list[list[str]] = []
    for line in lines:
        if line.startswith("diff --git "):
            files.append([])
        if files:
            files[-1].append(line)
    text = "\n".join(line for one in files if any(line.startswith("@@ ") for line in one) for line in one)
    if not text:
        return ()
    try:
        [one] = mail.steps(f"{_HEAD}{text}\n".encode("utf-8", "surrogateescape"), "commits")
        return diff.parse(one)
    except (UserError, ValueError):  # a submodule, a link, a diff that is larger than a mail may be
        return ()


def _not_built(spec: KernelSpec, commits: Commits) -> tuple[str, ...]:
    """The files that no build with this config made anything of; () where no build is left."""
    obj = source.objects(spec)
    if obj is None:
        return ()
    there = (
        path for path in commits.files if path.endswith((".c", ".S", ".h", ".rs")) and commits.read(path) is not None
    )

    def made(path: Path, _: str) -> bool:  # other commits were built there too: whose it is, is not told
        return path.exists()

    return tuple(build.not_built(obj, Worktree(obj.parent).src.name, there, made))
