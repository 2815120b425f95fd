# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages as files: every page that is reached by links from the list, with links between files, for any web host.

What needs a server (forms, and comparisons that a reader puts together) is left out. No page runs a script.
"""

from __future__ import annotations

import hashlib
import heapq
import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote, urljoin, urlsplit

from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from kdelta.errors import KdeltaError
from kdelta.serve import page

START = "/experiments"
_LINK = re.compile(r'(?<= href=")([^"]*)(?=")')
_OF_EXPERIMENT = re.compile(rf"{START}/([^/.?]+)")
_NAME_LENGTH = 80
_TYPED = re.compile(r"\.[a-z0-9]{1,9}")


class File(Struct, frozen=True, kw_only=True):
    """One file of the site; ``name`` is relative to its directory, with ``/``."""

    name: str
    content: bytes


def _plain(text: str) -> str:
    """A part of a file's name that every web host takes; a digest tells it apart where it is not the text."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:_NAME_LENGTH]
    same = kept == text
    return kept if same else f"{kept or 'page'}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


def file_name(address: str) -> str:
    """The file that has the page at ``address`` (a path with its query), the same each time. Pure."""
    parts = urlsplit(address)
    if parts.path in ("", "/", START) and not parts.query:
        return "index.html"
    if parts.path == page.STYLE:  # its query tells versions of one file apart
        return page.STYLE.removeprefix("/")
    steps = [_plain(unquote(step)) for step in parts.path.split("/") if step]
    last = steps[-1]
    # /experiments/ID.json and /style.css are files already; a boot is numbered 0.1
    suffix = match[0] if (match := re.search(_TYPED.pattern + "$", last)) and not last[-1].isdecimal() else ".html"
    stem = last.removesuffix(suffix) + ("." + _plain(unquote(parts.query)) if parts.query else "")
    return "/".join([*steps[:-1], stem + suffix])


def _answered(app: Starlette, address: str) -> Response:
    """The page at ``address``, or the one that says why there is none.

    Raises:
        KdeltaError: the store cannot be read.
    """
    parts = urlsplit(address)
    scope = {
        "type": "http", "method": "GET", "headers": [], "root_path": "", "path": unquote(parts.path),
        "query_string": parts.query.encode(), page.STATIC: True,
    }  # fmt: skip
    for route in app.routes:
        match, matched = route.matches(scope)
        if match is Match.FULL:
            try:
                answer: Response = matched["endpoint"](Request({**scope, **matched}))
            except page.Missing as error:
                return page.error(Request(scope), 404, str(error))
            return answer
    return page.error(Request(scope), 404, "Page not found.")


def _address(link: str, base: str) -> tuple[str, str] | None:
    """(address, fragment) of a link to another page of ours, None of any other."""
    whole = urlsplit(urljoin(base, html.unescape(link)))
    if whole.scheme or whole.netloc or link.startswith(("#", "data:")):
        return None
    path = START if whole.path == "/" else whole.path
    return path + (f"?{whole.query}" if whole.query else ""), (f"#{whole.fragment}" if whole.fragment else "")


class Tally:
    """How many pages there will be, while not all are known: a page of an experiment leads to others of its own."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}  # experiment -> its pages, as far as they are known
        self._opened: set[str] = set()  # experiments whose pages are all known, or soon

    @staticmethod
    def _experiment(address: str) -> str:
        match = _OF_EXPERIMENT.match(address)
        return match[1] if match else ""

    def know(self, address: str) -> None:
        """There is such a page."""
        one = self._experiment(address)
        self._known[one] = self._known.get(one, 0) + 1

    def made(self, address: str) -> None:
        """It is made, and its links are known."""
        self._opened.add(self._experiment(address))

    def expected(self) -> int | None:
        """As many pages as are known, and of experiments that nobody has opened as many as others have.

        None while the first is open: its own page takes as long as a hundred others.
        """
        if len(self._opened - {""}) < 2 and len(self._known) > 2:
            return None
        opened = [count for one, count in self._known.items() if one and one in self._opened]
        each = sum(opened) // len(opened) if opened else 1
        return sum(max(count, each) if one not in self._opened else count for one, count in self._known.items())


def files(
    app: Starlette,
    failed: Callable[[str, KdeltaError], None],
    told: Callable[[int, int | None], None] = lambda made, expected: None,
) -> Iterator[File]:
    """All pages from the list on; of a page that could not be made, which ``failed`` is told, one that says so.

    Pages of one experiment come one after the other, because what they share is kept for a while. ``told``: how many
    are made, and will be as far as that is known.
    """
    waiting, seen, tally = [START], {START}, Tally()
    tally.know(START)
    while waiting:
        told(len(seen) - len(waiting), tally.expected())
        address = heapq.heappop(waiting)
        try:
            found = _answered(app, address)
        except KdeltaError as error:
            failed(address, error)
            scope = {"type": "http", "path": address, page.STATIC: True}
            found = page.error(Request(scope), 500, "This page could not be made.")
        content = bytes(found.body)
        if found.media_type == "text/html":
            content, targets = _relinked(content.decode("utf-8"), address)
            for target in targets - seen:
                seen.add(target)
                tally.know(target)
                heapq.heappush(waiting, target)
        tally.made(address)
        yield File(name=file_name(address), content=content)


def _relinked(text: str, address: str) -> tuple[bytes, set[str]]:
    """A page whose links lead to files, and the addresses of the pages in them."""
    ups = "../" * file_name(address).count("/")
    targets = set()

    def led(match: re.Match[str]) -> str:
        target = _address(match[1], address)
        if target is None:
            return match[1]
        targets.add(target[0])
        version = target[0].removeprefix(page.STYLE) if target[0].startswith(page.STYLE + "?") else ""
        return html.escape(ups + file_name(target[0]) + version + target[1])

    return _LINK.sub(led, text).encode("utf-8"), targets
