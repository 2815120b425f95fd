# SPDX-License-Identifier: GPL-2.0-or-later
"""A local HTTP service with the shape of Patchwork's, GitHub's and GitLab's APIs, which keeps what it is sent."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "s3cret"
_PATHS = {
    "checks": re.compile(r"^/api/patches/(\d+)/checks/$"),
    "patches": re.compile(r"^/api/patches/$"),
    "user": re.compile(r"^/user$"),
    "comments": re.compile(r"^/repos/o/r/issues/7/comments$|^/projects/g%2Fp/merge_requests/7/notes$"),
    "comment": re.compile(r"^/repos/o/r/issues/comments/(\d+)$|^/projects/g%2Fp/merge_requests/7/notes/(\d+)$"),
}


class Api:
    """What the service holds and was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.user: dict[str, Any] | None = {"login": "bot", "id": 1}

    def answer(self, method: str, path: str, query: str, token: str, body: Any) -> tuple[int, Any]:
        self.asked.append((method, path, body))
        kind, match = next(((kind, found) for kind, form in _PATHS.items() if (found := form.match(path))), ("", None))
        if not kind or match is None:
            return 404, {"detail": "Not found."}
        if TOKEN not in token and method != "GET":
            return 403, {"detail": "Authentication credentials were not provided."}
        return getattr(self, f"_{kind}")(method, query, body, *filter(None, match.groups()))  # type: ignore[no-any-return]

    def _patches(self, _method: str, query: str, _body: Any) -> tuple[int, Any]:
        return 200, [{"id": 42, "msgid": "<1@b>"}] if query == "msgid=1@b" else []

    def _checks(self, method: str, _query: str, body: Any, patch: str) -> tuple[int, Any]:
        known = {"state", "context", "description", "target_url"}
        if method != "POST" or body.get("state") not in ("pending", "success", "warning", "fail") or set(body) - known:
            return 400, {"state": ["This field is required."]}
        return 201, body | {"url": f"{self.url}/api/patches/{patch}/checks/1/"}

    def _user(self, _method: str, _query: str, _body: Any) -> tuple[int, Any]:
        return (200, self.user) if self.user else (403, {"message": "Resource not accessible by integration"})

    def _comments(self, method: str, query: str, body: Any) -> tuple[int, Any]:
        if method == "POST":
            who = self.user or {"login": "github-actions[bot]", "id": 9}
            self.comments.append({"id": 1000 + len(self.comments), "user": who, "author": who, "body": body["body"]})
            return 201, self.comments[-1]
        asked = dict(part.split("=") for part in query.split("&"))
        size, page = int(asked["per_page"]), int(asked["page"])
        return 200, self.comments[(page - 1) * size : page * size]

    def _comment(self, method: str, _query: str, body: Any, number: str) -> tuple[int, Any]:
        found = next(one for one in self.comments if one["id"] == int(number))
        found["body"] = body["body"]
        return (200, found) if method in ("PATCH", "PUT") else (405, {})


@contextmanager
def service() -> Iterator[Api]:
    """The service, on a port of this machine."""
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            token = f"{self.headers.get('Authorization', '')}{self.headers.get('PRIVATE-TOKEN', '')}"
            path, _, query = self.path.partition("?")
            if path.startswith("/moved"):
                self.send_response(302)
                self.send_header("Location", "http://127.0.0.1:9/stolen")
                self.end_headers()
                return
            status, said = api.answer(self.command, path, query, token, body)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = _any

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
