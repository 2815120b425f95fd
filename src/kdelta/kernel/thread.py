# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole thread to the one series that is meant: the newest version, without replies. Pure, over bytes.

Where a new version has single patches of a series alone (``[PATCH v2 2/4]`` in reply to v1), the others come from the
version before it, as b4 does for partial rerolls. So it is where the new patch has the title of one before and no
number: ``[PATCH v2] title``. Patches that follow an RFC may begin again at v1: of the two the later one is newer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from kdelta.kernel import mail

_FROM = b"From mboxrd@z Thu Jan  1 00:00:00 1970"


class _Part(Struct, frozen=True):
    """A message with what its subject says."""

    piece: bytes
    tag: mail.Tag

    @property
    def key(self) -> tuple[int, str]:
        """What one patch of a version is told from the others by."""
        return (self.tag.number, "") if self.tag.number is not None else (-1, self.tag.title)

    @property
    def version(self) -> tuple[int, bool]:
        """Patches of a version are other ones than an RFC of that version."""
        return self.tag.version, not self.tag.rfc


def newest(data: bytes) -> bytes:
    """An mbox of the newest version of the series in ``data``; ``data`` itself where it holds no tagged patch."""
    parts = [_Part(piece, mail.tag_of(mail.subject_of(piece))) for piece in mail.pieces(data.replace(b"\r\n", b"\n"))]
    patches = _numbered([part for part in parts if part.tag.patch and not part.tag.reply])
    if len(parts) < 2 or not patches:
        return data
    versions = sorted({part.version for part in patches}, reverse=True)
    by_version = {version: _once(part for part in patches if part.version == version) for version in versions}
    latest = _latest(by_version)
    chosen = by_version[latest]
    total = max(part.tag.total for part in chosen.values())
    for version in (one for one in versions if one[0] < latest[0]):
        older = by_version[version]
        if total == 1 or total != max(part.tag.total for part in older.values()) or _whole(chosen, total):
            break
        chosen = {key: part for key, part in older.items() if key[0] > 0} | chosen
    ordered = sorted(chosen.values(), key=lambda part: -1 if part.tag.number is None else part.tag.number)
    return joined(part.piece for part in ordered)


def _latest(by_version: Mapping[tuple[int, bool], dict[tuple[int, str], _Part]]) -> tuple[int, bool]:
    """The newest version of the patches; of the RFCs where there are none, or one of a higher version came later."""
    patches = max((one for one in by_version if one[1]), default=None)
    latest = max(by_version)
    if patches is None or patches == latest:
        return latest
    sent = [min(mail.date_of(part.piece) for part in by_version[one].values()) for one in (patches, latest)]
    return patches if sent[0] > sent[1] else latest


def _numbered(patches: list[_Part]) -> list[_Part]:
    """Patches of a later version that lost their number, with that of the patch of their title."""
    known = {part.tag.title: part.tag for part in patches if part.tag.number}
    return [_with_number(part, known[part.tag.title]) if part.tag.title in known else part for part in patches]


def _with_number(part: _Part, earlier: mail.Tag) -> _Part:
    if part.tag.number is not None or part.tag.version <= earlier.version:
        return part
    counted = rb"\1 %d/%d]" % (earlier.number or 0, earlier.total)
    piece = re.sub(rb"(?im)^(Subject: \[[^\]\n]*)\]", counted, part.piece, count=1)
    tag = mail.tag_of(mail.subject_of(piece))
    return _Part(piece, tag) if tag.number == earlier.number else part  # an encoded subject is left alone


def _once(parts: Iterable[_Part]) -> dict[tuple[int, str], _Part]:
    """Each patch once: one that was sent again is the later one."""
    return {part.key: part for part in parts}


def _whole(chosen: dict[tuple[int, str], _Part], total: int) -> bool:
    return all((number, "") in chosen for number in range(1, total + 1))


def joined(mails: Iterable[bytes]) -> bytes:
    """An mbox of ``mails``, each with its separator, or one that is made for it."""
    return b"".join(map(_escaped, mails))


def _escaped(piece: bytes) -> bytes:
    """A message of an mbox: with its separator, and no other line that looks like one (mboxrd)."""
    head, _, rest = piece.partition(b"\n") if piece.startswith((b"From ", b">From ")) else (b"", b"", piece)
    head = head if mail.is_separator(head) else _FROM
    return head + b"\n" + re.sub(rb"(?m)^(>*From )", rb">\1", rest).rstrip(b"\n") + b"\n\n"
