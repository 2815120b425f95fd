# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of call stacks: a differential flame graph, with callers and callees of the function it is drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from kdelta.attribution import stack_diff
from kdelta.report import flame, parted
from kdelta.report.figures import count, each
from kdelta.report.scrub import clean
from kdelta.results import definitions
from kdelta.serve import functions, page
from kdelta.store.store import Store

_BETWEEN = ";"
_DEEPEST = 256


class FlamePages:
    """A handler; ``id`` in its path is an experiment's id, the beginning of one, or ``last``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def flame(self, request: Request) -> Response:
        """Call stacks of a case on two of the experiment's kernels, where ``kdelta why --stacks`` counted them."""
        with page.looked_up():
            experiment = self._store.experiment(request.path_params["id"])
        last = len(experiment.kernels) - 1
        names = {"case": 0, "from": 0, "to": last}
        chosen: dict[str, int | str] = {name: page.number(request, name, usual) for name, usual in names.items()}
        case, before, after = (page.number(request, name, usual) for name, usual in names.items())
        mitigations = "off" if request.query_params.get("mitigations") == "off" else "default"
        if case >= len(experiment.cases) or max(before, after) > last:
            raise page.Missing(f"experiment {experiment.id} has no such case or kernel")
        with page.looked_up():
            both = functions.both(experiment, self._store, case, (before, after), mitigations)
        if not all(profile.stacks for profile in both):
            name = experiment.cases[case].name
            raise page.Missing(f"no call stacks are stored: kdelta why {experiment.id} {name} --stacks counts them")
        asked = request.query_params.get("at", "")
        path = asked.split(_BETWEEN)[:_DEEPEST] if asked else []
        above = stack_diff.at(stack_diff.compared(*both), path)
        address, search = f"/experiments/{experiment.id}/flame", request.query_params.get("q", "")[:100]
        chosen["mitigations"] = mitigations

        def link(path: Sequence[str]) -> str:
            return f"{address}?{urlencode(chosen | {'at': _BETWEEN.join(path), 'q': search})}"

        static = bool(request.scope.get(page.STATIC))
        per = clean(each(definitions.unit_of_counts(experiment, experiment.cases[case])))
        graph, narrow = flame.markup(above, None if static else link, search, per)
        function = above[-1].name
        callers, callees = stack_diff.neighbours(above[0], function)
        return page.draw(
            "flame.html",
            request,
            experiment=experiment,
            case=experiment.cases[case].name,
            before=experiment.kernels[before].label,
            after=experiment.kernels[after].label,
            above=above,
            at=_BETWEEN.join(frame.name for frame in above[1:]),
            strayed=len(above) - 1 < len(path),
            home=link(()),
            chosen=chosen,
            search=search,
            hits=flame.searched(above[-1], search, per),
            tells=flame.tells(above[-1], per),
            graph=graph,
            left_out=flame.left_out(narrow),
            lost=flame.lost(above[0], [experiment.kernels[kernel].label for kernel in (before, after)], per),
            per=per,
            function=function,
            parted=parted.rows(*both, path),
            parted_caption=f"I{parted.caption(per)[1:]}",
            callers=_ranked(callers),
            callees=_ranked(callees) if len(above) > 1 else [],
        )


def _ranked(found: dict[str, list[float]]) -> list[tuple[str, ...]]:
    """Function, both costs and their change, as text; the largest change first."""
    ranked = sorted(found.items(), key=lambda item: (-abs(item[1][1] - item[1][0]), -max(item[1]), item[0]))
    return [(name, count(old), count(new), count(new - old, signed=True)) for name, (old, new) in ranked]
