# SPDX-License-Identifier: GPL-2.0-or-later
"""One JSON request to a service that was named, with a token: the answer, or one line that says what was refused.

No redirection is followed, because it would take the token elsewhere.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

import msgspec

from kdelta.errors import HostError, UserError
from kdelta.report.scrub import clean

_TIMEOUT_S = 30.0
_MOST_BYTES = 16 << 20
_SAID_CHARS = 300


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """Where requests go (``url`` without a slash at its end), and the headers that they all carry."""

    url: str
    headers: dict[str, str] = {}

    @classmethod
    def at(cls, url: str, headers: dict[str, str]) -> Service:
        """A service by its address.

        Raises:
            UserError: no http(s) address, or a token that fits in no header.
        """
        parts = urllib.parse.urlsplit(url)
        plain = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        if not plain or parts.username is not None:  # a password there would stand in every message
            raise UserError(
                f"{parts.hostname or url!r}: not the address of a service, such as https://patchwork.kernel.org"
            )
        if any(not (value.isascii() and value.isprintable()) for value in headers.values()):
            raise UserError(f"the token for {parts.hostname} has characters that no token has; look at how it was set")
        return cls(url=url.rstrip("/"), headers={"User-Agent": "kdelta", "Accept": "application/json"} | headers)


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def call(service: Service, method: str, path: str, body: object = None) -> Any:
    """What ``service`` answers, parsed; None where it answers nothing.

    Raises:
        HostError: it cannot be reached, it refuses, or what it says is no JSON.
    """
    data = None if body is None else json.dumps(body).encode()
    headers = service.headers | ({"Content-Type": "application/json"} if data is not None else {})
    request = urllib.request.Request(service.url + path, data=data, headers=headers, method=method)
    what = f"{method} {service.url}{path.partition('?')[0]}"
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=_TIMEOUT_S) as answer:
            said = answer.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        why = clean(error.read(_SAID_CHARS).decode("utf-8", "replace"), _SAID_CHARS)
        raise HostError(f"{what}: refused with {error.code} {error.reason}: {why}") from None
    except (OSError, HTTPException) as error:
        raise HostError(
            f"{what}: {getattr(error, 'reason', None) or error}; check the address and the network"
        ) from None
    return parsed(said, what)


def parsed(said: bytes, what: str) -> Any:
    """The JSON that a service answered to ``what``, None where it answered nothing.

    Raises:
        HostError: it is none.
    """
    try:
        return json.loads(said) if said.strip() else None
    except (ValueError, RecursionError):
        raise HostError(f"{what}: the answer is no JSON; is this the address of its API?") from None
