# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of the boots of one experiment and of their consoles."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from kdelta.model import Experiment
from kdelta.serve import console, lists, page
from kdelta.store.store import Store

BOOTS_PER_PAGE = 100
_LARGEST = 2**31


class BootPages:
    """Handlers; ``id`` in their path is an experiment's id, the beginning of one, or ``last``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def _experiment(self, request: Request) -> Experiment:
        with page.looked_up():
            return self._store.experiment(request.path_params["id"])

    def boots(self, request: Request) -> Response:
        """Every boot with its state, and its console."""
        experiment = self._experiment(request)
        state = request.query_params.get("state", "")
        boots = self._store.boots(experiment.id)
        chosen = [boot for boot in boots if not state or boot.state == state]
        return page.draw(
            "boots.html",
            request,
            experiment=experiment,
            found=lists.page(chosen, page.number(request, "page", 1), BOOTS_PER_PAGE),
            states=Counter(boot.state for boot in boots),
            state=state,
        )

    def _console(self, request: Request) -> tuple[Experiment, int, int, bytes]:
        experiment = self._experiment(request)
        block, slot = request.path_params["block"], request.path_params["slot"]
        if max(block, slot) >= _LARGEST:
            raise page.Missing("no such boot")
        with page.looked_up():
            return experiment, block, slot, self._store.console(experiment.id, block, slot)

    def console(self, request: Request) -> Response:
        """The console of one boot, its last MiB where it is longer."""
        experiment, block, slot, content = self._console(request)
        text, left_out = console.tail(content)
        places = sorted(self._store.done(experiment.id))
        here = places.index((block, slot))
        return page.draw(
            "console.html",
            request,
            experiment=experiment,
            place=(block, slot),
            boot=self._store.boots(experiment.id)[here],
            text=text,
            left_out=left_out,
            before=places[here - 1] if here else None,
            after=places[here + 1] if here + 1 < len(places) else None,
        )

    def console_text(self, request: Request) -> Response:
        """The whole console as plain text."""
        content = self._console(request)[3]
        return Response(console.readable(content).encode("utf-8", "replace"), media_type="text/plain")
