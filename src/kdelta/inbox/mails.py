# SPDX-License-Identifier: GPL-2.0-or-later
"""A mail of a list as far as series are made of it: who sent it, when, in answer to what, and what its subject says."""

from __future__ import annotations

import email.message
import email.utils
import hashlib
import re
from email.parser import BytesHeaderParser

from msgspec import Struct

from kdelta.kernel import mail

_ID = re.compile(r"<[^<>\s]{1,990}>")
_CHANGE = re.compile(rb"^change-id: (\S{1,200})\s*$", re.MULTILINE)
_MOST_PARENTS = 50


class Mail(Struct, frozen=True, kw_only=True):
    """``parents``: Message-IDs that it answers, the nearest first. ``date_s``: seconds since the epoch, 0 unknown."""

    id: str
    parents: tuple[str, ...] = ()
    tag: mail.Tag
    sender: str = ""
    date_s: float = 0.0
    change: str = ""  # of b4: the same for all versions of a series
    data: bytes = b""

    @property
    def is_patch(self) -> bool:
        """A patch or cover letter of its own, no answer to one."""
        return self.tag.patch and not self.tag.reply


def read(data: bytes) -> Mail:
    """One message as it was received; what it lacks is left empty, and an id is made of its content."""
    data = data.replace(b"\r\n", b"\n")
    bare = data.partition(b"\n")[2] if data.startswith((b"From ", b">From ")) else data
    head = BytesHeaderParser().parsebytes(bare.partition(b"\n\n")[0] + b"\n\n")
    found = _ID.search(_header(head, "Message-ID"))
    nearest = [*_ID.findall(_header(head, "In-Reply-To")), *reversed(_ID.findall(_header(head, "References")))]
    change = _CHANGE.search(data)
    return Mail(
        id=found[0] if found else f"<{hashlib.sha256(data).hexdigest()[:40]}@no-message-id>",
        parents=tuple(dict.fromkeys(nearest))[:_MOST_PARENTS],
        tag=mail.tag_of(mail.subject_of(data)),
        sender=email.utils.parseaddr(_header(head, "From"))[1].lower(),
        date_s=_date_s(_header(head, "Date")),
        change=change[1].decode("ascii", "replace") if change else "",
        data=data,
    )


def _header(head: email.message.Message, name: str) -> str:
    return " ".join(str(head.get(name, "")).split())[:100_000]


def _date_s(text: str) -> float:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp())
    except (ValueError, OverflowError, TypeError):
        return 0.0
