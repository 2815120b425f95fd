# SPDX-License-Identifier: GPL-2.0-or-later
"""What a series says of itself beside its diffs: the commit that it applies to, and the figures that it claims. Pure.

``base-commit:`` and ``prerequisite-patch-id:`` are written by ``git format-patch --base`` (git-format-patch(1), BASE
TREE INFORMATION).
"""

from __future__ import annotations

import email.message
import email.policy
import re
from collections.abc import Iterable

from msgspec import Struct

from kdelta.kernel import figures, mail
from kdelta.units import counted

_BASE = re.compile(r"^base-commit: ([0-9a-f]{12,64})\s*$", re.MULTILINE)
_PREREQUISITE = re.compile(r"^prerequisite-patch-id: ([0-9a-f]{40,64})\s*$", re.MULTILINE)
_DIFF = re.compile(r"^(?:(?:Range-diff|Interdiff)\b.*:$|diff --git |--- \S.*\n\+\+\+ \S|@@ -)", re.MULTILINE)
_RULE = re.compile(r"^---$", re.MULTILINE)  # what stands below it is for the list alone, such as figures
_DIFFSTAT = re.compile(
    r"^ ?(?:\S.* \| +(?:\d+|Bin)\b.*|(?:rename|copy|rewrite) .*\(\d+%\)|mode change \d{6} => .*"
    r"|\d+ files? changed\b.*)$",
    re.MULTILINE,
)
_FIRST = re.compile(r"\[[^\]]*\b0+/\d+[^\]]*\]")
_MOST = 20


class Cover(Struct, frozen=True, kw_only=True):
    """``base`` is "" where no mail names it; ``claims`` are sentences and rows with figures, none judged."""

    base: str = ""
    claims: tuple[str, ...] = ()
    prerequisites: tuple[str, ...] = ()  # patch ids of what lies between the base and the series, oldest first
    subject: str = ""  # of the cover letter, else of the first patch
    answer_to: mail.Message | None = None  # the cover letter, else the first patch, where it can be answered


def read(data: bytes) -> Cover:
    """The cover of a series: what its mails say before their diffs, and the last base that one names."""
    found = list(mail.messages(data))
    texts = [message.text for message in found]
    bases = [match[1] for text in texts for match in _BASE.finditer(text)]
    needed = dict.fromkeys(match[1] for text in texts for match in _PREREQUISITE.finditer(text))
    ordered = sorted(found, key=lambda m: not _FIRST.search(m.subject))
    return Cover(
        base=bases[-1] if bases else "",
        claims=claims(_before_diff(text) for text in texts),
        prerequisites=tuple(needed),
        subject=next((m.subject for m in ordered if m.subject), ""),
        answer_to=next((m for m in ordered if m.id and m.sender), None),
    )


def claims(texts: Iterable[str]) -> tuple[str, ...]:
    """The figures in what a series says of itself, each once and at most 20; then how many more there are."""
    found = tuple(dict.fromkeys(line for text in texts for line in figures.told(text)))
    more = len(found) - _MOST
    return found if more <= 0 else (*found[:_MOST], f"({counted(more, 'more line')} with figures, not quoted here)")


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


def _before_diff(text: str) -> str:
    end = _DIFF.search(text)
    said = text[: end.start() if end else len(text)]
    return _DIFFSTAT.sub("", _RULE.sub("", said)) if _RULE.search(said) else said
