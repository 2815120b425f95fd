# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of one experiment: overview, report, functions, boots and their consoles."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from kdelta.model import CellResult, Experiment, ExperimentResult
from kdelta.report import registry
from kdelta.report.charts import Figure, intervals
from kdelta.report.curves import functions as functions_chart
from kdelta.report.curves import sweep as sweep_chart
from kdelta.report.heatmap import KEY, heat_maps
from kdelta.report.scrub import Scrubber
from kdelta.report.view import View, build
from kdelta.results.types import Detail, FunctionDiff
from kdelta.serve import console, functions, lists, page
from kdelta.serve.results import Results
from kdelta.store.rows import ExperimentRow
from kdelta.store.store import Store

BOOTS_PER_PAGE = 100
FUNCTIONS_SHOWN = 500
_MEDIA = {"html": "text/html", "json": "application/json"}  # everything else is shown as text
_LARGEST = 2**31


def number(request: Request, name: str, default: int = 0) -> int:
    """A number of the query; the default where it is none."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else default


class ExperimentPages:
    """Handlers; ``id`` in their path is an experiment's id, the beginning of one, or ``last``."""

    def __init__(self, store: Store) -> None:
        self._store, self._results = store, Results(store)

    def _view(self, request: Request) -> tuple[ExperimentResult, Detail, View]:
        result, detail = self._results.of(self._experiment(request))
        return result, detail, build(result, detail)

    def _experiment(self, request: Request) -> Experiment:
        with page.looked_up():
            return self._store.experiment(request.path_params["id"])

    def _row(self, experiment: Experiment) -> ExperimentRow:
        return next(row for row in self._store.experiments() if row.id == experiment.id)

    def overview(self, request: Request) -> Response:
        """What an experiment found, with ways to the functions, boots and reports behind it."""
        result, detail, view = self._view(request)
        maps = heat_maps(view.sweeps)
        swept = () if maps else view.sweeps  # the map shows what hundreds of charts would
        figures = [intervals(view), *(sweep_chart(table, i) for i, table in enumerate(swept))]
        return page.draw(
            "experiment.html",
            request,
            view=view,
            maps=maps,
            key=KEY,
            row=self._row(result.experiment),
            figures=[figure for figure in figures if figure is not None],
            drill=_drill(result, view),
            steps=_steps(result.experiment, detail),
            cases=[case.name for case in result.experiment.cases],
            faulty=[boot for boot in self._store.boots(result.experiment.id) if boot.state != "ok"],
            labels=[kernel.label for kernel in result.experiment.kernels],
            formats=[name for name in registry.formats() if name != "html"],
        )

    def report(self, request: Request) -> Response:
        """The report in one of its formats, as ``kdelta report`` writes it."""
        with page.looked_up():
            chosen = registry.find(request.path_params.get("format", "html"))
        text = chosen.render(self._view(request)[2])
        content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        headers = {"content-security-policy": page.REPORT_POLICY} if chosen.name == "html" else None
        return Response(content, media_type=_MEDIA.get(chosen.name, "text/plain"), headers=headers)

    def json(self, request: Request) -> Response:
        """The result as JSON, schema kdelta/1."""
        request.path_params["format"] = "json"
        return self.report(request)

    def functions(self, request: Request) -> Response:
        """All functions of a case on two of the experiment's kernels."""
        experiment = self._experiment(request)
        last = len(experiment.kernels) - 1
        case, before, after = number(request, "case"), number(request, "from"), number(request, "to", last)
        mitigations = "off" if request.query_params.get("mitigations") == "off" else "default"
        if case >= len(experiment.cases) or max(before, after) > last:
            raise page.Missing(f"experiment {experiment.id} has no such case or kernel")
        if experiment.mode != "exact":
            raise page.Missing(f"experiment {experiment.id} measured time: functions come from exact mode")
        with page.looked_up():
            whole = functions.difference(experiment, self._store, case, (before, after), mitigations)
        difference = Scrubber().struct(whole)
        everything = request.query_params.get("all") == "1"
        shown = [f for f in difference.functions if everything or f.delta]
        return page.draw(
            "functions.html",
            request,
            experiment=experiment,
            difference=difference,
            figure=_chart(difference) if before != after else None,
            shown=shown[:FUNCTIONS_SHOWN],
            left_out=max(0, len(shown) - FUNCTIONS_SHOWN),
            unchanged=sum(not f.delta for f in difference.functions),
            everything=everything,
            chosen={"case": case, "from": before, "to": after, "mitigations": mitigations},
            totals=[sum(getattr(f, side) for f in difference.functions) for side in ("baseline", "patched")],
        )

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
            found=lists.page(chosen, number(request, "page", 1), BOOTS_PER_PAGE),
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


def _chart(difference: FunctionDiff) -> Figure | None:
    changed = replace(difference, functions=tuple(f for f in difference.functions if f.delta))
    figure = functions_chart(changed, 0)
    return figure and replace(figure, caption="The functions that changed most; the table below has them all.")


def _drill(result: ExperimentResult, view: View) -> dict[int, str]:
    """The query of the functions behind a cell of the tables, by the cell's ``id()``.

    The view's texts are clipped for display, so a cell is traced by its place among the results.
    """
    experiment = result.experiment
    if experiment.mode != "exact":
        return {}
    cases = {case.name: index for index, case in enumerate(experiment.cases)}
    kernels = {kernel.label: index for index, kernel in enumerate(experiment.kernels)}
    found: dict[int, str] = {}
    for cell, source in zip(view.result.results, result.results, strict=True):
        if _has_functions(source) and source.case in cases and source.patched_label in kernels:
            places = {"case": cases[source.case], "from": kernels[source.baseline_label]}
            places["to"] = kernels[source.patched_label]
            found[id(cell)] = page.query(**places, mitigations=source.mitigations)
    return found


def _has_functions(cell: CellResult) -> bool:
    return cell.metric == "instructions" and cell.state == "ok" and bool(cell.patched_label)


def _steps(experiment: Experiment, detail: Detail) -> dict[tuple[int, int], str]:
    """The query of the functions behind each step of an exact sweep, by the sweep's place and the version's in it."""
    if experiment.mode != "exact":
        return {}
    cases = {(case.name, case.cgroup): index for index, case in enumerate(experiment.cases)}
    kernels = {kernel.label: index for index, kernel in enumerate(experiment.kernels)}
    found: dict[tuple[int, int], str] = {}
    for number, sweep in enumerate(detail.sweeps):
        places = {point.kernel: place for place, point in enumerate(sweep.points)}
        for step in sweep.steps if sweep.cell.metric == "instructions" else ():
            ends = {"from": kernels[step.last], "to": kernels[step.first], "mitigations": sweep.cell.mitigations}
            found[number, places[step.first]] = page.query(case=cases[sweep.cell.case, sweep.cell.cgroup], **ends)
    return found
