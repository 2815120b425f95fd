# SPDX-License-Identifier: GPL-2.0-or-later
"""The texts of one message of a mail, as they were written: decoded, unpacked, without what mail programs and
signatures put in. Pure, over bytes.
"""

from __future__ import annotations

import email.message
import email.utils
import io
import quopri
import re

_PROBE = "@@ -1,2 +3 @@ ~\\n\\u0041{[+-"
_BLANK_ESCAPED = re.compile(r"^(?:[>|] ?)*=20$", re.MULTILINE)
_NO_ESCAPE = re.compile(r"=(?![0-9A-F]{2}|$)", re.MULTILINE)
PACKED_BYTES = 4 << 20  # what the packed parts of one message may hold
# RFC 9580, 7 (Cleartext Signature Framework)
_SIGNED = re.compile(r"^-----BEGIN PGP SIGNED MESSAGE-----[ \t]*\n(?:[A-Za-z][\w-]*: .*\n)*[ \t]*\n", re.MULTILINE)
_SIGNATURE, _ENDS = "\n-----BEGIN PGP SIGNATURE-----", "\n-----END PGP SIGNATURE-----"
_DASHED = re.compile(r"^- ", re.MULTILINE)


def _names_charset(name: str) -> bool:
    """Whether ``name`` is a character set of texts in which ASCII stands for itself, or of UTF-16 and such."""
    try:
        return _PROBE.encode("ascii").decode(name) == _PROBE or name.lower().startswith("utf-")
    except (LookupError, ValueError):  # unknown, or one of Python's that is none for texts
        return False


def decoded(payload: bytes, charset: str = "") -> str:
    """Text whose bytes that are not UTF-8 survive as surrogates, unless the mail names another character set."""
    if charset and charset.lower() not in ("utf-8", "utf8", "us-ascii", "ascii") and _names_charset(charset):
        try:
            return payload.decode(charset)
        except ValueError:
            pass  # a wrong label: the kernel's files are UTF-8
    return payload.decode("utf-8", "surrogateescape")


def _unflow(text: str, delete_space: bool) -> str:
    """Join the soft line breaks of ``format=flowed`` and take out its space-stuffing (RFC 3676), also in quotes."""
    lines: list[list[str]] = []  # each in pieces
    open_quote: str | None = None  # the marks of the line that flows on
    for line in text.split("\n"):
        body = line.lstrip(">")
        quote, body = line[: len(line) - len(body)], body.removeprefix(" ")
        if open_quote == quote:
            lines[-1].append(body)
        elif quote:
            lines.append([f"{quote} {body}" if body.strip() else quote])
        else:
            lines.append([body])
        # a lone context blank is " " + "" stuffed; only a line with text in it flows on
        flows = body.endswith(" ") and body != "-- " and bool(body.strip())
        open_quote = quote if flows else None
        if flows and delete_space:
            lines[-1][-1] = lines[-1][-1][:-1]
    return "\n".join("".join(pieces) for pieces in lines)


def _unescaped(text: str) -> str:
    """``text`` without what is left of quoted-printable where a mail was saved undecoded.

    Of an encoded text every "=" begins an escape, and one of a diff has either lines that are but an encoded blank, or
    several encoded "=": one could be meant.
    """
    if _NO_ESCAPE.search(text) or not (_BLANK_ESCAPED.search(text) or text.count("=3D") > 1):
        return text
    return quopri.decodestring(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def bare(piece: bytes) -> str:
    """The text of a message without headers."""
    return _unsigned(_unescaped(decoded(piece).replace("\r\n", "\n")))


def _unsigned(text: str) -> str:
    """``text`` without the signature around it and the dashes that it put before lines which begin with one."""
    found, at = [], 0
    while (head := _SIGNED.search(text, at)) and (ends := text.find(_SIGNATURE, head.end() - 1)) >= 0:
        found += [text[at : head.start()], _DASHED.sub("", text[head.end() : ends + 1])]
        at = text.find(_ENDS, ends + 1)
        at = len(text) if at < 0 else at + len(_ENDS)
    return "".join([*found, text[at:]])


def _unpacked(payload: bytes, most: int) -> bytes | None:
    """What a packed attachment holds, ``fix.patch.gz``; None where it is not packed, is damaged, or holds too much."""
    from kdelta.kernel import unpack

    kind = unpack.kind_of(payload)
    try:
        return unpack.whole(io.BytesIO(payload), kind, most) if kind else None
    except unpack.Damaged:
        return None


def texts(message: email.message.Message) -> list[str]:
    """What the parts of a message say, packed ones too; HTML, and what is no text, is left out."""
    found, left = [], PACKED_BYTES
    for part in message.walk():
        if part.is_multipart() or part.get_content_type() == "text/html":
            continue
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes):
            continue
        if (packed := _unpacked(payload, left)) is not None:
            payload, left = packed, left - len(packed)
        text = decoded(payload, _parameter(part, "charset")).replace("\r\n", "\n").replace("\r", "\n")
        if "\0" in text:
            continue
        text = _unescaped(text)
        if _parameter(part, "format") == "flowed":
            text = _unflow(text, _parameter(part, "delsp") == "yes")
        found.append(_unsigned(text))
    return found


def _parameter(part: email.message.Message, name: str) -> str:
    """A parameter of the content type in small letters, "" where there is none that can be read."""
    try:
        value = part.get_param(name, "")
        return (email.utils.collapse_rfc2231_value(value) if isinstance(value, tuple) else str(value)).lower()
    except (LookupError, ValueError):  # its own encoding is unknown or wrong
        return ""
