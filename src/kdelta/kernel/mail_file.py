# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of a patch's file as mails are read of them: unpacked (lore.kernel.org hands out ``t.mbox.gz``), and
without the colours of a terminal. Pure.
"""

from __future__ import annotations

import io
import re

from kdelta.errors import UserError
from kdelta.kernel import mail, unpack

_MAGIC: tuple[tuple[bytes, unpack.Kind], ...] = (
    (b"\x1f\x8b", "gz"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bz2"),
    (b"\x28\xb5\x2f\xfd", "zst"),
)
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[mK]")
# git show --color; a text may hold colours of its own
_COLOURED = re.compile(rb"(?m)^\x1b\[[0-9;]*m(?:diff --git |@@ -\d|--- \S)")


def plain(data: bytes, name: str) -> bytes:
    """``data`` unpacked and uncoloured, where it is packed or coloured.

    Raises:
        UserError: it is damaged, or larger than a patch once it is unpacked.
    """
    if kind := next((kind for magic, kind in _MAGIC if data.startswith(magic)), None):
        data = _unpacked(data, kind, name)
    return _COLOUR.sub(b"", data) if _COLOURED.search(data) else data


def _unpacked(data: bytes, kind: unpack.Kind, name: str) -> bytes:
    stream = unpack.Stream(io.BytesIO(data), kind, mail.MAX_BYTES)
    stream.allow(mail.MAX_BYTES + 1)
    try:
        return stream.read(mail.MAX_BYTES + 1)
    except unpack.TooLarge as error:
        raise UserError(f"patch {name}: {error}, which is more than is allowed for a patch") from None
    except unpack.Damaged as error:
        raise UserError(f"patch {name}: it looks like a file packed as {kind}, and is damaged ({error})") from None
