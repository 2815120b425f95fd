# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzing targets for what comes over the network: addresses that readers ask ``kdelta serve`` for, answers, builds."""

from __future__ import annotations

import asyncio
import atexit
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import anyio.to_thread
import msgspec

from kdelta.fleet import outcome, ship
from kdelta.kernel import cache as cache_
from kdelta.kernel import carried, config_fragment
from kdelta.kernel.patch import File
from kdelta.post import http
from kdelta.serve.app import create_app
from kdelta.serve.guard import Access
from kdelta.store.store import Store

ROOT = Path(__file__).resolve().parents[1]
Target = Callable[[bytes], object]


def _complain(said: str) -> None:
    raise AssertionError(said)


async def _at_once(do: Callable[..., Any], *given: Any, **_options: Any) -> Any:
    """``do`` without a thread of its own: to hand a request to one and wait takes ten times as long as most pages."""
    return do(*given)


@cache
def _served() -> tuple[Any, asyncio.AbstractEventLoop, bytes]:
    """The pages of a store with one experiment, and its id."""
    folder = tempfile.TemporaryDirectory(prefix="kdelta-fuzz-")
    atexit.register(folder.cleanup)
    store = Store(f"sqlite:///{folder.name}/fuzz.sqlite")
    found = store.import_(ROOT / "tests/data/stores/gaps-1.kdelta")
    return create_app(store, Access(token="x"), _complain), asyncio.new_event_loop(), found.id.encode()


def _page(data: bytes) -> None:
    """A request: its address, and in a second line headers."""
    app, loop, ident = _served()
    address, _, rest = data.replace(b"ID", ident).partition(b"\n")
    path, _, query = address.partition(b"?")
    headers = [(b"host", b"127.0.0.1"), (b"cookie", b"kdelta_token=x"), *((b"cookie", rest) for _ in rest[:1])]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": "/" + unquote_to_bytes(path).decode("utf-8", "replace"), "raw_path": path, "query_string": query,
        "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "root_path": "",
    }  # fmt: skip
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    usual = anyio.to_thread.run_sync
    anyio.to_thread.run_sync = _at_once  # type: ignore[assignment]
    try:
        loop.run_until_complete(app(scope, receive, send))
    finally:
        anyio.to_thread.run_sync = usual
    assert statuses and statuses[0] < 500


TARGETS: dict[str, Target] = {
    "page": _page,
    "answer": lambda data: http.parsed(data, "GET http://fuzz"),
    "sent-build": carried.decode,
    "sent-kernel": lambda data: ship.entry_of(data, "fuzz"),
    "sent-outcome": outcome.decode,
}


def seeds(name: str) -> list[bytes]:
    """Inputs from which a target's others are made."""
    pages = (
        b"?q=a&sort=x&page=2", b"experiments/ID?page=1", b"experiments/ID/report.txt", b"experiments/ID.json",
        b"experiments/ID/functions?case=0&from=0&to=1&all=1", b"experiments/ID/flame?case=0&from=0&to=1&at=f&q=x",
        b"experiments/ID/boots?page=1&state=ok", b"experiments/ID/boots/0.1.txt", b"history?case=getppid&by=kernel",
        b"compare?a=6.12&ax=ID&b=6.1", b"steps?state=new", b"findings", b"watched?page=1", b"?token=x\nkdelta_token=y",
    )  # fmt: skip
    entry = cache_.Entry(sha256="ab" * 32, release="6.12", arch="x86_64", form="vmlinux", config={"SMP": "y"})
    found: dict[str, Callable[[], list[bytes]]] = {
        "page": lambda: list(pages),
        "answer": lambda: [b'[{"id": 3, "body": "x", "user": {"login": "a"}}]'],
        "sent-build": lambda: [_carried().encode()],
        "sent-kernel": lambda: [msgspec.json.encode(entry)],
        "sent-outcome": lambda: [
            outcome.Outcome(parcel={"image": "ab" * 32}, files={"build.log": "cd"}, why="w").encode()
        ],
    }
    return found[name]()


def _carried() -> carried.Carried:
    request = config_fragment.Request(options={"SMP": "y"})
    return carried.Carried(
        name="src:.", arch="x86_64", tools="gcc", request=request, steps=(), form="git", key="abc", base="def",
        id="v6.9", title="t", version=(6, 9), files={"f.c": File("int x;\n")}, tree_id="0" * 40,
    )  # fmt: skip
