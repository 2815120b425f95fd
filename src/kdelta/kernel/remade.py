# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of a built kernel a change makes build again, told before it does.

Kbuild keeps beside each object which files it was made of (``.NAME.o.cmd``; scripts/basic/fixdep.c of the kernel). A
build that makes most objects again takes nearly as long as the first did, which nobody expects of a patch of one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kdelta.kernel import sandbox

_MUCH = 4  # one object of so many is worth a word


class Remade(Struct, frozen=True, kw_only=True):
    """``objects`` of the ``whole`` that were built are made again; ``most``: the changed file that most are made of."""

    objects: int
    whole: int
    most: str

    @property
    def much(self) -> bool:
        """Whether that takes as long as a good part of the first build."""
        return _MUCH * self.objects >= self.whole > 0

    @property
    def told(self) -> str:
        """A sentence for who waits."""
        part = "nearly as long as" if 2 * self.objects >= self.whole else "a good part of what"
        again = f"{self.objects} of {self.whole} files are compiled again, most because of {self.most}"
        return f"{again}: that takes {part} the first build did"


def remade(obj: Path, source: str, written: Sequence[str]) -> Remade:
    """What is made again in the build directory ``obj``.

    Args:
        source: the name of the source's directory.
        written: the files that changed since it was built, relative to the source.

    Raises:
        HostError: the build left a link in place of one of Kbuild's files.
    """
    users = dict.fromkeys(written, 0)
    headers = _generated(obj, source, written)
    objects = whole = 0
    for path in obj.rglob(".*.o.cmd") if written else ():
        text = sandbox.read(path)
        if "\nsource_" not in text:  # linked, not compiled
            continue
        whole += 1
        found = {name for name in written if _names(text, f"/{source}/{name}")}
        found |= {name for header, name in headers.items() if _names(text, f" {header}")}
        objects += bool(found)
        for name in found:
            users[name] += 1
    return Remade(objects=objects, whole=whole, most=max(users, key=lambda name: users[name], default=""))


def _generated(obj: Path, source: str, written: Sequence[str]) -> dict[str, str]:
    """The headers that a build makes of a changed file, as of the table of system calls, each with that file."""
    found: dict[str, str] = {}
    for path in obj.rglob(".*.h.cmd") if written else ():
        text = sandbox.read(path)
        header = path.relative_to(obj).with_name(path.name[1:].removesuffix(".cmd"))
        found |= {str(header): name for name in written if _names(text, f"/{source}/{name}")}
    return found


def _names(text: str, path: str) -> bool:
    """Whether ``path`` stands in what Kbuild keeps, at the end of a word."""
    return f"{path} " in text or f"{path}\n" in text
