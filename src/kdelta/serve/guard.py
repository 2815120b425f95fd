# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may read the pages: the Host header, the token, the method; and the headers that every answer carries.

Without a token the pages are for this machine alone, but any web site open in its browser could send requests here:
a name that the site's owner points at 127.0.0.1 (DNS rebinding) would make the answers readable to it. So only known
hosts are answered. Nothing is ever written, no answer allows another origin, and no page may run a script.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,253}))(?::[0-9]{1,5})?")

Refuse = Callable[[Request, int, str], Response]


@dataclass(frozen=True)
class Access:
    """Whom to answer.

    ``hosts`` are names and addresses allowed in the Host header, in lower case; ``any_address`` allows every literal
    address too (rebinding needs a name). ``token`` is "" where none is asked for; ``cookie`` is the name under which a
    browser keeps it.
    """

    hosts: frozenset[str] = LOOPBACK_NAMES
    any_address: bool = False
    token: str = ""
    cookie: str = "kdelta_token"

    def knows(self, header: str) -> bool:
        """Whether a Host header names this server; its port is not compared, so that tunnels work."""
        match = _HOST.fullmatch(header)
        if match is None:
            return False
        name = (match[1] or match[2]).lower().removesuffix(".")
        return name in self.hosts or (self.any_address and _is_address(name))

    def accepts(self, given: str) -> bool:
        """Compares a token in constant time."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """ASGI middleware around the whole application; ``refuse`` draws the page of a refusal."""

    def __init__(self, app: ASGIApp, access: Access, refuse: Refuse) -> None:
        self._app, self._access, self._refuse = app, access, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(Request(scope))
        await (answer or self._app)(scope, receive, send_guarded)

    def _answer(self, request: Request) -> Response | None:
        """The refusal or redirection due, None where the request may pass."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._access.knows(hosts[0]):
            return self._refuse(request, 421, "This server does not answer to that host name; see --allow-host.")
        if request.method not in ("GET", "HEAD"):
            refusal = self._refuse(request, 405, "The pages are read-only.")
            refusal.headers["allow"] = "GET, HEAD"
            return refusal
        return self._token_answer(request) if self._access.token else None

    def _token_answer(self, request: Request) -> Response | None:
        given = request.query_params.get("token")
        if given is not None and self._access.accepts(given):
            answer = RedirectResponse(_without_token(request), status_code=303)
            answer.set_cookie(self._access.cookie, self._access.token, httponly=True, samesite="strict", path="/")
            return answer
        if self._access.accepts(request.cookies.get(self._access.cookie, "")):
            return None
        return self._refuse(request, 403, "Open the address with the token that kdelta serve printed.")


def _without_token(request: Request) -> str:
    """The same page without the token, which must not stay in the browser's history; never another host's page."""
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
    path = "/" + quote(request.scope["path"].lstrip("/\\"))
    return path + ("?" + urlencode(rest) if rest else "")
