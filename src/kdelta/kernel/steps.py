# SPDX-License-Identifier: GPL-2.0-or-later
"""The single patches that a kernel's name asks for, in the order in which they are applied or taken out."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.kernel import mail
from kdelta.kernel.worktree import encode
from kdelta.paths import expanded
from kdelta.spec.kernels import PatchRef


class Step(Struct, frozen=True, kw_only=True):
    """One single patch to apply, or to take out."""

    mail: mail.PatchMail
    take_out: bool = False

    @property
    def id(self) -> str:
        text = "\n".join(["-" if self.take_out else "+", *self.mail.lines])
        return hashlib.sha256(encode(text)).hexdigest()

    @property
    def title(self) -> str:
        path, bracket, number = self.mail.name.partition(" [")
        return ("-" if self.take_out else "+") + Path(path).name + bracket + number


def _read(name: str) -> bytes:
    path = expanded(name)
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"patch {name}: it is not a regular file; save the patch to one")
        if path.stat().st_size > mail.MAX_BYTES:
            raise UserError(mail.too_large(name, path.stat().st_size))
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if "://" in name:
            raise UserError(f"patch {name}: nothing is downloaded from an address: save it, as b4 am does") from None
        raise UserError(f"patch {name}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def load_patches(refs: tuple[PatchRef, ...]) -> tuple[Step, ...]:
    """The single patches of ``refs`` in the order in which they are applied; a series taken out goes backwards.

    Raises:
        UserError: a file that cannot be read or holds no whole patch or series.
    """
    found: list[Step] = []
    for ref in refs:
        steps = [Step(mail=one, take_out=ref.reverse) for one in mail.steps(_read(ref.path), ref.path)]
        found += reversed(steps) if ref.reverse else steps
    return tuple(found)
