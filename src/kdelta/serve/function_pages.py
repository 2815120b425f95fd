# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of the functions of a case on two kernels of one experiment."""

from __future__ import annotations

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from kdelta.report import flow
from kdelta.report.charts import Figure
from kdelta.report.curves import functions as functions_chart
from kdelta.report.figures import each
from kdelta.report.scrub import Scrubber
from kdelta.results.types import FunctionDiff
from kdelta.serve import functions, page
from kdelta.store.store import Store

FUNCTIONS_SHOWN = 500
_LARGE = 10000  # counts from here on have one decimal, and all of a column as many


class FunctionPages:
    """A handler; ``id`` in its path is an experiment's id, the beginning of one, or ``last``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def functions(self, request: Request) -> Response:
        """All functions of a case on two of the experiment's kernels."""
        with page.looked_up():
            experiment = self._store.experiment(request.path_params["id"])
        last = len(experiment.kernels) - 1
        case, before, after = (
            page.number(request, "case"),
            page.number(request, "from"),
            page.number(request, "to", last),
        )
        mitigations = "off" if request.query_params.get("mitigations") == "off" else "default"
        if case >= len(experiment.cases) or max(before, after) > last:
            raise page.Missing(f"experiment {experiment.id} has no such case or kernel")
        if experiment.mode != "exact":
            raise page.Missing(f"experiment {experiment.id} measured time: functions come from exact mode")
        with page.looked_up():
            asked = (experiment, self._store, case, (before, after), mitigations)
            whole, lines = functions.difference(*asked), functions.lines(*asked)
        difference = Scrubber().struct(whole)
        everything = request.query_params.get("all") == "1"
        shown = [f for f in difference.functions if everything or f.delta]
        return page.draw(
            "functions.html",
            request,
            experiment=experiment,
            difference=difference,
            per=each(difference.unit),
            figure=_chart(difference) if before != after else None,
            stacks=functions.have_stacks(*asked),
            lines=flow.figure(Scrubber().struct(lines), 1),
            shown=shown[:FUNCTIONS_SHOWN],
            left_out=max(0, len(shown) - FUNCTIONS_SHOWN),
            unchanged=sum(not f.delta for f in difference.functions),
            everything=everything,
            digits=1 if any(max(f.baseline, f.patched) >= _LARGE for f in shown) else 2,
            chosen={"case": case, "from": before, "to": after, "mitigations": mitigations},
            totals=[sum(getattr(f, side) for f in difference.functions) for side in ("baseline", "patched")],
        )


def _chart(difference: FunctionDiff) -> Figure | None:
    changed = replace(difference, functions=tuple(f for f in difference.functions if f.delta))
    figure = functions_chart(changed, 0)
    return figure and replace(figure, caption="The functions that changed most; the table below has them all.")
