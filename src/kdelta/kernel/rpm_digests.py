# SPDX-License-Identifier: GPL-2.0-or-later
"""The digests that an RPM package carries, as ``rpmkeys --checksig --nosignature`` takes them. Pure.

All that are there must be right, and its header and its payload each need one. Source: lib/rpmvs.c of rpm
(rpmvsVerify), signatures_digests.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from kdelta.kernel.rpm_header import STRING, STRINGS, Header

_MD5, _MD5_BYTES = 1004, 16
_OF_HEADER = {269: "sha1", 273: "sha256", 279: "sha3_256"}
# Two of each: of the payload as it lies there, and as it is unpacked, should somebody store it so.
_OF_PAYLOAD = {(5092, 5097): ("sha256", STRINGS), (5121, 5122): ("sha512", STRING), (5123, 5124): ("sha3_256", STRING)}


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


class Digest(Struct, frozen=True):
    """One that is computed, and the values of which it must have one."""

    hash: _Hash
    right: frozenset[str]

    def holds(self) -> bool:
        """Whether it was told what it is a digest of."""
        return self.hash.hexdigest() in self.right


def _digest(name: str, right: Iterable[str]) -> Digest:
    return Digest(hashlib.new(name, usedforsecurity=False), frozenset(one.lower() for one in right))


def of_header(signatures: Header) -> list[Digest]:
    """Those of the header, with what begins it."""
    return [_digest(name, signatures.strings(tag, STRING)) for tag, name in _OF_HEADER.items() if tag in signatures]


def of_both(signatures: Header) -> list[Digest]:
    """Those of the header with the payload: of a package that is older than the others, the only one."""
    found = signatures.binary(_MD5)
    return [_digest("md5", [found.hex()] if len(found) == _MD5_BYTES else [])] if _MD5 in signatures else []


def of_payload(header: Header) -> list[Digest]:
    """Those of the payload."""
    return [
        _digest(name, [text for tag in tags for text in header.strings(tag, kind)])
        for tags, (name, kind) in _OF_PAYLOAD.items()
        if any(tag in header for tag in tags)
    ]
