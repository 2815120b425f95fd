# SPDX-License-Identifier: GPL-2.0-or-later
"""The single patches that a kernel's name asks for, in the order in which they are applied or taken out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from kdelta.errors import UserError
from kdelta.kernel import mail, mail_file
from kdelta.kernel.worktree import encode
from kdelta.paths import expanded
from kdelta.spec.kernels import PatchRef

_LONGEST = 4096  # characters of a path
_SHOWN = 4  # of the patches that are not given


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
    if not name:
        raise UserError("a patch's name is missing after +, and no file has a name with that + in it")
    path = expanded(name)
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"patch {name}: it is not a regular file; save the patch to one")
        if path.stat().st_size > mail.MAX_BYTES:
            raise UserError(mail.too_large(name, path.stat().st_size))
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        if "://" in name:
            raise UserError(f"patch {name}: nothing is downloaded from an address: save it, as b4 am does") from None
        raise UserError(f"patch {name}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    return mail_file.plain(data, name)


def whole(refs: tuple[PatchRef, ...]) -> tuple[PatchRef, ...]:
    """``refs`` with those put together of which a + is part of a file's name: the longest name that is there.

    The grammar looks at no file, and splits at each +.
    """
    found, start = [], 0
    while start < len(refs):
        names = _longer(refs[start:])
        more = next((count for count in range(len(names), 0, -1) if _is_file(names[count - 1])), 0)
        found.append(PatchRef(names[more - 1], refs[start].reverse) if more else refs[start])
        start += more + 1
    return tuple(found)


def _longer(refs: tuple[PatchRef, ...]) -> list[str]:
    """The names that the first of ``refs`` may be the beginning of, the shortest first."""
    names, name = [], refs[0].path
    for ref in refs[1:]:
        if ref.reverse or len(name) > _LONGEST:
            break
        name += f"+{ref.path}"
        names.append(name)
    return names


def _is_file(name: str) -> bool:
    try:
        return expanded(name).is_file()
    except (OSError, ValueError):
        return False


def load_patches(refs: tuple[PatchRef, ...]) -> tuple[Step, ...]:
    """The single patches of ``refs`` in the order in which they are applied; a series taken out goes backwards.

    Raises:
        UserError: a file that cannot be read or holds no whole patch or series.
    """
    found: list[Step] = []
    for ref in whole(refs):
        steps = [Step(mail=one, take_out=ref.reverse) for one in mail.steps(_read(ref.path), ref.path)]
        found += reversed(steps) if ref.reverse else steps
    return tuple(found)


def incomplete(steps: Iterable[Step]) -> tuple[str, ...]:
    """Of a series of which single patches are given, each in a file of its own, which are not: one file is whole."""
    series: dict[int, list[mail.PatchMail]] = {}
    for step in steps:
        if step.mail.total > 1 and " [" not in step.mail.name:
            series.setdefault(step.mail.total, []).append(step.mail)
    told = []
    for total, found in series.items():
        given = {one.number for one in found}
        if missing := [f"{number}/{total}" for number in range(1, total + 1) if number not in given]:
            shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if missing[_SHOWN:] else "")
            names = " and ".join(f"{Path(one.name).name} is {one.number}/{total} of a series" for one in found)
            told.append(f"patch {names}; not given: {shown}")
    return tuple(told)


def for_others(steps: Iterable[Step], version: tuple[int, int]) -> tuple[str, ...]:
    """Of each file that says which releases it is for ([PATCH 6.12.y]), which, where the source's is none of them."""
    here = f"{version[0]}.{version[1]}"
    files = {one.mail.name.partition(" [")[0]: one.mail.releases for one in steps if not one.take_out}
    return tuple(
        f"patch {Path(name).name}: its subject says that it is for {' and '.join(named)}; the source is {here}"
        for name, named in files.items()
        if named and here not in named
    )


def mixed(steps: Iterable[Step]) -> tuple[str, ...]:
    """Of each file whose patches are of several versions (a partial reroll), which one each of them is of."""
    files: dict[str, list[mail.PatchMail]] = {}
    for step in steps:
        files.setdefault(step.mail.name.partition(" [")[0], []).append(step.mail)
    mails = {name: found for name, found in files.items() if len({one.version for one in found}) > 1}
    return tuple(
        f"patch {Path(name).name}: of several versions: "
        + ", ".join(f"{one.number}/{one.total} of v{one.version}" for one in found)
        for name, found in mails.items()
    )
