# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of a patch's file as mails are read of them: unpacked (lore.kernel.org hands out ``t.mbox.gz``), and
without the colours of a terminal. Pure.
"""

from __future__ import annotations

import io
import re

from kdelta.errors import UserError
from kdelta.kernel import mail, unpack

_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[mK]")
# git show --color; a text may hold colours of its own
_COLOURED = re.compile(rb"(?m)^\x1b\[[0-9;]*m(?:diff --git |@@ -\d|--- \S)")


def plain(data: bytes, name: str) -> bytes:
    """``data`` unpacked, in UTF-8 and uncoloured, where it is packed, of Windows (``git diff > p``) or coloured.

    Raises:
        UserError: it is damaged, or larger than a patch once it is unpacked.
    """
    if kind := unpack.kind_of(data):
        data = _unpacked(data, kind, name)
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            data = _recoded(data, encoding, name)
    return _COLOUR.sub(b"", data) if _COLOURED.search(data) else data


def _unpacked(data: bytes, kind: unpack.Kind, name: str) -> bytes:
    try:
        return unpack.whole(io.BytesIO(data), kind, mail.MAX_BYTES)
    except unpack.TooLarge as error:
        raise UserError(f"patch {name}: {error}, which is more than is allowed for a patch") from None
    except unpack.Damaged as error:
        raise UserError(f"patch {name}: it looks like a file packed as {kind}, and is damaged ({error})") from None


def _recoded(data: bytes, encoding: str, name: str) -> bytes:
    if encoding == "utf-8-sig":
        return data[3:]
    try:
        return data.decode(encoding).encode()
    except ValueError as error:
        raise UserError(f"patch {name}: it begins as UTF-16, and is damaged ({error}); save it in UTF-8") from None
