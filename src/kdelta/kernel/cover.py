# SPDX-License-Identifier: GPL-2.0-or-later
"""What a series says of itself beside its diffs: the commit that it applies to, and the figures that it claims. Pure.

``base-commit:`` is written by ``git format-patch --base`` (git-format-patch(1), BASE TREE INFORMATION).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kdelta.kernel import mail

_BASE = re.compile(r"^base-commit: ([0-9a-f]{12,64})\s*$", re.MULTILINE)
_CLAIM = re.compile(
    r"\d\s?%|\b\d+(?:\.\d+)?\s?(?:x|times)\s+(?:faster|slower|fewer|less|more)\b"
    r"|\b\d[\d,.]*\s?(?:ns|us|usec|ms|cycles|instructions|ops/s|MB/s|GB/s|tps)\b",
    re.IGNORECASE,
)
_DIFF = re.compile(r"^(?:---$|diff --git |--- \S|@@ -)", re.MULTILINE)
_LINE_CHARS = 200
_MOST = 20


class Cover(Struct, frozen=True, kw_only=True):
    """``base`` is "" where no mail names it; ``claims`` are lines with figures, as they were written, none judged."""

    base: str = ""
    claims: tuple[str, ...] = ()


def read(data: bytes) -> Cover:
    """The cover of a series: what stands in its mails before their diffs, and the last base that one names."""
    texts = list(mail.texts(data.replace(b"\r\n", b"\n")))
    bases = [match[1] for text in texts for match in _BASE.finditer(text)]
    claims = dict.fromkeys(line for text in texts for line in _claims(text))
    return Cover(base=bases[-1] if bases else "", claims=tuple(claims)[:_MOST])


def _claims(text: str) -> Iterator[str]:
    """Lines with a figure before the diff; quotes of other mails are theirs."""
    end = _DIFF.search(text)
    for line in text[: end.start() if end else len(text)].split("\n"):
        said = " ".join(line.split())
        if _CLAIM.search(said) and not said.startswith((">", "|")) and len(said) <= _LINE_CHARS:
            yield said
