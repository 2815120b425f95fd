# SPDX-License-Identifier: GPL-2.0-or-later
"""What a series says of itself beside its diffs: the commit that it applies to, and the figures that it claims. Pure.

``base-commit:`` and ``prerequisite-patch-id:`` are written by ``git format-patch --base`` (git-format-patch(1), BASE
TREE INFORMATION).
"""

from __future__ import annotations

import email.message
import email.policy
import re
from collections.abc import Iterator

from msgspec import Struct

from kdelta.kernel import mail

_BASE = re.compile(r"^base-commit: ([0-9a-f]{12,64})\s*$", re.MULTILINE)
_PREREQUISITE = re.compile(r"^prerequisite-patch-id: ([0-9a-f]{40,64})\s*$", re.MULTILINE)
_CLAIM = re.compile(
    r"\d\s?%|\b\d+(?:\.\d+)?\s?(?:x|times)\s+(?:faster|slower|fewer|less|more)\b"
    r"|\b\d[\d,.]*\s?(?:ns|us|usec|ms|cycles|instructions|ops/s|MB/s|GB/s|tps)\b",
    re.IGNORECASE,
)
_INDEX = re.compile(r"\w\)?\s*[:=]\s*(\d[\d,]*(?:\.\d+)?)(?![\w:;])")  # of a benchmark without a unit: "name: 841.8"
_SIDE = re.compile(
    r"^(?:before|after|with|without|base|baseline|patched|unpatched|vanilla|old|new)\b[^:]{0,40}:$", re.I
)
_DIFF = re.compile(r"^(?:---$|diff --git |--- \S|@@ -)", re.MULTILINE)
_FIRST = re.compile(r"\[[^\]]*\b0+/\d+[^\]]*\]")
_LINE_CHARS = 200
_WRAPPED_CHARS = 50  # of a line that its writer broke off; shorter ones are rows of a table
_MOST = 20


class Cover(Struct, frozen=True, kw_only=True):
    """``base`` is "" where no mail names it; ``claims`` are lines with figures, as they were written, none judged."""

    base: str = ""
    claims: tuple[str, ...] = ()
    prerequisites: tuple[str, ...] = ()  # patch ids of what lies between the base and the series, oldest first
    subject: str = ""  # of the cover letter, else of the first patch
    answer_to: mail.Message | None = None  # the cover letter, else the first patch, where it can be answered


def read(data: bytes) -> Cover:
    """The cover of a series: what stands in its mails before their diffs, and the last base that one names."""
    found = list(mail.messages(data))
    texts = [message.text for message in found]
    bases = [match[1] for text in texts for match in _BASE.finditer(text)]
    needed = dict.fromkeys(match[1] for text in texts for match in _PREREQUISITE.finditer(text))
    claims = dict.fromkeys(line for text in texts for line in _claims(text))
    ordered = sorted(found, key=lambda m: not _FIRST.search(m.subject))
    return Cover(
        base=bases[-1] if bases else "",
        claims=tuple(claims)[:_MOST],
        prerequisites=tuple(needed),
        subject=next((m.subject for m in ordered if m.subject), ""),
        answer_to=next((m for m in ordered if m.id and m.sender), None),
    )


def reply(to: mail.Message, body: str) -> bytes:
    """A mail in the thread of ``to`` with ``body``, for ``git send-email`` or a mail program; it quotes nothing."""
    made = email.message.EmailMessage(policy=email.policy.SMTP.clone(linesep="\n", max_line_length=None))
    made["Subject"] = to.subject if to.subject.lower().startswith("re:") else f"Re: {to.subject}"
    made["To"] = main = to.reply_to or to.sender
    if others := sorted({address for address in to.to if address != main}):
        made["Cc"] = ", ".join(others)
    made["In-Reply-To"] = made["References"] = to.id
    made.set_content(body, cte="8bit")
    return made.as_bytes()


def _claims(text: str) -> Iterator[str]:
    """Lines with a figure before the diff, with the line that their sentence ends in; no quotes of other mails.

    Figures below a line such as ``Before:`` are told with it.
    """
    end = _DIFF.search(text)
    held = side = ""
    for line in text[: end.start() if end else len(text)].split("\n"):
        said = " ".join(line.split())
        claim = len(said) <= _LINE_CHARS and not said.startswith((">", "|")) and _has_figure(said)
        if claim and len(held) >= _WRAPPED_CHARS and held[-1] not in ".:;" and said[0].islower():
            held = f"{held} {said}"
            continue
        if held:
            yield held
        heads = bool(_SIDE.match(said))
        side = said if heads else side if said else ""
        held = "" if not claim else said if heads else f"{side} {said}".strip()
    if held:
        yield held


def _has_figure(line: str) -> bool:
    indexes = _INDEX.findall(line)
    return bool(_CLAIM.search(line)) or (len(indexes) > 1 and any("." in index for index in indexes))
