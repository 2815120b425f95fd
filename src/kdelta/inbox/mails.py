# SPDX-License-Identifier: GPL-2.0-or-later
"""A mail of a list as far as series are made of it: who sent it, when, in answer to what, and what its subject says."""

from __future__ import annotations

import email.message
import email.utils
import hashlib
import re
from collections.abc import Iterator
from email.parser import BytesHeaderParser
from urllib.parse import unquote

from msgspec import Struct

from kdelta.kernel import mail

_ID = re.compile(r"<[^<>\s]{1,990}>")
_CHANGE = re.compile(r"^change-id: (\S{1,200})\s*$", re.MULTILINE)
_ARCHIVED = re.compile(r"https?://[^\s/]+/(?:[^\s/]+/){0,3}([^\s/<>]+@[^\s/<>]+)")  # as of lore.kernel.org
_EARLIER = re.compile(r"\b(?:v\d{1,3}|RFC|previous|earlier)\b", re.IGNORECASE)
_OTHER_WORK = re.compile(r"\b(?:depend\w*|based|on top|prerequisite)\b", re.IGNORECASE)
_ENCODED = re.compile(r"^(?:base64|quoted-printable)\b", re.IGNORECASE)
_MOST_PARENTS = 50
_SAID_BYTES = 1 << 16  # of a mail in which links and a change-id are looked for: both stand before the diff, or near


class Mail(Struct, frozen=True, kw_only=True):
    """``parents``: Message-IDs that it answers, the nearest first. ``date_s``: seconds since the epoch, 0 unknown."""

    id: str
    parents: tuple[str, ...] = ()
    tag: mail.Tag
    sender: str = ""
    date_s: float = 0.0
    change: str = ""  # of b4: the same for all versions of a series
    earlier: tuple[str, ...] = ()  # Message-IDs that it links to as its earlier versions
    data: bytes = b""

    @property
    def is_patch(self) -> bool:
        """A patch or cover letter of its own, no answer to one; with the tag [RFC] alone it has to hold a diff."""
        if self.tag.reply or self.tag.patch:
            return self.tag.patch and not self.tag.reply
        return self.tag.draft and mail.has_diff(self.data)


def read(data: bytes) -> Mail:
    """One message as it was received; what it lacks is left empty, and an id is made of its content."""
    data = data.replace(b"\r\n", b"\n")
    bare = data.partition(b"\n")[2] if data.startswith((b"From ", b">From ")) else data
    head = BytesHeaderParser().parsebytes(bare.partition(b"\n\n")[0] + b"\n\n")
    found = _ID.search(_header(head, "Message-ID"))
    nearest = [*_ID.findall(_header(head, "In-Reply-To")), *reversed(_ID.findall(_header(head, "References")))]
    tag = mail.tag_of(mail.subject_of(data))
    said = _said(data, _header(head, "Content-Transfer-Encoding")) if tag.patch or tag.draft else ""
    change = _CHANGE.search(said)
    return Mail(
        id=found[0] if found else f"<{hashlib.sha256(data).hexdigest()[:40]}@no-message-id>",
        parents=tuple(dict.fromkeys(nearest))[:_MOST_PARENTS],
        tag=tag,
        sender=_sender_of(head),
        date_s=mail.sent_s(_header(head, "Date")),
        change=change[1] if change else "",
        earlier=tuple(_earlier(said)),
        data=data,
    )


def _said(data: bytes, encoding: str) -> str:
    """The beginning of a mail's text, decoded where it must be."""
    if not _ENCODED.match(encoding):
        return data[:_SAID_BYTES].decode("utf-8", "replace")
    return "\n".join(message.text for message in mail.messages(data))[:_SAID_BYTES]


def _earlier(said: str) -> Iterator[str]:
    """Links to other versions: where the line, or the one before it, names a version and no other work."""
    before = ""
    for line in said.split("\n"):
        if (match := _ARCHIVED.search(line)) and not _OTHER_WORK.search(line) and _EARLIER.search(f"{before} {line}"):
            yield f"<{unquote(match[1])}>"
        before = line


def _sender_of(head: email.message.Message) -> str:
    try:
        return _sender(head)
    except RecursionError:  # comments within comments, of which Python's email takes a level each
        return ""


def _sender(head: email.message.Message) -> str:
    """Who sent it, lower case: where a relay or a list did so for somebody, that one, by Reply-To or else by name."""
    name, address = email.utils.parseaddr(_header(head, "From"))
    who, via, _ = name.partition(" via ")
    if not via:
        return address.lower()
    others = [one for _, one in email.utils.getaddresses([_header(head, "Reply-To")]) if one and one != address]
    return (others[0] if others else f"{who} <{address}>").lower()


def _header(head: email.message.Message, name: str) -> str:
    return " ".join(str(head.get(name, "")).split())[:100_000]
