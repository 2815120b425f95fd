# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of what is kept beside experiments: announced steps with their triage, and items of watched sources."""

from __future__ import annotations

from functools import cache
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response

from kdelta.kernel import excerpts
from kdelta.model.diary import Triage, WatchedState
from kdelta.report import findings as findings_text
from kdelta.report import rewritten, steps
from kdelta.results import findings
from kdelta.serve import lists, page
from kdelta.serve.results import Sweeps
from kdelta.store.store import Store

PER_PAGE = 100
FINDINGS_SHOWN = 20


class DiaryPages:
    """Handlers."""

    def __init__(self, store: Store, sweeps: Sweeps) -> None:
        self._store, self._sweeps = store, sweeps

    def steps(self, request: Request) -> Response:
        """The steps that followed sweeps announced, open ones first, then the newest first."""
        chosen = lists.picked(get_args(Triage), request.query_params.get("state", "")) or ""
        known = self._store.steps()
        shown = [step for step in reversed(known) if not chosen or step.state == chosen]
        shown.sort(key=lambda step: step.state != "open")
        return page.draw(
            "steps.html",
            request,
            found=lists.page(shown, page.number(request, "page", 1), PER_PAGE),
            states=get_args(Triage),
            chosen={"state": chosen},
            empty=not known,
            figure=steps.figure,
        )

    def findings(self, request: Request) -> Response:
        """The largest steps of all stored sweeps, with what became of the functions where sources are at hand."""
        read, wrong = findings.swept(self._store, of=self._sweeps.of)
        source = cache(excerpts.at_hand)
        largest = findings.largest(read, FINDINGS_SHOWN)
        shown = findings.with_rewrites(largest, lambda kernel: source(excerpts.version_of(kernel)))
        return page.draw(
            "findings.html",
            request,
            shown=list(zip(shown, rewritten.of_all(shown), strict=True)),
            wrong=wrong,
            texts=findings_text,
            sweeps=len(read),
        )

    def watched(self, request: Request) -> Response:
        """Items of watched sources, the newest first."""
        chosen = lists.picked(get_args(WatchedState), request.query_params.get("state", "")) or ""
        known = self._store.watched()
        shown = [item for item in reversed(known) if not chosen or item.state == chosen]
        return page.draw(
            "watched.html",
            request,
            found=lists.page(shown, page.number(request, "page", 1), PER_PAGE),
            states=[state for state in get_args(WatchedState) if state != "start"],
            chosen={"state": chosen},
            empty=not known,
        )
