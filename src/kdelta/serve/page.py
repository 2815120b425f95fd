# SPDX-License-Identifier: GPL-2.0-or-later
"""Templates -> answers. Every text is escaped by the template; ``clean`` also makes what cannot be seen visible."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from kdelta import __version__
from kdelta.errors import UserError
from kdelta.report.figures import absolute, count
from kdelta.report.scrub import clean
from kdelta.units import counted, percent

REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)  # the report is one page with its style inside; it runs no script either

STATIC = "kdelta.static"  # of a request's scope: the page becomes a file, where a form leads nowhere


class Missing(UserError):
    """What was asked for is not in the store; the message may be shown."""


@contextmanager
def looked_up() -> Iterator[None]:
    """Refusals of what a reader named become ``Missing``; those with a cause of their own are failures of the host.

    Raises:
        Missing: there is no such thing.
    """
    try:
        yield
    except UserError as error:
        if error.__cause__ is not None:
            raise
        raise Missing(str(error)) from None


def _when(text: str) -> str:
    """A stored time, to the minute."""
    return clean(text[:16].replace("T", " "), 16)


def query(**values: object) -> str:
    """``?a=1&b=2`` of those that say something; a text that is not UTF-8 is sent as near to it as a URL can."""
    kept = {name: str(value) for name, value in values.items() if value not in ("", None)}
    return "?" + urlencode(kept, errors="replace") if kept else "."


def number(request: Request, name: str, default: int = 0) -> int:
    """A number of the query; the default where it is none."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else default


@cache
def _environment() -> Environment:
    found = Environment(
        loader=ChoiceLoader([PackageLoader("kdelta.serve", "templates"), PackageLoader("kdelta.report", "templates")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"clean": clean, "when": _when}
    found.filters |= {"absolute": absolute, "count": count, "counted": counted, "percent": percent}
    found.globals |= {
        "ident": id,
        "query": query,
        "version": __version__,
        "style": f"{STYLE}?{style_digest()}",
        "path_part": lambda text: quote(text, safe=""),
    }
    return found


def draw(template: str, request: Request, status: int = 200, **values: Any) -> Response:
    """A page from one of the templates."""
    section = request.scope["path"].split("/")[1]
    static = bool(request.scope.get(STATIC))
    text = _environment().get_template(template).render(section=section, static=static, **values)
    return HTMLResponse(text.encode("utf-8", "replace"), status_code=status)


def error(request: Request, status: int, text: str) -> Response:
    """A page that says what is wrong and where to go on."""
    title = HTTPStatus(status).phrase
    return draw("error.html", request, status, status_code=status, title=title, text=text)


STYLE = "/style.css"


@cache
def style_digest() -> str:
    """What the address of the style sheet asks for: another one after an upgrade, so that none is kept too long."""
    return hashlib.sha256(style()).hexdigest()[:12]


@cache
def style() -> bytes:
    """The style sheet of all pages: the report's, and what the pages add."""
    report = resources.files("kdelta.report").joinpath("templates")
    shared = b"".join(report.joinpath(f"{name}.css").read_bytes() for name in ("report", "heat", "flame"))
    return shared + resources.files("kdelta.serve").joinpath("templates/serve.css").read_bytes()
