# SPDX-License-Identifier: GPL-2.0-or-later
"""The application: which address is which page, and what a failure looks like. Reads the store, writes nothing."""

from __future__ import annotations

import importlib
import threading
import traceback
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kdelta.errors import KdeltaError
from kdelta.serve import page
from kdelta.serve.boot_pages import BootPages
from kdelta.serve.diary_pages import DiaryPages
from kdelta.serve.experiment_pages import ExperimentPages
from kdelta.serve.flame_pages import FlamePages
from kdelta.serve.function_pages import FunctionPages
from kdelta.serve.guard import Access, Guard
from kdelta.serve.history_pages import HistoryPages
from kdelta.serve.results import Results, Sweeps
from kdelta.store.store import Store


def _story(error: Exception) -> str:
    """A failure of the host in its own words; any other error with the place in the program where it arose."""
    if isinstance(error, KdeltaError):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"


def load_ahead() -> threading.Thread:
    """Load what timed verdicts take while the first page is read: else the first of them takes a second longer."""
    thread = threading.Thread(target=importlib.import_module, args=("scipy.stats",))
    thread.start()
    return thread


def create_app(store: Store, access: Access, complain: Callable[[str], None]) -> Starlette:
    """The pages of ``store`` for those whom ``access`` admits.

    ``complain`` gets the whole story of a failure of this host, of which the page says nothing: a reader elsewhere
    need not know its paths.
    """

    def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, page.Missing):
            return page.error(request, 404, str(error))
        complain(f"{request.scope['path'][:200]!r}: {_story(error)}")
        return page.error(request, 500, "The page could not be rendered; the terminal of kdelta serve shows why.")

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = "Page not found." if error.status_code == 404 else error.detail
        return page.error(request, error.status_code, text)

    def style(request: Request) -> Response:
        kept = request.url.query == page.style_digest()
        headers = {"cache-control": "private, max-age=31536000, immutable"} if kept else None
        return Response(page.style(), media_type="text/css", headers=headers)

    results = Results(store)
    one, over = ExperimentPages(store, results), HistoryPages(store)
    boots, behind, diary = BootPages(store), FunctionPages(store), DiaryPages(store, Sweeps(results))
    app = Starlette(
        routes=[
            Route("/", over.experiments),
            Route(page.STYLE, style),
            Route("/experiments", over.experiments),
            Route("/experiments/{id}.json", one.json),
            Route("/experiments/{id}", one.overview),
            Route("/experiments/{id}/report", one.report),
            Route("/experiments/{id}/report.{format}", one.report),
            Route("/experiments/{id}/functions", behind.functions),
            Route("/experiments/{id}/flame", FlamePages(store).flame),
            Route("/experiments/{id}/boots", boots.boots),
            Route("/experiments/{id}/boots/{block:int}.{slot:int}", boots.console),
            Route("/experiments/{id}/boots/{block:int}.{slot:int}.txt", boots.console_text),
            Route("/history", over.history),
            Route("/compare", over.compare),
            Route("/steps", diary.steps),
            Route("/findings", diary.findings),
            Route("/watched", diary.watched),
        ],
        middleware=[Middleware(Guard, access=access, refuse=page.error)],
        exception_handlers={HTTPException: refused, KdeltaError: failed, Exception: failed},
    )
    app.router.redirect_slashes = False  # a redirection would be built from the request's own words
    return app
